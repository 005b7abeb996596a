"""Edits of one file of a run: values of its JSON or YAML, its lines, its arrays, its bytes.

An edit takes the file and a generator, changes the file, and returns a description of what it did.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import safetensors.numpy
import yaml
from numpy.random import Generator

from nn_manual.messages.text import one_line

Edit: TypeAlias = Callable[[Path, Generator], str]

#: Values that only text can express: numbers beyond all floats, values that JSON doesn't have, brackets nearly as deep
#: as Python allows.
RAW = {
    "@1e999": "1e999",
    "@NaN": "NaN",
    "@Infinity": "-Infinity",
    "@deep list": "[" * 900 + "]" * 900,
    "@deep object": '{"x":' * 900 + "0" + "}" * 900,
    "@long number": "9" * 5000,
}
#: Values that replace another one.
JUNK: list[Any] = [
    *(None, True, False, 0, 1, -1, 1.5, -0.5, 1e300, 2**62, 2**63, 2**70, -(2**70), 10**9),
    *("", "x", "0", "\0", "\ud800", "\x1b[2J", "\u202e", "..", "../../../x", "a/b", "x" * 5000, "é\n\r"),
    *([], {}, [None], [[]], ["x"], {"x": 1}, {"float": "inf"}, {"float": "x"}, {"float": []}, [1, "x", {}]),
    *RAW,
]
#: A config may ask for more epochs, and for memory: other values of these keys are no mistake.
SMALL_JUNK = [value for value in JUNK if not (isinstance(value, int | float) and value > 2)]
#: Values that can't be a number of threads: OpenBLAS takes some of them for another number, and says nothing.
THREADS = (10**9, 2**31, 2**70, 0, -1, 1.5, "x", True, [1])
#: Counts in a manifest that belong to one place in the run, by the object that has them.
COUNTS = {
    "": ("step", "epoch", "batch"),
    "last": ("epoch", "step"),
    "best": ("epoch", "step"),
    "tally": ("num_steps",),
    "early_stopping": ("num_epochs_since",),
}
#: Counts that have a bound. For the others only one value is right.
BOUNDED = ("best.epoch", "best.step", "tally.num_steps", "early_stopping.num_epochs_since")
#: Other lines.
LINES = [
    *(b"\n", b"x\n", b"{}\n", b"[]\n", b"null\n", b'"x"\n', b'{"step": 1}\n', b"\xff\xfe\n", b"\0\n", b"1e999\n"),
    *(b"[" * 900 + b"]" * 900 + b"\n", b'{"x":' * 5000 + b"\n", b"9" * 5000 + b"\n"),
]


def cited(value: object) -> str:
    """A value in the words of an edit: printable, and short."""
    return one_line(repr(value), 40)


def one_of(random: Generator, things: Any) -> Any:
    """Any of these."""
    return things[random.integers(len(things))]


def edit_values(path: Path, random: Generator) -> str:
    """Replace, take out or put in one to three values of a JSON or YAML file."""
    is_json = path.suffix == ".json"
    tree = json.loads(path.read_bytes()) if is_json else yaml.safe_load(path.read_bytes())
    words = [_edit_tree(tree, random, JUNK if is_json else SMALL_JUNK) for _ in range(_few(random))]
    path.write_text(_as_json(tree) if is_json else _as_yaml(tree))
    return " and ".join(words)


def edit_value_of_line(path: Path, random: Generator) -> str:
    """Replace, take out or put in a value of one line of a .jsonl file."""
    lines = path.read_text().splitlines()
    if not lines:
        return put_in_lines(path, random)
    number = int(random.integers(len(lines)))
    record = json.loads(lines[number])
    words = _edit_tree(record, random, JUNK)
    lines[number] = _with_raw(json.dumps(record))
    path.write_text("\n".join(lines) + "\n")
    return f"line {number + 1}: {words}"


def _few(random: Generator) -> int:
    return 1 + int(random.random() < 0.2) + int(random.random() < 0.1)


def _edit_tree(tree: Any, random: Generator, junk: list[Any]) -> str:
    """Edit one place of a tree of dicts and lists: each key of the top is equally likely, however much it holds."""
    place, keys, node = tree, list[Any](), tree
    while isinstance(node, dict | list) and node and (not keys or random.random() < 0.6):
        place = node
        keys.append(one_of(random, list(place) if isinstance(place, dict) else range(len(place))))
        node = place[keys[-1]]
    if not keys:
        return "nothing is there to be replaced"
    name, key = cited(".".join(map(str, keys)))[1:-1], keys[-1]
    chance = random.random()
    if chance < 0.15:
        del place[key]
        return f"{name} is taken out"
    value = one_of(random, SMALL_JUNK if "epochs" in keys else junk)
    if chance < 0.25 and isinstance(place, dict):
        other = str(one_of(random, [item for item in junk if isinstance(item, str)]))
        place[other] = place.pop(key) if random.random() < 0.5 else value
        return f"beside or instead of {name} there is {cited(other)}"
    place[key] = value
    return f"{name} is {cited(value)}"


def _with_raw(text: str) -> str:
    for name, raw in RAW.items():
        text = text.replace(f'"{name}"', raw)
    return text


def _as_json(tree: Any) -> str:
    return _with_raw(json.dumps(tree, indent=2) + "\n")


def _as_yaml(tree: Any) -> str:
    text = yaml.safe_dump(tree, sort_keys=False, default_flow_style=None, width=10**9)
    for name, raw in RAW.items():
        text = text.replace(f"'{name}'", raw)
    return text


def edit_threads(path: Path, random: Generator) -> str:
    """An impossible number of threads in a manifest."""
    manifest = json.loads(path.read_bytes())
    manifest["blas"]["num_threads"] = value = one_of(random, THREADS)
    path.write_text(_as_json(manifest))
    return f"blas.num_threads is {cited(value)}"


def edit_counts(path: Path, random: Generator) -> str:
    """A count in a manifest that belongs to another place in the run."""
    manifest = json.loads(path.read_bytes())
    holders = {"": manifest} | {f"{name}.": manifest[name] for name in COUNTS if name}
    places = [(name + key, holder, key) for name, holder in holders.items() for key in COUNTS[name.removesuffix(".")]]
    words, holder, key = one_of(random, [place for place in places if place[2] in place[1]])
    holder[key] += int(one_of(random, [10**6, 2**40] if words in BOUNDED else [1, -1, 10**6, 2**40]))
    path.write_text(_as_json(manifest))
    return f"{words} is {holder[key]}"


def edit_names(path: Path, random: Generator) -> str:
    """Other names of columns or of classes in a data.json: as many as there are, or as the model may have."""
    content = json.loads(path.read_bytes())
    key = str(one_of(random, ["input", "target", "classes"]))
    names = content["names"][key] or ["a", "b", "c"]
    place = int(random.integers(len(names)))
    names[place] = name = str(one_of(random, [item for item in JUNK if isinstance(item, str)]))
    content["names"][key] = names
    path.write_text(json.dumps(content, indent=2) + "\n")
    return f"names.{key}.{place} is {cited(name)}"


def put_in_lines(path: Path, random: Generator) -> str:
    """Delete, double, reorder or tear the lines of a file, or put others in."""
    lines = path.read_bytes().splitlines(keepends=True)
    place = int(random.integers(len(lines) + 1))
    words, changed = one_of(
        random,
        [
            (f"line {place + 1} is deleted", lines[:place] + lines[place + 1 :]),
            (f"line {place + 1} is there twice", lines[: place + 1] + lines[place:]),
            ("lines are reordered", [lines[index] for index in random.permutation(len(lines))]),
            ("the last line is torn", [*lines[:-1], *(line[:-9] for line in lines[-1:])]),
            ("another line is put in", [*lines[:place], one_of(random, LINES), *lines[place:]]),
        ],
    )
    path.write_bytes(b"".join(changed))
    return str(words)


def edit_bytes(path: Path, random: Generator) -> str:
    """Cut off, extend, flip or replace the bytes of any file."""
    data = path.read_bytes()
    place = int(random.integers(len(data) + 1))
    flipped = bytearray(data or b"x")
    flipped[place % len(flipped)] ^= 1 << random.integers(8)
    words, changed = one_of(
        random,
        [
            (f"cut off at byte {place}", data[:place]),
            ("extended", data + random.bytes(int(random.integers(1, 40)))),
            (f"a bit of byte {place} is flipped", bytes(flipped)),
            ("empty", b""),
            ("zeros", bytes(len(data))),
            ("UTF-16", data.decode(errors="replace").encode("utf-16")),
            ("with a byte-order mark", b"\xef\xbb\xbf" + data),
            ("brackets", b"[" * 5000),
        ],
    )
    path.write_bytes(changed)
    return str(words)


def edit_arrays(path: Path, random: Generator) -> str:
    """Other names, shapes, dtypes and values in a safetensors file."""
    arrays = safetensors.numpy.load(path.read_bytes())
    if not arrays:
        return edit_bytes(path, random)
    name = str(one_of(random, list(arrays)))
    array = arrays[name]
    other = str(one_of(random, ["", "x", "0.weight", "\x1b[2J", "x" * 5000, "momentum_buffer 0.weight", name + " "]))
    dtype = str(one_of(random, ["f2", "f4", "f8", "i1", "i8", "u8", "?"]))
    value = float(one_of(random, [np.nan, np.inf, -np.inf, 0.0, 1e30, -1.0]))
    with np.errstate(all="ignore"):
        changes: list[tuple[str, dict[str, Any]]] = [
            (f"{name} is taken out", {}),
            (f"{name} is called {cited(other)}", {other: array}),
            (f"there is also {cited(other)}", {name: array, other: array}),
            (f"{name} is flat", {name: array.reshape(-1)}),
            (f"{name} has one more axis", {name: array[..., np.newaxis]}),
            (f"{name} has no entry", {name: array.reshape(-1)[:0]}),
            (f"{name} is a scalar", {name: np.zeros((), array.dtype)}),
            (f"{name} is twice as long", {name: np.concatenate([np.atleast_1d(array)] * 2)}),
            (f"{name} has dtype {dtype}", {name: array.astype(dtype)}),
            (f"{name} is {value}", {name: np.full_like(array, value)}),
        ]
    words, changed = one_of(random, changes)
    del arrays[name]
    path.write_bytes(safetensors.numpy.save(arrays | changed))
    return str(words)


def edit_header(path: Path, random: Generator) -> str:
    """Another header of a safetensors file; its data stay."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    try:
        header = json.loads(data[8 : 8 + size])
    except ValueError:  # a second edit
        return edit_bytes(path, random)
    words = _edit_tree(header, random, [*JUNK, "BF16", "F8_E4M3", "F64", [0, 2**62]])
    text = _with_raw(json.dumps(header)).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + size :])
    return f"in the header {words}"
