"""A start from another program's weights: each parameter's tensor in a safetensors file, by its name there."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from nn_manual.arrays import Array
from nn_manual.config import RunConfig
from nn_manual.errors import ConfigError
from nn_manual.messages.text import advice, counted, nearest, quoted
from nn_manual.model import Sequential
from nn_manual.run_directory.weights import WeightsFile, opened_weights

#: What behind a name of the file asks for the transposed tensor.
TRANSPOSED = ".T"

#: GPT-2's tensors of a block, in the order of the model's parameters. Its layers multiply by weights (in, out).
GPT2_BLOCK = (
    *("ln_1.weight", "ln_1.bias", "attn.c_attn.weight.T", "attn.c_attn.bias", "attn.c_proj.weight.T"),
    *("attn.c_proj.bias", "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight.T", "mlp.c_fc.bias", "mlp.c_proj.weight.T"),
    "mlp.c_proj.bias",
)
#: The causal masks that older files hold for each block.
GPT2_MASK = re.compile(r".*\bh\.\d+\.attn\.(masked_)?bias")


class _Source(NamedTuple):
    """A tensor of the file, and whether the model has it transposed."""

    name: str
    is_transposed: bool

    @classmethod
    def of(cls, text: str, names: Collection[str]) -> _Source:
        """What a text such as "c_fc.weight.T" asks for in a file that has tensors of these names."""
        is_transposed = text.endswith(TRANSPOSED) and text not in names
        return cls(text.removesuffix(TRANSPOSED) if is_transposed else text, is_transposed)

    def read(self, file: WeightsFile) -> Array:
        """The tensor as the model has it."""
        tensor = file.read(self.name)
        return tensor.T if self.is_transposed else tensor


def start_from_file(config: RunConfig, model: Sequential) -> str:
    """Copy the tensors of the file that `init_from` names into the model's parameters and buffers.

    Returns a note on tensors that the model has no place for, or an empty text. Before anything is changed, raises
    ConfigError with a line for each parameter and buffer that has no tensor, or one that doesn't fit; and DataError for
    a file that can't be read.
    """
    if config.init_from is None:
        return ""
    place, path = config.places.get("init_from", "init_from"), config.init_from.file
    own, first_of = model.state_dict(), model.ties.first_of
    with opened_weights(path) as file:
        misfits: list[str] = []
        sources = _sources(config.init_from.names, own, first_of, file, misfits)
        misfits += [line for name, source in sources.items() for line in _misfits(name, own[name], source, file)]
        misfits += [] if misfits else _that_differ(sources, first_of, file)
        if misfits:
            raise ConfigError(*(f"{place}: {path}: {line}" for line in misfits))
        for name, source in sources.items():
            own[name][...] = source.read(file)
    unused = file.shapes.keys() - {source.name for source in sources.values()}
    unused = {name for name in unused if not GPT2_MASK.fullmatch(name)}
    if not unused:
        return ""
    return f"{place}: note: {path}: the model takes {len(sources):,} tensors, and not {_some(unused)}"


def _some(names: Collection[str]) -> str:
    first = sorted(names)[:5]
    return ", ".join(map(quoted, first)) + (f" and {len(names) - 5:,} others" if len(names) > 5 else "")


def _sources(
    names: str | Mapping[str, str | None],
    own: Mapping[str, Array],
    first_of: Mapping[str, str],
    file: WeightsFile,
    misfits: list[str],
) -> dict[str, _Source]:
    """The tensor of each parameter and buffer. A further name of a shared parameter is among them where the file has a
    tensor for it, too.
    """
    needed = [name for name in own if name not in first_of]
    texts: dict[str, str | None] = {name: name for name in own}
    if names == "gpt2":
        texts = dict(_gpt2_names(needed, first_of, file.shapes, misfits))
    elif not isinstance(names, str):
        misfits += [
            f"names: the model has no parameter {quoted(name)}{advice(name, own)}" for name in names if name not in own
        ]
        texts |= names
    sources = {name: _Source.of(text, file.shapes) for name in own if (text := texts.get(name)) is not None}
    missing = {name: source for name, source in sources.items() if source.name not in file.shapes}
    unused = file.shapes.keys() - {source.name for source in sources.values()}
    is_any_far = False
    for name, source in missing.items():
        if name not in first_of:
            meant = nearest(source.name, unused)
            is_any_far |= meant is None
            words = "" if meant is None else f"; did you mean {quoted(meant)}?"
            misfits.append(f"there is no {quoted(source.name)} for {name}{words}")
    if is_any_far and unused:
        misfits.append(f"it holds {_some(unused)}")
    return {name: source for name, source in sources.items() if name not in missing}


def _gpt2_names(
    own: list[str], first_of: Mapping[str, str], found: Collection[str], misfits: list[str]
) -> Iterator[tuple[str, str]]:
    """The name that each parameter of a GPT has in a file of GPT-2's: both have them in the order of forward. Some
    files have "transformer." before all names but the head's.
    """
    prefix = "transformer." if any(name.startswith("transformer.") for name in found) else ""
    blocks = {match[1] for name in found if (match := re.match(rf"{re.escape(prefix)}h\.(\d+)\.", name))}
    theirs = [f"{prefix}wte.weight", f"{prefix}wpe.weight"]
    theirs += [f"{prefix}h.{number}.{name}" for number in range(len(blocks)) for name in GPT2_BLOCK]
    theirs += [f"{prefix}ln_f.weight", f"{prefix}ln_f.bias"]
    head = "lm_head.weight" if "lm_head.weight" in found else theirs[0]
    if len(own) == len(theirs) + 1:
        theirs.append(head)
    if len(own) != len(theirs):
        misfits.append(
            f"names: a GPT-2 of {counted(len(blocks), 'block')}, as in this file, has {len(theirs)} parameters, and "
            f"one more with a head that isn't tied; the model has {len(own)}"
        )
        return
    yield from zip(own, theirs, strict=True)
    if head != theirs[0]:
        yield from ((other, head) for other, first in first_of.items() if first == own[0])


def _misfits(name: str, own: Array, source: _Source, file: WeightsFile) -> Iterator[str]:
    """Why a tensor can't be copied into the model's array of this name."""
    shape, dtype = file.shapes[source.name], file.dtypes[source.name]
    if (shape[::-1] if source.is_transposed else shape) != own.shape:
        turned = f"; write {source.name}{TRANSPOSED} for the transposed one" if shape[::-1] == own.shape else ""
        transposed = ", to be transposed" if source.is_transposed else ""
        yield f"{name} has the shape {own.shape}, {quoted(source.name)} has {shape}{transposed}{turned}"
    elif dtype is None or dtype.kind != own.dtype.kind:
        yield f"{name} is {own.dtype}, {quoted(source.name)} is {dtype or 'of a dtype that NumPy lacks'}"
    elif not np.isfinite(file.read(source.name)).all():
        yield f"{quoted(source.name)} for {name} has numbers that are not finite"


def _that_differ(sources: Mapping[str, _Source], first_of: Mapping[str, str], file: WeightsFile) -> Iterator[str]:
    """A shared parameter whose tensors in the file differ."""
    for other, first in first_of.items():
        if other in sources and first in sources:
            mine, theirs = sources[first], sources[other]
            if mine != theirs and not np.array_equal(mine.read(file), theirs.read(file)):
                yield f"{first} and {other} are one parameter, {quoted(mine.name)} and {quoted(theirs.name)} differ"
