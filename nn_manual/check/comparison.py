"""The comparison of arrays with torch's tensors, many at a time, and what is said about each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from nn_manual.arrays import Array, Shape

if TYPE_CHECKING:
    from nn_manual.check.plan import Quantity

#: From this size on, torch's own threaded kernels compare a tensor faster than numpy compares it packed together with
#: others: above it, copying costs more than the calls it saves.
LARGE = 1 << 14


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

    @property
    def relative(self) -> float:
        """The worst difference as a fraction of the scale; 0 where both are 0."""
        return relative(self.absolute, self.scale)

    @property
    def passed(self) -> bool:
        """Whether the worst difference is within the tolerance; never true for NaN or infinity."""
        return self.absolute <= self.tolerance * self.scale < math.inf


def relative(absolute: float, scale: float) -> float:
    """absolute / scale, with 0 / 0 = 0 and x / 0 infinite."""
    if scale == 0:
        return 0.0 if absolute == 0 else float("inf")
    return absolute / scale


def ulps(absolute: float, scale: float, dtype: np.dtype[Any]) -> float:
    """A difference in units of the last place at the tensor's largest magnitude."""
    return float(absolute / np.spacing(dtype.type(scale))) if np.isfinite(scale) else float("nan")


def all_within(absolute: Array, tolerances: Array, scale: Array) -> bool:
    """Whether every `absolute` is within its tolerance of its `scale`; never true for NaN or infinity."""
    allowed = tolerances * scale
    return bool(((absolute <= allowed) & (allowed < math.inf)).all())


def worst_differences(ours: Sequence[Array], references: Sequence[torch.Tensor]) -> tuple[Array, Array]:
    """max|ours - reference| and max|reference| of each pair, as two float64 vectors. NaN anywhere, and infinity in
    both, give NaN.

    The pairs must have equal shapes and at least one element each.
    """
    absolute, scale = np.empty(len(ours)), np.empty(len(ours))
    large = [i for i, array in enumerate(ours) if array.size >= LARGE]
    small = [i for i, array in enumerate(ours) if array.size < LARGE]
    for i in large:
        difference = torch.from_numpy(ours[i]) - references[i]
        absolute[i], scale[i] = _largest_magnitude(difference), _largest_magnitude(references[i])
    if small:
        absolute[small], scale[small] = _packed_differences([ours[i] for i in small], [references[i] for i in small])
    return absolute, scale


def _largest_magnitude(tensor: torch.Tensor) -> float:
    low, high = torch.aminmax(tensor)
    return float(torch.maximum(-low, high))


def _packed_differences(ours: list[Array], references: list[torch.Tensor]) -> tuple[Array, Array]:
    """The same for many small tensors at once: packed end to end, reduced segment by segment."""
    difference = np.concatenate(ours, axis=None)
    reference = np.concatenate([tensor.numpy() for tensor in references], axis=None)
    sizes = np.array([array.size for array in ours])
    starts = (np.cumsum(sizes) - sizes).astype(np.intp)
    with np.errstate(invalid="ignore"):  # infinity - infinity, which the caller sees as NaN
        difference -= reference
    return (
        np.maximum.reduceat(np.abs(difference, out=difference), starts),
        np.maximum.reduceat(np.abs(reference, out=reference), starts),
    )


def compare(quantity: Quantity, ours: Array, reference: torch.Tensor, scale: float | None = None) -> Comparison:
    """One pair in full: where the worst difference is, and the values there. `scale` overrides max|reference|."""
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
        ulps=ulps(float(difference[index]), scale, ours.dtype),
        index=index,
        ours=float(ours[index]),
        reference=float(reference_array[index]),
    )
