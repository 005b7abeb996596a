"""Slopes from the values of a function alone, with steps that the function chooses, and how good each slope is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from nn_manual.arrays import Array

#: The first step, times the entry's size where that is above 1. At a scale of 1 two extrapolations from here reach
#: rounding, 1e-13 of the values.
FIRST_STEP = 1e-2
#: Each step is this many times smaller than the one before. A larger ratio overshoots the best step, a smaller one
#: takes more evaluations to get there.
RATIO = 4.0
#: The last step is then 4e-14, so that the logarithm of 1e-9 has a slope, too.
NUM_STEPS = 20
#: The error is this many times what the extrapolations differ by: two of them may agree by chance.
SAFETY = 10.0
#: Smaller steps overrule the limit of larger ones if they are this many times nearer to each other than to it: where
#: rounding is all that is left, two of them agree so well once in 10**8 times.
OVERRULE = 1e4
EPSILON = float(np.finfo(np.float64).eps)


class Slope(NamedTuple):
    """The slope of a function lies in value +- (jump / 2 + error).

    `jump` is how far the slopes left and right are apart: 0 where there is no kink. `error` is an estimate of what
    rounding and the series leave: infinite where no step gives a slope.
    """

    value: float
    error: float
    jump: float = 0.0


def slopes_of(function: Callable[[Array], Array], operand: Array, upstream: Array) -> Iterator[Slope]:
    """The slope of sum(upstream * function(operand)) along each entry of the operand, in their order. About eight
    evaluations each, and some twenty where the function bends sharply.
    """
    for index in np.ndindex(operand.shape):

        def along(entry: float, index: tuple[int, ...] = index) -> Array:
            moved = operand.copy()  # a copy for each: the function may return a view of it
            moved[index] = entry
            return function(moved)

        yield slope(along, float(operand[index]), upstream)


def slope(function: Callable[[float], Array], at: float, upstream: Array) -> Slope:
    """The slope of sum(upstream * function(x)) at x = `at`.

    The central difference has a series in the square of its step, each one-sided difference one in the step itself:

        (f(x + h) - f(x - h)) / 2 h = f'(x) + h**2 f'''(x) / 6 + ...
        (f(x + h) - f(x)) / h       = f'(x) + h f''(x) / 2 + ...

    Differences at smaller and smaller steps cancel its terms, one after the other (Richardson's extrapolation). That
    they agree says how good they are, and when to stop: rounding, epsilon f / h, grows as the step h falls. No step
    suits all functions: that of a normalization of tiny values is a thousand times smaller than that of a sigmoid.
    """
    middle = function(at)
    magnitude = np.abs(upstream * middle)
    central, left, right = Extrapolation(2), Extrapolation(1), Extrapolation(1)
    apart = 0.0
    for number in range(NUM_STEPS):
        step = FIRST_STEP * max(1.0, abs(at)) / RATIO**number
        above, below = at + step, at - step  # as rounded
        rise, fall = upstream * (function(above) - middle), upstream * (middle - function(below))
        if not (np.isfinite(rise).all() and np.isfinite(fall).all()):
            continue  # f is not defined so far away
        changes = np.abs(rise) + np.abs(fall)
        # The rounding of the values, and of what the function makes of its operand first.
        rounding = EPSILON * float((magnitude + changes * (1 + abs(at) / step))[changes > 0].sum()) / step
        central.add(float((rise + fall).sum()) / (above - below), rounding)
        right.add(float(rise.sum()) / (above - at), rounding)
        left.add(float(fall.sum()) / (at - below), rounding)
        jumps = rise / (above - at) - fall / (at - below)
        apart = float(np.abs(jumps).sum() - np.abs(jumps.sum()))
        if min(central.error, left.error + right.error) <= RATIO * rounding:
            break
    one_sided = left.error + right.error
    is_kink = abs(right.value - left.value) > SAFETY * one_sided
    if is_kink or one_sided < central.error:
        # Values that jump in opposite directions leave a choice that their sum doesn't show.
        jump = abs(right.value - left.value) + apart if is_kink else 0.0
        return Slope((left.value + right.value) / 2, SAFETY * one_sided, jump)
    return Slope(central.value, SAFETY * central.error)


class Extrapolation:
    """The limit, as the step goes to 0, of what has a series in its `power`-th power, from values at steps that are
    each RATIO times smaller than the one before.

    `value` is the best limit so far. Its `error` is how far it is from those that it was made of, and no less than
    rounding; infinite until there are two values. Larger steps may agree on the slope of another
    function, beyond a kink: smaller steps that agree far better than they agree with those overrule them.
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
