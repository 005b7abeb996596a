"""Text: windows of characters. The target of each is the window one character later."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.data.base import Dataset, Examples, Split
from nn_manual.data.held_out import check_validation_fraction
from nn_manual.data.reading import SLICE_SIZE, check_memory, reading
from nn_manual.data.transform import Names, Transform
from nn_manual.errors import DataError
from nn_manual.messages.text import counted
from nn_manual.opening import open_file

#: A message names this many unknown characters: a text in another script can have thousands.
LISTED_CHARACTERS = 10

#: Unicode has characters up to 0x10FFFF.
NUM_CODE_POINTS = 0x110000


@dataclass
class Text(Dataset):
    """A text whose next characters are predicted: input and target int64 (context,), one class for each character.

        input[n, t]  = index of character n * stride + t
        target[n, t] = index of character n * stride + t + 1

    `file` is UTF-8; each of its line ends, \\n, \\r\\n or \\r, is read as \\n, and a byte order mark is left out.
    Without `file`, the text is Python's own manual: the values of pydoc_data.topics.topics in the order of their sorted
    keys, joined by \\n. It differs between versions of Python; in 3.11.7 it has 465,048 characters, 103 different ones.

    The validation part is the last round(validation_fraction * characters) characters. The classes are the characters
    of the training part, sorted by code point. No window crosses from one part to the other. The last characters of a
    part are left out if they don't fill a window. If the stride is less than the context, windows overlap; if it is
    more, the characters between windows are never seen.
    """

    file: Path | None = None
    context: int = 64
    stride: int = 64
    validation_fraction: float = 0.1

    predicts_characters = True

    def __post_init__(self) -> None:
        if self.file is not None:
            self.file = Path(self.file)  # Python code may pass a str
        for name in ("context", "stride"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        check_validation_fraction(self.validation_fraction)

    @property
    def example_shape(self) -> Shape:
        """(context,)."""
        return (self.context,)

    def load(
        self, seed: int, dtype: np.dtype[Any], transform: Transform | None = None  # noqa: ARG002 - the text is the split
    ) -> Split:
        """Read the text and cut it into windows, which are views of one array of indices.

        Raises DataError for a file that can't be read or isn't UTF-8, for a part that has no whole window, and for
        characters of the validation part that the training part doesn't have.
        """
        source = "pydoc_data.topics" if self.file is None else str(self.file)
        text = python_manual() if self.file is None else read_text(self.file)
        num_train = len(text) - round(self.validation_fraction * len(text))
        for part, length in (("training", num_train), ("validation", len(text) - num_train)):
            if length <= self.context and (part == "training" or self.validation_fraction > 0):
                raise DataError(
                    f"{source}: the {part} part has {counted(length, 'character')}, but one window of "
                    f"context={self.context} takes {self.context + 1:,}, with its last target"
                )
        if transform is None:
            part, is_known = f"validation part, from character {num_train:,} on,", np.zeros(NUM_CODE_POINTS, dtype=bool)
            for code_points in _code_points(text, num_train):
                is_known[code_points] = True
            vocabulary = np.flatnonzero(is_known)
        else:
            part, vocabulary = "text", _vocabulary(transform.names.classes)
        index_of = np.full(NUM_CODE_POINTS, -1, np.int32)
        index_of[vocabulary] = np.arange(len(vocabulary))
        check_memory(source, len(text) * np.dtype(np.int64).itemsize)
        indices = np.empty(len(text), np.int64)
        for number, code_points in enumerate(_code_points(text, len(text))):
            indices[number * SLICE_SIZE : (number + 1) * SLICE_SIZE] = index_of[code_points]
        unknown = np.flatnonzero(indices < 0)
        if unknown.size:
            raise DataError(
                f"{source}: the {part} has characters that training didn't have: {_listed(text, unknown)}"
            )
        return Split(
            self._windows(indices[:num_train]),
            self._windows(indices[num_train:]),
            len(vocabulary),
            Transform(names=Names(classes=tuple(map(chr, vocabulary)))),
        )

    def _windows(self, indices: Array) -> Examples:
        """The windows of one part; an empty part has none."""
        if not indices.size:
            none = np.empty((0, self.context), np.int64)
            return Examples(none, none)
        input, target = (
            np.lib.stride_tricks.sliding_window_view(part, self.context, writeable=True)[:: self.stride]
            for part in (indices[:-1], indices[1:])
        )
        return Examples(input, target)


def read_text(file: Path) -> str:
    """The characters of a UTF-8 file, its line ends as \\n, without a byte order mark.

    Raises DataError if the file can't be read, and for the first byte that isn't UTF-8, with its offset.
    """
    with reading(file, ValueError), open_file(file) as stream:  # ValueError: for a path with a NUL in it
        check_memory(file, os.fstat(stream.fileno()).st_size)
        content = stream.read()
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        byte = content[error.start]
        raise DataError(f"{file}: is not UTF-8: byte 0x{byte:02x} at offset {error.start:,}, {error.reason}") from error
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _code_points(text: str, stop: int) -> Iterator[Array]:
    """The code points of text[:stop], in slices."""
    for start in range(0, stop, SLICE_SIZE):
        yield np.frombuffer(text[start : min(start + SLICE_SIZE, stop)].encode("utf-32-le"), np.uint32)


def python_manual() -> str:
    """Python's own manual."""
    from pydoc_data.topics import topics  # half a megabyte, which only this data set needs

    return "\n".join(topics[name] for name in sorted(topics))


def _vocabulary(characters: tuple[str, ...] | None) -> Array:
    """The code points of training's characters. Raises ValueError if training's classes aren't characters."""
    if characters is None or any(len(character) != 1 for character in characters):
        raise ValueError("is a text, but the classes of training aren't characters")
    return np.array([ord(character) for character in characters])


def _listed(text: str, unknown: Array) -> str:
    """The first places of different characters: 'é' at offset 17, 'ß' at offset 23 and 4 more."""
    first_of: dict[str, int] = {}
    for offset in unknown.tolist():
        first_of.setdefault(text[offset], offset)
    places = [f"{character!r} at offset {offset:,}" for character, offset in first_of.items()]
    num_more = len(places) - LISTED_CHARACTERS
    return ", ".join(places[:LISTED_CHARACTERS]) + (f" and {num_more} more" if num_more > 0 else "")
