"""A start from another program's weights: each parameter's tensor in a safetensors file, by its name there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

import numpy as np

from nn_manual.arrays import Array
from nn_manual.config import RunConfig
from nn_manual.data import Split
from nn_manual.errors import ConfigError, DataError
from nn_manual.messages.text import advice, counted, nearest, quoted
from nn_manual.model import Sequential
from nn_manual.run.gpt2 import MASK, gpt2_names, gpt2_settings, is_gpt2
from nn_manual.run_directory.metrics import DATA_FILE
from nn_manual.run_directory.records import read_object
from nn_manual.run_directory.weights import DTYPES, WeightsFile, opened_weights

#: What behind a name of the file asks for the transposed tensor.
TRANSPOSED = ".T"
#: So many misfits are shown: a GPT-2 has 148 parameters.
MAX_MISFITS = 20


class _Source(NamedTuple):
    """A tensor of the file, and whether the model has it transposed."""

    name: str
    is_transposed: bool

    @classmethod
    def of(cls, text: str, names: Collection[str]) -> _Source:
        """What a text such as "c_fc.weight.T" asks for in a file that has tensors of these names."""
        is_transposed = text.endswith(TRANSPOSED) and text not in names
        return cls(text.removesuffix(TRANSPOSED) if is_transposed else text, is_transposed)

    def read(self, file: WeightsFile, dtype: np.dtype[np.generic]) -> Array:
        """The tensor as the model has it; what is too large for its dtype is infinite."""
        with np.errstate(over="ignore"):
            tensor = file.read(self.name).astype(dtype, copy=False)
        return tensor.T if self.is_transposed else tensor


class _Misfit(NamedTuple):
    """What doesn't fit, and the parameter whose line in the table it belongs to, if it is one's."""

    line: str
    name: str = ""


def start_from_file(config: RunConfig, split: Split, model: Sequential) -> list[str]:
    """Copy the tensors of the file that `init_from` names into the model's parameters and buffers. Returns notes.

    Before anything is changed, raises ConfigError with a line for each parameter and buffer that has no tensor, or one
    that doesn't fit; and DataError for a file that can't be read. Both begin with the place of the file's name.
    """
    if config.init_from is None:
        return []
    path, names = config.init_from.file, config.init_from.names
    own, first_of = model.state_dict(), model.ties.first_of
    misfits: list[_Misfit] = []
    with _placed(config), opened_weights(path) as file:
        sources = _sources(names, model, file, misfits)
        alone = {name: each for name, each in sources.items() if each != sources.get(first_of.get(name, ""))}
        misfits += [each for name, source in alone.items() for each in _misfits(name, own[name], source, file)]
        if names == "gpt2" and not misfits:
            misfits += [_Misfit(line) for line in gpt2_settings(model, path)]
        misfits += [] if misfits else _that_differ(sources, first_of, file, model.dtype)
        if misfits:
            raise ConfigError(*_lines(config, misfits))
        for name, source in sources.items():
            if name not in first_of:
                own[name][...] = source.read(file, own[name].dtype)
    taken = Counter(source.name for name, source in sources.items() if name not in first_of)
    unused = {name for name in file.shapes.keys() - taken.keys() if not MASK.fullmatch(name)}
    unused -= {sources[name].name for name in first_of if name in sources}
    words = [f"the run starts from {counted(len(taken), 'tensor')} of {path}"]
    words += [f"{count} times from {quoted(name)}" for name, count in taken.items() if count > 1 and names != "gpt2"]
    words += [f"and not from {_some(unused)}"] if unused else []
    return [f"{_place(config)}: note: {', '.join(words)}", *_other_data(config, split)]


def _other_data(config: RunConfig, split: Split) -> Iterator[str]:
    """A note where the weights of a run start one whose columns, classes or characters have other numbers."""
    assert config.init_from is not None
    path = config.init_from.file.with_name(DATA_FILE)
    with suppress(DataError):  # a file of the same name, of another program
        if path.is_file() and read_object(path) != json.loads(json.dumps(split.transform.as_json())):
            words = "that run's data had other names, or was scaled otherwise: what the weights meant there, "
            yield f"{_place(config)}: note: {path}: {words}they may not mean here"


def _place(config: RunConfig) -> object:
    """The place of the file's name."""
    return config.places.get("init_from.file", "init_from.file")


