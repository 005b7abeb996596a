"""What rounding amounts to, measured.

torch computes the same again, with everything on its way moved by about one eps, which is what rounding does to each
value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from nn_manual.arrays import DTYPES, Array
from nn_manual.check.compare.tolerances import FAR, JUMP, MARGIN, SATURATED

#: How many times everything is moved, each time at random. The worst effect counts.
NUM_PERTURBATIONS = 4

#: Where the difference is not far from what is explained, so many times. In a few numbers, each the difference of two
#: products, half of the draws may show no rounding; all of so many show none once in 2**32.
MOST_PERTURBATIONS = 32

#: The key of the effects that were measured on another step.
ELSEWHERE = "elsewhere"

#: To tell jumps from rounding, everything is moved in float64 by these multiples of what it is moved in float32. Four
#: times as far, since in float32 a kink may also be crossed by the rounding that comes to the moves.
FURTHER, NEARER = 4.0, 0.25

#: 2**64 divided by the golden ratio, an odd number: in a product with it the high bits depend on all bits of a value.
MIXING = -0x61C8864680B583EB


class Rounding:
    """How far rounding takes torch's own values away from the true ones, by name. It is proportional to eps, so what it
    does to values of one dtype says what it does to those of another.

    A few moves don't show the rounding of every number. So the largest effect in a tensor counts for all its numbers,
    but not where it is a jump: the slope at a kink, or at a tie, changes by as much as it can. That says nothing of the
    others: a number that jumps is allowed what it did itself.
    """

    def __init__(self, truth: Mapping[str, Array]) -> None:
        self.truth, self.jump = truth, JUMP
        #: The largest effect on each number, in units of eps.
        self._measured = {slot: dict.fromkeys(truth, np.zeros(())) for slot in (*DTYPES, ELSEWHERE)}
        #: How far each number jumped when everything was moved by an eps of float32.
        self._jumps = dict.fromkeys(truth, np.zeros(()))
        self._in_float64: set[str] = set()
        finite = [np.abs(values[np.isfinite(values)]).max(initial=0.0) for values in truth.values()]
        self._largest_factor = float(max(1.0, *finite))

    def measure(self, rounded: Mapping[str, Array], elsewhere: Mapping[str, Array] | None = None) -> None:
        """Take into account how far `rounded` lies from torch's true values, or, for values of another step, from those
        `elsewhere`. Only names that both have count. A value that overflowed says nothing, and neither does one below
        the smallest normal number of the dtype.
        """
        truth = self.truth if elsewhere is None else elsewhere
        for name in rounded.keys() & truth.keys():
            values, dtype = truth[name], rounded[name].dtype
            if dtype.kind != "f":  # integers aren't rounded
                continue
            effects = distances(rounded[name], values) / eps_of(dtype)
            if effects.max() < math.inf and not 0 < np.abs(values).max() < np.finfo(dtype).tiny:
                measured = self._measured[dtype.name if elsewhere is None else ELSEWHERE]
                measured[name] = np.maximum(measured[name], effects)
            if dtype == np.float64:
                self._in_float64.add(name)

    def find_jumps(self, moved: Mapping[str, Array], nearer: Mapping[str, Array]) -> None:
        """Take into account how far numbers jump: `moved` are torch's values in float64, where nothing rounds beside
        the moves, with everything moved by FURTHER, and `nearer` those by NEARER.

        A jump is what is out of proportion. A tie breaks in both, and its effect is the same: then in proportion to
        `nearer`, `moved` lacks it `ratio - 1` times. Where only `moved` reaches a kink, it is there once too often.
        """
        ratio = FURTHER / NEARER
        for name in moved.keys() & self.truth.keys():
            far, near = (distances(values[name], self.truth[name]) for values in (moved, nearer))
            with np.errstate(over="ignore", invalid="ignore"):  # as in `distances`
                beyond = far - ratio * near
            self._jumps[name] = np.fmax(self._jumps[name], np.maximum(beyond, -beyond / (ratio - 1)))

    def effect(self, name: str, dtype: np.dtype[Any]) -> float:
        """The largest distance that was measured, in units of eps, as far as it holds for values of `dtype`, and for
        all numbers of the tensor.

        For values in float64, what float32 shows counts up to SATURATED times what float64 shows. If nothing was
        measured in float64, it doesn't count; if float64 was measured and shows nothing, all of it counts.
        """
        measured = [measured[name] for measured in self._measured.values()]
        # Where the jump is no more than half of the effect, there is as much rounding.
        jumps = 2 * self._jumps[name] > eps_of(np.dtype(np.float32)) * measured[0]
        measured[0] = np.where(jumps, 0, measured[0])
        single, double, elsewhere = (float(effects.max()) for effects in measured)
        if not max(single, elsewhere) > 0:
            return double
        if dtype == np.float64 and (double > 0 or name not in self._in_float64):
            single = min(single, SATURATED * double)
        single = max(single, elsewhere)
        return max(single, min(double, self.jump * single))

    def explains(self, name: str, ours: Array, *, each: bool = False) -> bool:
        """Whether our values are as near to the true ones as the arithmetic of their dtype brings them; with `each`,
        each by what was measured of it alone. Integers aren't rounded.
        """
        if ours.dtype.kind != "f":
            return False
        return bool((distances(ours, self.truth[name]) <= self._allowed(name, ours, each=each)).all())

    def is_far(self, name: str, ours: Array) -> bool:
        """Whether more measurements would not explain our values."""
        if ours.dtype.kind != "f":
            return True
        return not (distances(ours, self.truth[name]) <= FAR * self._allowed(name, ours)).all()

    def _allowed(self, name: str, ours: Array, *, each: bool = False) -> Array:
        """How far our values may be off. At least a few eps of the largest value: the sum of 32 equal numbers, each
        moved by one eps, can stay as it is, and in another order it is rounded. Below the smallest normal number a
        value loses digits, and a product with it as many: at most that number times the largest value of all.
        """
        largest = float(np.abs(self.truth[name]).max())
        of_all = max(0 if each else self.effect(name, ours.dtype), largest if largest < math.inf else 0)
        of_each = self._measured[ours.dtype.name][name] if ours.dtype == np.float32 else 0
        lost = float(np.finfo(ours.dtype).tiny) * self._largest_factor
        return np.maximum(MARGIN * eps_of(ours.dtype) * np.maximum(of_all, of_each), lost)


def eps_of(dtype: np.dtype[Any]) -> float:
    """The distance from 1 to the next number, 1.2e-7 or 2.2e-16."""
    return float(np.finfo(dtype).eps)


def distance(values: Array, truth: Array) -> float:
    """max|values - truth|; NaN where either has one."""
    return float(distances(values, truth).max())


def distances(values: Array, truth: Array) -> Array:
    """|values - truth|, of each number."""
    with np.errstate(over="ignore", invalid="ignore"):  # infinity - infinity is NaN
        found: Array = np.abs(values - truth)
        return found


def move_by_eps(tensor: torch.Tensor, generator: torch.Generator, *, back: bool = False) -> torch.Tensor:
    """Floating values, moved by about one eps up or down at random, or with `back` the other way. Zeros and signs stay.
    Every value is moved: all the rounding of a step may come from a single one.
    """
    if not tensor.is_floating_point():
        return tensor
    uniform = torch.rand(tensor.shape, generator=generator)
    return _moved(tensor, 1 - uniform if back else uniform)


def move_as_in_float32(
    tensor: torch.Tensor, move: Callable[[torch.Tensor], torch.Tensor], times: float
) -> torch.Tensor:
    """Float64 values, moved `times` as far as `move` takes them in float32: so the same ties break, the same way."""
    if not tensor.is_floating_point():
        return tensor
    by = times * (move(tensor.float()).double() - tensor)
    return torch.where(by.isfinite(), tensor + by, tensor)


def move_but_ties(tensor: torch.Tensor, seed: int) -> torch.Tensor:
    """Float64 values, moved by about one eps up or down. The value and `seed` decide which, so equal values stay equal,
    and opposite ones opposite. Values that float16 holds, such as 0 and 1, stay: most kinks lie there.
    """
    if not tensor.is_floating_point():
        return tensor
    mixed = (tensor.abs().view(torch.int64) + seed) * MIXING
    uniform = (mixed >> 40 & 0xFFFFFF).double() / 0x1000000
    return torch.where(tensor.half().double() == tensor, tensor, _moved(tensor, uniform))


def _moved(tensor: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """Values moved by -1.5 to -0.5 or 0.5 to 1.5 eps, as `uniform`, between 0 and 1, says. If each moved by exactly one
    eps, the sum of two would keep its last bit: a sum that isn't rounded at first would be rounded in none of the
    draws.
    """
    signed = (2 * uniform - 1).to(tensor)
    move = tensor * (torch.finfo(tensor.dtype).eps * (signed + signed.sign() / 2))
    return torch.where(tensor.isfinite(), tensor + move, tensor)
