"""What rounding amounts to, measured.

torch computes the same again, with everything on its way moved by about one eps, which is what rounding does to each
value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from nn_manual.arrays import DTYPES, Array
from nn_manual.check.tolerances import FAR, JUMP, MARGIN, SATURATED

#: How many times everything is moved, each time at random. The worst effect counts.
NUM_PERTURBATIONS = 4

#: Where the difference is not far from what is explained, so many times. In a few numbers, each the difference of two
#: products, half of the draws may show no rounding; all of so many show none once in 2**32.
MOST_PERTURBATIONS = 32

#: The key of the effects that were measured on another step.
ELSEWHERE = "elsewhere"

#: 2**64 divided by the golden ratio, an odd number: in a product with it the high bits depend on all bits of a value.
MIXING = -0x61C8864680B583EB


class Rounding:
    """How far rounding takes torch's own values away from the true ones, by name. It is proportional to eps, so what it
    does to values of one dtype says what it does to those of another.
    """

    def __init__(self, truth: Mapping[str, Array]) -> None:
        self.truth, self.jump = truth, JUMP
        self._measured = {slot: dict.fromkeys(truth, 0.0) for slot in (*DTYPES, ELSEWHERE)}
        self._in_float64: set[str] = set()

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
            effect = distance(rounded[name], values) / eps_of(dtype)
            if effect < math.inf and not 0 < np.abs(values).max() < np.finfo(dtype).tiny:
                measured = self._measured[dtype.name if elsewhere is None else ELSEWHERE]
                measured[name] = max(measured[name], effect)
            if dtype == np.float64:
                self._in_float64.add(name)

    def effect(self, name: str, dtype: np.dtype[Any]) -> float:
        """The largest distance that was measured, in units of eps, as far as it holds for values of `dtype`.

        For values in float64, what float32 shows counts up to SATURATED times what float64 shows. If nothing was
        measured in float64, it doesn't count; if float64 was measured and shows nothing, all of it counts.
        """
        single, double, elsewhere = (measured[name] for measured in self._measured.values())
        if not max(single, elsewhere) > 0:
            return double
        if dtype == np.float64 and (double > 0 or name not in self._in_float64):
            single = min(single, SATURATED * double)
        single = max(single, elsewhere)
        return max(single, min(double, self.jump * single))

    def explains(self, name: str, ours: Array) -> bool:
        """Whether our values are as near to the true ones as the arithmetic of their dtype brings them. Below the
        smallest normal number a value loses digits. Integers aren't rounded.
        """
        if ours.dtype.kind != "f":
            return False
        return distance(ours, self.truth[name]) <= max(self._allowed(name, ours), float(np.finfo(ours.dtype).tiny))

    def is_far(self, name: str, ours: Array) -> bool:
        """Whether more measurements would not explain our values."""
        if ours.dtype.kind != "f":
            return True
        return not distance(ours, self.truth[name]) <= FAR * self._allowed(name, ours)

    def _allowed(self, name: str, ours: Array) -> float:
        """How far our values may be off. At least a few eps of the largest value: the sum of 32 equal numbers, each
        moved by one eps, can stay as it is, and in another order it is rounded.
        """
        largest = float(np.abs(self.truth[name]).max())
        return MARGIN * max(self.effect(name, ours.dtype), largest if largest < math.inf else 0) * eps_of(ours.dtype)


def eps_of(dtype: np.dtype[Any]) -> float:
    """The distance from 1 to the next number, 1.2e-7 or 2.2e-16."""
    return float(np.finfo(dtype).eps)


def distance(values: Array, truth: Array) -> float:
    """max|values - truth|; NaN where either has one."""
    with np.errstate(over="ignore", invalid="ignore"):  # infinity - infinity is NaN
        return float(np.abs(values - truth).max())


def move_by_eps(tensor: torch.Tensor, generator: torch.Generator, *, back: bool = False) -> torch.Tensor:
    """Floating values, moved by about one eps up or down at random, or with `back` the other way. Zeros and signs stay.
    Every value is moved: all the rounding of a step may come from a single one.
    """
    if not tensor.is_floating_point():
        return tensor
    uniform = torch.rand(tensor.shape, generator=generator)
    return _moved(tensor, 1 - uniform if back else uniform)


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
