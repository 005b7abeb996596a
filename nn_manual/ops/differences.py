"""Slopes from the values of a function alone, with steps that fit the function, and an error for each slope."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from nn_manual.arrays import Array

#: The first step, times the entry's magnitude if that is above 1. For a function that changes on a scale of 1, two
#: extrapolations from this step reach the rounding error, 1e-13 of the values.
FIRST_STEP = 1e-2
#: Each step is this many times smaller than the one before. A larger ratio can jump over the best step; a smaller one
#: takes more evaluations to reach it.
RATIO = 4.0
#: The last step is then 4e-14, so that the logarithm of 1e-9 has a slope, too.
NUM_STEPS = 20
#: The error is this many times the difference of two extrapolations, because these may agree by chance.
SAFETY = 10.0
#: Smaller steps overrule the limit of larger ones if they are this many times nearer to each other than to it. If they
#: differ by rounding alone, two of them agree so well once in 10**8 times.
OVERRULE = 1e4
#: Central differences count only where one-sided ones agree up to this fraction of the slope. Those of a smooth
#: function do; where its slope is 0, some three steps later.
UNSURE = 1e-4
EPSILON = float(np.finfo(np.float64).eps)


class Slope(NamedTuple):
    """The slope of a function lies in value +- (jump / 2 + error).

    `jump` is the difference of the slopes left and right: 0 if there is no kink. `error` is an estimate of the error
    that rounding and the series leave: infinite if no step gives a slope.
    """

    value: float
    error: float
    jump: float = 0.0


class Directions(NamedTuple):
    """Ways through an operand: each moves the entries that have its number, up or down as `signs` says."""

    numbers: Array
    signs: Array
    num_slopes: int

    @classmethod
    def of_each(cls, size: int) -> Directions:
        """Each entry alone, up."""
        return cls(np.arange(size), np.ones(size), size)

    def along(self, gradient: Array) -> Array:
        """The slope along each direction."""
        slopes: Array = np.bincount(self.numbers, self.signs * gradient, self.num_slopes)
        return slopes

    def spread(self, slopes: Array) -> Array:
        """The smallest gradient with these slopes."""
        spread: Array = self.signs * (slopes / np.bincount(self.numbers, minlength=self.num_slopes))[self.numbers]
        return spread


def slopes_of(
    function: Callable[[Array], Array], operand: Array, upstream: Array, directions: Directions | None = None
) -> Iterator[Slope]:
    """The slope of sum(upstream * function(operand)) along each direction, or along each entry, in their order. Each
    takes about eight evaluations, and about twenty if the function bends sharply.
    """
    numbers, signs, num_slopes = directions or Directions.of_each(operand.size)
    entries = operand.reshape(-1)
    for number in range(num_slopes):
        chosen = np.flatnonzero(numbers == number)
        # An entry alone moves as far as its magnitude allows; several move by the same step.
        start = float(entries[chosen[0]]) if len(chosen) == 1 else 0.0

        def along(at: float, chosen: Array = chosen) -> Array:
            moved = entries.copy()  # one copy for each call: the function may return a view of it
            moved[chosen] = at if len(chosen) == 1 else entries[chosen] + signs[chosen] * at
            return function(moved.reshape(operand.shape))

        yield slope(along, start, upstream)


def slope(function: Callable[[float], Array], at: float, upstream: Array) -> Slope:
    """The slope of sum(upstream * function(x)) at x = `at`.

    The central difference is a series in the square of its step, a one-sided difference is one in the step itself:

        (f(x + h) - f(x - h)) / 2 h = f'(x) + h**2 f'''(x) / 6 + ...
        (f(x + h) - f(x)) / h       = f'(x) + h f''(x) / 2 + ...

    Differences at smaller and smaller steps cancel its terms, one after the other (Richardson's extrapolation). How
    well they agree is the error, and says when to stop: the rounding error, epsilon f / h, grows as the step h falls.
    No step suits all functions: a normalization of tiny values needs a step a thousand times smaller than a sigmoid.
    """
    middle = function(at)
    magnitude = np.abs(weighted(upstream, middle))
    central, left, right = Extrapolation(2), Extrapolation(1), Extrapolation(1)
    apart = 0.0
    for number in range(NUM_STEPS):
        step = FIRST_STEP * max(1.0, abs(at)) / RATIO**number
        above, below = at + step, at - step  # as rounded
        with np.errstate(invalid="ignore"):  # infinity - infinity, of an output that nobody wants
            rise, fall = (weighted(upstream, each) for each in (function(above) - middle, middle - function(below)))
        if not (np.isfinite(rise).all() and np.isfinite(fall).all()):
            continue  # f isn't finite so far away
        changes = np.abs(rise) + np.abs(fall)
        # The rounding error of the values, and of what the function first computes from its operand.
        rounding = EPSILON * float((magnitude + changes * (1 + abs(at) / step))[changes > 0].sum()) / step
        central.add(float((rise + fall).sum()) / (above - below), rounding)
        right.add(float(rise.sum()) / (above - at), rounding)
        left.add(float(fall.sum()) / (at - below), rounding)
        jumps = rise / (above - at) - fall / (at - below)
        apart = float(np.abs(jumps).sum() - np.abs(jumps.sum()))
        one_sided, enough = left.error + right.error, RATIO * rounding
        # Beyond a kink on each side, central differences may agree by chance: one-sided ones don't agree there.
        if one_sided <= enough or central.error <= enough >= one_sided - UNSURE * abs(central.value):
            break
    one_sided = left.error + right.error
    is_kink = abs(right.value - left.value) > SAFETY * one_sided
    if is_kink or one_sided < central.error:
        # Slopes that jump in opposite directions can cancel in the sum; `apart` is what the sum doesn't show.
        jump = abs(right.value - left.value) + apart if is_kink else 0.0
        return Slope((left.value + right.value) / 2, SAFETY * one_sided, jump)
    return Slope(central.value, SAFETY * central.error)


def weighted(upstream: Array, values: Array) -> Array:
    """upstream * values, and 0 where upstream is: there a value that isn't finite doesn't count."""
    with np.errstate(invalid="ignore"):
        product: Array = np.where(upstream == 0, 0.0, upstream * values)
    return product


class Extrapolation:
    """The limit, as the step goes to 0, of a series in the step's `power`-th power, from its values at steps that are
    each RATIO times smaller than the one before.

    `value` is the best limit so far. `error` is how far it is from the values that it was computed from, but no less
    than their rounding error; infinite until there are two values. Larger steps may reach beyond a kink and agree on
    another slope. Smaller steps overrule them if they agree with each other far better than with the larger ones.
    """

    def __init__(self, power: int) -> None:
        self._factor = RATIO**power
        self._last: list[float] = []
        self.value, self.error = 0.0, np.inf

    def add(self, value: float, rounding: float) -> None:
        """The value at the next smaller step, and its rounding error."""
        row, factor = [value], 1.0
        for before in self._last:
            factor *= self._factor
            row.append(row[-1] + (row[-1] - before) / (factor - 1))
            error = max(abs(row[-1] - row[-2]), abs(row[-1] - before), rounding)
            overruled = abs(row[-1] - self.value) > max(OVERRULE * error, SAFETY * self.error)
            if error < self.error or overruled:
                self.value, self.error = row[-1], error
        self._last = row