@contextmanager
def _placed(config: RunConfig) -> Iterator[None]:
    """The context in which a file that can't be read is reported at the place of its name."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{_place(config)}: {error}") from error


def _lines(config: RunConfig, misfits: list[_Misfit]) -> Iterator[str]:
    """The misfits, behind a line that names the file. One of a parameter that stands in the table is at its line."""
    assert config.init_from is not None
    num_others = len(misfits) - MAX_MISFITS
    yield f"{_place(config)}: {config.init_from.file} doesn't fit the model:"
    for line, name in misfits[:MAX_MISFITS]:
        place = config.places.get(f"init_from.names.{name}")
        yield f"{place}: {line}" if place is not None and place.line else line
    if num_others > 0:
        yield f"and {counted(num_others, 'other')}"


def _some(names: Collection[str]) -> str:
    first = sorted(names)[:5]
    return ", ".join(map(quoted, first)) + (f" and {len(names) - 5:,} others" if len(names) > 5 else "")


def _sources(
    names: str | Mapping[str, str | None], model: Sequential, file: WeightsFile, misfits: list[_Misfit]
) -> dict[str, _Source]:
    """The tensor of each parameter and buffer. A further name of a shared parameter is among them where the file has a
    tensor for it, too. If one name of a shared parameter is to stay as drawn, all of it does.
    """
    own, first_of = model.state_dict(), model.ties.first_of
    texts: Mapping[str, str | None] = {name: name for name in own}
    if names == "gpt2":
        of_gpt2: list[str] = []
        texts = gpt2_names(model, file.shapes, of_gpt2)
        misfits += map(_Misfit, of_gpt2)
    elif not isinstance(names, str):
        unknown = [name for name in names if name not in own]
        misfits += [_Misfit(f"the model has no parameter {quoted(name)}{advice(name, own)}", name) for name in unknown]
        texts = {**texts, **names}
    drawn = {first_of.get(name, name) for name, text in texts.items() if text is None}
    sources = {
        name: _Source.of(text, file.shapes)
        for name in own
        if (text := texts.get(name)) is not None and first_of.get(name, name) not in drawn
    }
    missing = {name: source.name for name, source in sources.items() if source.name not in file.shapes}
    wanted = {name: text for name, text in missing.items() if name not in first_of}
    if drawn and not sources:
        misfits.append(_Misfit("nothing of it is taken: names has null for each parameter"))
    elif wanted and not file.shapes:
        misfits.append(_Misfit("it holds no tensors"))
    elif wanted and names == "torch" and is_gpt2(file.shapes):
        misfits.append(_Misfit("it holds a GPT-2: write names: gpt2 behind the file"))
    else:
        misfits += _missing(wanted, file.shapes.keys() - {source.name for source in sources.values()})
    return {name: source for name, source in sources.items() if name not in missing}


def _missing(wanted: Mapping[str, str], unused: Collection[str]) -> Iterator[_Misfit]:
    """A line for each parameter whose tensor isn't there, and what the file holds beside those that are taken."""
    meant = {name: nearest(text, unused) for name, text in wanted.items()}
    for name, text in wanted.items():
        near = meant[name]
        meant_words = f"; did you mean {quoted(near)}?" if near else ""
        yield _Misfit(f"{name}: there is no tensor {quoted(text)}{meant_words}", name)
    if unused and None in meant.values():
        yield _Misfit(f"nothing takes {_some(unused)}")


def _misfits(name: str, own: Array, source: _Source, file: WeightsFile) -> Iterator[_Misfit]:
    """Why a tensor can't be copied into the model's array of this name, which says so in its line of the table."""
    for line in _reasons(name, own, source, file):
        yield _Misfit(line, name)


def _reasons(name: str, own: Array, source: _Source, file: WeightsFile) -> Iterator[str]:
    shape, code = file.shapes[source.name], file.dtypes[source.name]
    dtype = DTYPES.get(code)
    if source.is_transposed and len(shape) != 2:
        yield f"{name}: {TRANSPOSED} takes matrices, and {quoted(source.name)} has the shape {shape}"
    elif (shape[::-1] if source.is_transposed else shape) != own.shape:
        is_turned = len(shape) == 2 and shape[::-1] == own.shape
        turned = f"; write {source.name}{TRANSPOSED} for the transposed one" if is_turned else ""
        words = f"{name} has the shape {own.shape}, {quoted(source.name)} has {shape}"
        yield words + (f", transposed {shape[::-1]}" if source.is_transposed else turned)
    elif dtype is None or dtype.kind != own.dtype.kind:
        advised = f"; write it as {own.dtype.name} there" if own.dtype.kind == "f" else ""
        yield f"{name} is {own.dtype}, {quoted(source.name)} is {code}{advised}"
    elif not np.isfinite(source.read(file, own.dtype)).all():
        yield f"{name}: {quoted(source.name)} has numbers that are not finite as {own.dtype}"


def _that_differ(
    sources: Mapping[str, _Source], first_of: Mapping[str, str], file: WeightsFile, dtype: np.dtype[np.generic]
) -> Iterator[_Misfit]:
    """A shared parameter whose tensors in the file differ."""
    for other, first in first_of.items():
        if other in sources and first in sources:
            mine, theirs = sources[first], sources[other]
            if mine != theirs and not np.array_equal(mine.read(file, dtype), theirs.read(file, dtype)):
                tensors = f"{quoted(mine.name)} and {quoted(theirs.name)}"
                yield _Misfit(f"{first} and {other} are one parameter, {tensors} differ", other)
