"""Slopes of a forward that has no reference. Each is measured once: most rows of a battery change nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.twin.by_differences import OperandDifferences, Values, differences
from nn_manual.functions.arguments import as_tensor
from nn_manual.functions.callables import is_array
from nn_manual.functions.handwritten import Checked
from nn_manual.ops.differences import Directions, weighted

#: The slopes of an operand, of which the position is given, along some directions.
Slopes: TypeAlias = Callable[[int, Directions], OperandDifferences]

#: At most so many slopes of an input are measured, each with some ten runs of forward. In a larger input each is the
#: slope of several elements together: a mistake in one of them shows, divided by their number.
MOST_SLOPES = 64

#: Two steps, as fractions of the values. What float32 can't tell apart is far above the first and far below the second.
SMALL_STEP, LARGE_STEP = 1e-10, 1e-5
#: How far the slopes at both may lie apart: of a function in float64 they are 1e-4 apart, of one in float32 1,000.
MOST_OFF = 0.5
#: A change of less than this, as a fraction of the values, says nothing: a norm of 1 stays so. The small step's
#: rounding in float64 looks like 1e-11 of them, and float32 has nothing smaller than 6e-8.
OF_ROUNDING = 1e-9

#: So many bytes of values are kept for another upstream gradient: those of 500 runs for an output of 16,000 numbers.
MOST_KEPT = 2**26
#: The values around so many other operands are kept, too: rows of a battery take turns between a few sizes.
MOST_OPERANDS = 4

#: Arguments that have no state.
PLAIN = (bool, int, float, str, type(None))


class MovedValues:
    """The values of a forward around these operands, each computed once: differences under another upstream gradient
    move the operands by nearly the same steps.
    """

    def __init__(self, values: Values) -> None:
        self._values = values
        self._kept: dict[tuple[bytes, ...], Array] = {}

    def around(self, operands: Sequence[Array]) -> Values:
        """The values at moved operands."""

        def values(moved: Sequence[Array]) -> Array:
            key = []
            for operand, each in zip(operands, moved, strict=True):
                if each is not operand:
                    places = np.flatnonzero(each != operand)
                    key += [places.tobytes(), each.reshape(-1)[places].tobytes()]
                else:
                    key += [b"", b""]
            found = self._kept.get(tuple(key))
            if found is None:
                found = self._values(moved)
                if (len(self._kept) + 1) * found.nbytes <= MOST_KEPT:
                    self._kept[tuple(key)] = found
            return found

        return values


class KnownSlopes:
    """What was measured of one forward, by what it depends on."""

    def __init__(self) -> None:
        self._known: dict[bytes, OperandDifferences] = {}
        self._moved: dict[bytes, MovedValues] = {}

    def moved(
        self, function: Checked, others: Sequence[Any], operands: Sequence[Array], moved: MovedValues
    ) -> MovedValues:
        """The values around these operands that an earlier row has left; `moved` where there are none. `others` is what
        else the values depend on.
        """
        key = _key(function, others, operands)
        if not key:
            return moved
        self._moved[key] = found = self._moved.pop(key, moved)
        if len(self._moved) > MOST_OPERANDS:
            del self._moved[next(iter(self._moved))]  # those that were asked for longest ago
        return found

    def slopes(
        self, function: Checked, others: Sequence[Any], values: Values, operands: list[Array], upstream: Array
    ) -> Slopes:
        """The slopes of sum(upstream * values) at the operands. `others` is what else the values depend on."""
        key = _key(function, others, [*operands, upstream])

        def measured(i: int, directions: Directions) -> OperandDifferences:
            # By itself: each input may have another unit, and its gradient another magnitude.
            return differences(values, operands, {i: directions}, upstream)[i]

        def known(i: int, directions: Directions) -> OperandDifferences:
            own = key + b"%d %d" % (i, directions.num_slopes)
            if own not in self._known:
                self._known[own] = measured(i, directions)
            return self._known[own]

        return known if key else measured


def _key(function: Checked, others: Sequence[Any], operands: Sequence[Array]) -> bytes:
    """What values or slopes depend on, in short; empty where the function or another argument may have a state."""
    if isinstance(function, torch.nn.Module) or not all(is_array(each) or isinstance(each, PLAIN) for each in others):
        return b""
    key = blake2b(repr([each for each in others if not is_array(each)]).encode())
    for array in (*operands, *(as_tensor(each).cpu().numpy() for each in others if is_array(each))):
        key.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return key.digest()


def plain_differences(values: Values, operands: list[Array], i: int, upstream: Array, step: float) -> Array:
    """The central difference of sum(upstream * values) along each entry of the i-th operand."""
    steps = step * np.maximum(np.abs(operands[i]), 1)

    def rise(index: tuple[int, ...]) -> float:
        ends = []
        for way in (1, -1):
            moved = operands[i].copy()
            moved[index] += way * steps[index]
            ends.append(values([*operands[:i], moved, *operands[i + 1 :]]))
        with np.errstate(invalid="ignore"):
            return float(weighted(upstream, ends[0] - ends[1]).sum() / (2 * steps[index]))

    return np.array([rise(index) for index in np.ndindex(operands[i].shape)])


def slope_of_all(
    values: Values, operands: Sequence[Array], places: Sequence[int], upstream: Array
) -> OperandDifferences:
    """The slope of sum(upstream * values), where all entries of the operands at these places move up together."""
    entries = np.concatenate([operands[i].reshape(-1) for i in places])

    def of_entries(moved: Sequence[Array]) -> Array:
        found = list(operands)
        for i, part in zip(places, parts_of(moved[0], operands, places), strict=True):
            found[i] = part.reshape(operands[i].shape)
        return values(found)

    up = Directions(np.zeros(len(entries), int), np.ones(len(entries)), 1)
    return differences(of_entries, [entries], {0: up}, upstream)[0]


def parts_of(entries: Array, operands: Sequence[Array], places: Sequence[int]) -> list[Array]:
    """The part of each operand at these places, of entries that lie one behind the other."""
    return np.split(entries, np.cumsum([operands[i].size for i in places])[:-1])


def check_digits(values: Values, operands: list[Array]) -> None:
    """Raise ValueError for values that are rounded to fewer digits than float64 has: to them small steps have no slope.
    A step of 1e-10 must change them by 1e-5 of what one of 1e-5 does, apart from those that jump.
    """
    generator = np.random.default_rng(0)
    signs = [generator.choice([-1.0, 1.0], operand.shape) for operand in operands]
    middle = values(operands)
    pairs = list(zip(operands, signs, strict=True))
    small, large = (
        values([np.asarray(operand * (1 + step * sign)) for operand, sign in pairs]) - middle
        for step in (SMALL_STEP, LARGE_STEP)
    )
    smooth = np.abs(small - large) > MOST_OFF * np.abs(large)  # a jump is as far with the small step
    small, large = small[smooth], large[smooth]
    off = np.abs(small * (LARGE_STEP / SMALL_STEP) - large).max(initial=0.0)
    if off > max(MOST_OFF * np.abs(large).max(initial=0.0), OF_ROUNDING * np.abs(middle).max(initial=0.0)):
        raise ValueError("without a reference, forward must compute in float64: here it has too few digits")


def directions_through(size: int) -> Directions:
    """Every MOST_SLOPES-th element together, each up or down at random; up where it is alone."""
    count = min(size, MOST_SLOPES)
    numbers = np.arange(size) % max(count, 1)
    signs = np.random.default_rng(size).choice([-1.0, 1.0], size)
    return Directions(numbers, np.where(np.bincount(numbers)[numbers] > 1, signs, 1.0), count)
