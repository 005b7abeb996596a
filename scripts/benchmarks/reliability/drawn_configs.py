"""Configs drawn at random, as bytes: files of config/ with changed bytes, texts from a grammar of YAML, and values that
keys take.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import yaml
from hypothesis import strategies as st

from benchmarks.processes import ROOT
from nn_manual.config import RunConfig
from nn_manual.config.component_names import named
from nn_manual.config.yaml_tree import Errors, Place, plain, read_tree
from nn_manual.registry import KINDS, takes_layers

#: A file with every top-level key. The other files of config/ come beside it.
FULL = """\
seed: 3
dtype: float32
data: {Digits: {validation_fraction: 0.2}}
batch_size: 64
epochs: 20
model:
  - Linear: {in_features: 64, out_features: 32}
  - Sequential: [ReLU, {Linear: {in_features: 32, out_features: 32}}]
  - Repeat: {times: 2, layers: [Tanh, Dropout: {p: 0.1}]}
  - Linear: {in_features: 32, out_features: 10}
tied: []
layer_folder: layers
initializer: {Constant: {value: 0.1}}
loss: CrossEntropyLoss
optimizer: {SGD: {lr: 0.1, momentum: 0.9}}
lr_scheduler: {StepLR: {step_size: 3}}
lr_step: epoch
clip_grad_norm: 1
slices: 2
bitwise: true
shard_optimizer: false
sync_batch_norm: false
early_stopping: {patience: 4, min_delta: 1e-3}
gradient_check: {every: 1}
checkpoint: {every: 2 epochs, keep: 1}
"""
FILES = [FULL.encode(), *(path.read_bytes() for path in sorted((ROOT / "config").glob("*.yaml")))]

#: What YAML gives a meaning to, and what it forbids.
MARKS = (
    *("\t", "&a ", "*a", "&a [*a, *a]", "!!int ", "!x ", "!!python/object/apply:os.abort []", "---\n", "...\n"),
    *("<<", "<<: *a", "? ", "|\n", "|-\n  ", ">\n ", "%YAML 9", "%TAG ! x\n", "]", "}", "[", "{", ",", ": ", "- ", "#"),
    *("'", '"', "\x00", "\x1b[31m", "\x85", "\u2028", "\ufeff", "\u202e", "\r", "@", "`", "\n", " "),
)
SCALARS = (
    *("-1", "0", "1", "2", "10", "0.5", "1e-3", "1e400", "-1e400", ".nan", ".inf", "010", "0x1F", "1_000", "1:30", "~"),
    *("9" * 18, "9" * 19, "9" * 30, "9" * 5000, "2024-01-01", "=", "null", "true", "no", "é", "漢", "''", "|"),
    *('"\\uD800"', '"\\U0010FFFF"', '"\\UFFFFFFFF"', '"\\x00"', '"\\e[31m"', "x" * 300, "a.b", "../../etc/passwd"),
)
#: Words, spaces and signs of the files: texts that are put together from them are nearly valid.
WORDS = sorted({word for file in FILES for word in re.findall(r"\w+|\s+|[^\w\s]", file.decode())})

pieces = st.sampled_from([*WORDS, *MARKS, *SCALARS])


@st.composite
def changed_files(draw: st.DrawFn) -> bytes:
    """A file of config/ in which some bytes, or stretches of bytes, are changed, deleted or moved."""
    content = draw(st.sampled_from(FILES))
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.sampled_from([0, 0, 1, 1, 2, 5, 20, 100])))
        stretch = content[start:end]
        new = draw(
            st.one_of(
                st.just(b""),
                st.just(stretch * 2),
                st.just(stretch[::-1]),
                st.binary(min_size=1, max_size=4),
                pieces.map(str.encode),
                st.integers(0, 7).map(lambda bit: bytes(byte ^ 1 << bit for byte in stretch)),  # noqa: B023 - at once
            )
        )
        content = content[:start] + new + content[end:]
    return content


words = st.lists(pieces, max_size=40).map("".join)
scalars = st.one_of(st.sampled_from(WORDS).map(str.strip), st.sampled_from(SCALARS), st.text(max_size=5))
properties = st.sampled_from([""] * 12 + ["&a ", "&b ", "!!str ", "!x ", "!!map ", "!<y> "])


def _collections(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Lists and mappings of these items, in brackets, in braces and in blocks."""
    items = st.lists(inner, max_size=5)
    entries = st.lists(st.tuples(scalars, inner).map(": ".join), max_size=5)
    return st.one_of(
        items.map(lambda parts: f"[{', '.join(parts)}]"),
        entries.map(lambda parts: f"{{{', '.join(parts)}}}"),
        items.map(lambda parts: "".join(f"\n- {_indented(part)}" for part in parts)),
        entries.map(lambda parts: "".join(f"\n{_indented(part)}" for part in parts)),
        st.sampled_from(["*a", "*b", "<<: *a", "{<<: *a}"]),
        st.tuples(properties, inner).map("".join),
        st.tuples(st.sampled_from(["|\n", ">\n", "|2-\n", ">+\n"]), inner).map("  ".join),
    )


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


