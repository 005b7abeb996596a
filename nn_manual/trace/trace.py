"""A trace: operations on views of storages, with their places in the formulas."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array, Shape


class CannotTrace(Exception):  # noqa: N818 - says what can't be done, not that something broke
    """A formula does something that a trace can't repeat on other values. The text says what, and where."""


class View(NamedTuple):
    """Where an array lies: it begins `offset` bytes after the beginning of the storage."""

    storage: int
    offset: int
    shape: Shape
    strides: tuple[int, ...]
    dtype: np.dtype[Any]


class Storage(NamedTuple):
    """A piece of memory. `name` is the name of an array that the step was given, "" for memory that the step made.
    `initial` is what the memory holds at first, as bytes, if a formula reads it, as after np.zeros. An np.empty counts
    as zeros if indices decide which part of it is written.
    """

    name: str
    num_bytes: int
    initial: Array | None = None


class FixedValue(NamedTuple):
    """A number or an array that doesn't depend on what the step was given: a setting, an np.arange."""

    value: Any

    def is_same(self, other: FixedValue) -> bool:
        """Whether both values are the same, bit for bit."""
        own, its = self.value, other.value
        if isinstance(own, np.ndarray | np.generic) and isinstance(its, np.ndarray | np.generic):
            return own.dtype == its.dtype and own.shape == its.shape and own.tobytes() == its.tobytes()
        return type(own) is type(its) and bool(own == its or own is its)


class SourcePlace(NamedTuple):
    """Where an operation stands in the source: the owner, which is a layer ("0 (Linear)"), "loss" or "optimizer"; its
    method; file and line.
    """

    owner: str
    method: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{f'{self.owner}.{self.method}, ' if self.owner else ''}{self.file}:{self.line}"


class TracedOperation(NamedTuple):
    """`function(*arguments, **keywords)`, whose result goes to `output`. `name` is the name of the function.

    Arguments are views, fixed values, and tuples and lists of these. With `is_in_place` the function itself writes to
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
    """The operations of a step, in their order, and the storages that they work on. `results` are views of what the
    step computes besides what it writes to the arrays that it was given: the loss, and what an observer wants.
    """

    storages: list[Storage]
    operations: list[TracedOperation]
    results: dict[str, View]


def leaves(argument: Any) -> Iterator[Any]:
    """The views, fixed values and other values in an argument, which may be a tuple, a list or a dict of arguments."""
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


def array_of(view: View, memory: Sequence[Array] | Mapping[int, Array]) -> Array:
    """The array at a view. `memory` has the storages as bytes, each under its number."""
    if 0 in view.shape:  # NumPy refuses strides for an empty array
        return np.ndarray(view.shape, view.dtype, memory[view.storage].data)
    return np.ndarray(view.shape, view.dtype, memory[view.storage].data, view.offset, view.strides)


def sum_of(array: Array) -> int:
    """A checksum of an array's bytes."""
    return zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")
