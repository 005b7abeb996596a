"""One array compared with torch's tensor, in full: what is compared, where the worst difference is, and how far off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from nn_manual.arrays import Array, Shape
from nn_manual.check.compare import tolerances


class CannotCompare(Exception):  # noqa: N818 - says what happened, not that something broke
    """The step's tensors can't be compared one by one; the text names the part that is to blame."""


@dataclass(frozen=True)
class Quantity:
    """A tensor to compare: its name, the layer whose formula made it, and how far it may be off. `origin` is the text
    with which a report introduces the other value: "torch has".

    Raises ValueError for a tolerance that proves nothing.
    """

    name: str
    layer: str
    tolerance: float
    origin: str = "torch has"

    def __post_init__(self) -> None:
        if not self.tolerance < tolerances.MEANINGLESS:
            raise ValueError(f"{self.name}: at a tolerance of {self.tolerance:.1g} of the norm, half the value passes")


class Pair(NamedTuple):
    """One tensor of the step and what torch has in its place. `scale` is what it is compared on, where that isn't the
    largest magnitude of the reference.
    """

    quantity: Quantity
    ours: Array
    reference: torch.Tensor
    scale: float | None = None


@dataclass(frozen=True)
class Comparison:
    """One tensor of ours against torch's.

    `absolute` is max|ours - reference|, `scale` max|reference|, `tolerance` relative to the scale. `index`, `ours` and
    `reference` are the place of the worst difference and the two values there.
    """

    name: str
    layer: str
    shape: Shape
    absolute: float
    scale: float
    tolerance: float
    ulps: float
    index: tuple[int, ...]
    ours: float
    reference: float
    origin: str = "torch has"

    @property
    def relative(self) -> float:
        """The worst difference as a fraction of the scale; 0 where both are 0."""
        return float(relative(self.absolute, self.scale))

    @property
    def severity(self) -> float:
        """The worst difference as a fraction of what is allowed; infinite for NaN."""
        return float(tolerances.severity(self.relative, self.tolerance))

    @property
    def passed(self) -> bool:
        """Whether the worst difference is within the tolerance; never true for NaN or infinity."""
        return self.absolute <= self.tolerance * self.scale < math.inf


def relative(absolute: Any, scale: Any) -> Any:
    """absolute / scale, with 0 / 0 = 0 and x / 0 infinite; of numbers or of arrays."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.divide(absolute, scale, out=np.zeros(np.shape(absolute)), where=np.not_equal(absolute, 0))


def ulps(absolute: float, scale: float, dtype: np.dtype[Any]) -> float:
    """A difference in units of the last place at the tensor's largest magnitude."""
    return absolute / float(np.spacing(dtype.type(scale))) if math.isfinite(scale) else math.nan


def compare(quantity: Quantity, ours: Array, reference: torch.Tensor, scale: float | None = None) -> Comparison:
    """One pair in full: where the worst difference is, and the values there. `scale` is that of a Pair."""
    reference_array = reference.numpy()
    with np.errstate(invalid="ignore"):  # infinity - infinity is NaN, and the worst that can be there
        difference = np.abs(ours - reference_array)
    # argmax finds a NaN first.
    index = tuple(int(i) for i in np.unravel_index(np.argmax(difference), ours.shape))
    scale = float(np.abs(reference_array).max()) if scale is None else scale
    return Comparison(
        name=quantity.name,
        layer=quantity.layer,
        shape=ours.shape,
        absolute=float(difference[index]),
        scale=scale,
        tolerance=quantity.tolerance,
        ulps=ulps(float(difference[index]), scale, reference_array.dtype),
        index=index,
        ours=float(ours[index]),
        reference=float(reference_array[index]),
        origin=quantity.origin,
    )