#: Far deeper, longer and more self-similar than anything that a person writes.
bombs = st.tuples(
    st.sampled_from(["[", "{a: ", "- ", "a:\n ", "? ", "[{", "!x ", "&a ", "'", "- - ", "a: &a [*a, ", "\n", "#"]),
    st.sampled_from([3, 63, 64, 65, 66, 500, 3000]),
).map(lambda pair: pair[0] * pair[1])

#: Documents from a grammar of YAML, or beginnings of them.
documents = st.tuples(
    st.sampled_from([""] * 9 + ["\ufeff", "%YAML 1.1\n---\n", "---\n", "--- |\n", "# x\n"] + [FULL] * 6),
    st.one_of(st.recursive(scalars, _collections, max_leaves=25), words, bombs),
    st.sampled_from([""] * 9 + ["\n", "\n---\na: 1\n", "\n...\n", " #", "\x00", "\t"]),
).map(lambda parts: "".join(parts).encode("utf-8", "surrogatepass"))

#: What few keys take.
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63), 2**64, 10**30, "", "x", [], {}, [[]], {"x": 1}),
    *(1e-320, 1e308, -0.5, "\x1b", "\u202e", "1e-3", "null", {"Linear": None}, {"Repeat": {"times": 2}}),
)
#: Values for keys of each type; not all of them are in range.
PLAIN: dict[Any, tuple[Any, ...]] = {
    bool: (True, False),
    int: (0, 1, 2, 3, 4, 8, 10, 32, 64, 784, -1, 10**6),
    float: (0, 1, 0.5, 0.1, 1e-3, 0.9, 2.0, -1.0),
    str: ("mean", "sum", "relu", "fan_in", "*.bias", "0.weight", "y", "zeros", "x.csv"),
    Path: ("data.csv", "data.npz", "nowhere", ".", "/"),
    type(None): (None,),
}
#: How many of a hundred keys are there.
SHARES = st.sampled_from([10, 30, 60, 100])
#: Nests layers no deeper.
MAX_DEPTH = 3
PERCENT = st.integers(0, 99)


@st.composite
def schema_configs(draw: st.DrawFn) -> bytes:
    """A file of config/ in which some keys have other values, mostly such as they take."""
    config = _plain_config(draw(st.sampled_from(FILES))) | _arguments(draw, RunConfig, 0, share=draw(SHARES))
    style = draw(st.sampled_from([True, False, None]))
    return yaml.safe_dump(config, default_flow_style=style, sort_keys=False, allow_unicode=True).encode()


@cache
def _plain_config(content: bytes) -> dict[str, Any]:
    tree = read_tree(content.decode(), partial(Place, "file"), Errors())
    assert tree is not None
    config: dict[str, Any] = plain(tree)
    return config


def _value(draw: st.DrawFn, hint: Any, depth: int) -> Any:
    """A value that a key of this type takes; one in a hundred is an odd value."""
    if draw(PERCENT) == 99:
        return draw(st.sampled_from([*ODD_VALUES, *WORDS]))
    origin, members = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _value(draw, members[0], depth)
    if origin in (Union, UnionType):
        return _value(draw, draw(st.sampled_from(members)), depth)
    if origin is Literal:
        return draw(st.sampled_from(members))
    if origin is partial or hint in KINDS:
        return _component(draw, members[0] if members else hint, depth)
    if origin in (list, tuple):
        return [_value(draw, members[0], depth) for _ in range(draw(st.integers(0, 3)))]
    if origin is dict:
        return draw(st.dictionaries(st.sampled_from(["parameters", "lr", "betas", "x"]), st.sampled_from(ODD_VALUES)))
    if is_dataclass(hint) and isinstance(hint, type):
        return _arguments(draw, hint, depth)
    return draw(st.sampled_from(PLAIN.get(hint, ODD_VALUES)))


def _arguments(draw: st.DrawFn, cls: Any, depth: int, share: int = 40) -> dict[str, Any]:
    """Keyword arguments of a class: each that has a default is there with a chance of so many in a hundred, others with
    95; one in a hundred has another name.
    """
    hints = get_type_hints(cls, include_extras=True)
    arguments = {}
    for field in fields(cls):
        if not field.init or (field.name == "model" and cls is not RunConfig):
            continue
        is_needed = cls is not RunConfig and field.default is MISSING and field.default_factory is MISSING
        if (number := draw(PERCENT)) >= (95 if is_needed else share):
            continue
        name = field.name if number else draw(st.sampled_from(WORDS))
        arguments[name] = _value(draw, hints[field.name], depth)
    return arguments


def _component(draw: st.DrawFn, kind: type, depth: int) -> Any:
    """A component of a kind: its name, or the name with keyword arguments or layers."""
    name = draw(st.sampled_from(sorted(named(kind))))
    cls = named(kind)[name]
    if depth == MAX_DEPTH or draw(PERCENT) < 10:
        return name
    if takes_layers(cls):
        return {name: [_component(draw, kind, depth + 1) for _ in range(draw(st.integers(0, 3)))]}
    return {name: _arguments(draw, cls, depth + 1)}
