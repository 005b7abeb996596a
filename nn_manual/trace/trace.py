"""An operation on views of storages, and where it stands in the formulas."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array, Shape


class CannotTrace(Exception):  # noqa: N818 - says what can't be done, not that something broke
    """A formula does what no recording can repeat; the text says which, what, and where."""


class View(NamedTuple):
    """Where an array lies: it begins `offset` bytes after the beginning of the storage."""

    storage: int
    offset: int
    shape: Shape
    strides: tuple[int, ...]
    dtype: np.dtype[Any]


class Storage(NamedTuple):
    """A piece of memory. `name` is that of an array that the step was given, "" for one that the step made. `initial`
    is what it holds at first, as bytes, where a formula reads that: of an np.zeros, and of an np.empty, as if it were
    one, where indices say which part is written.
    """

    name: str
    num_bytes: int
    initial: Array | None = None


class FixedValue(NamedTuple):
    """A number or an array that doesn't depend on what the step was given: a setting, an np.arange."""

    value: Any

    def is_same(self, other: FixedValue) -> bool:
        """Whether both are bit for bit the same."""
        own, its = self.value, other.value
        if isinstance(own, np.ndarray | np.generic) and isinstance(its, np.ndarray | np.generic):
            return own.dtype == its.dtype and own.shape == its.shape and own.tobytes() == its.tobytes()
        return type(own) is type(its) and bool(own == its or own is its)


class SourcePlace(NamedTuple):
    """Where an operation stands: the layer ("0 (Linear)"), loss or optimizer, its method, file and line."""

    owner: str
    method: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{f'{self.owner}.{self.method}, ' if self.owner else ''}{self.file}:{self.line}"


class TracedOperation(NamedTuple):
    """`function(*arguments, **keywords)`, written to `output`, and `name`, which says which function it is.

    Arguments are views, constants, and tuples and lists of these. `is_in_place` says that the function itself writes to
    the output, which is then among its arguments.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    output: View
    place: SourcePlace
    is_in_place: bool = False


class Trace(NamedTuple):
    """The operations of a step, in their order, and the storages that they work on. `results` are the views of what
    nobody gave to the step and somebody wants of it: the loss.
    """

    storages: list[Storage]
    operations: list[TracedOperation]
    results: dict[str, View]


def leaves(argument: Any) -> Iterator[Any]:
    """The views, constants and other things in an argument, which may be a tuple, a list or a dict of arguments."""
    if isinstance(argument, View | FixedValue):
        yield argument
    elif isinstance(argument, tuple | list):
        for inner in argument:
            yield from leaves(inner)
    elif isinstance(argument, dict):
        for key, inner in argument.items():
            yield key
            yield from leaves(inner)
    else:
        yield argument


def views(argument: Any) -> Iterator[View]:
    """The views among the leaves of an argument."""
    return (leaf for leaf in leaves(argument) if isinstance(leaf, View))


def array_of(view: View, memory: list[Array]) -> Array:
    """The array at a view, of storages as bytes."""
    if 0 in view.shape:  # NumPy takes no strides for what lies nowhere
        return np.ndarray(view.shape, view.dtype, memory[view.storage].data)
    return np.ndarray(view.shape, view.dtype, memory[view.storage].data, view.offset, view.strides)


def sum_of(array: Array) -> int:
    """A number that is another one for other bytes."""
    return zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")
