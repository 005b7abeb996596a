"""Arrays compared with torch's tensors: many at once, or one in full."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from nn_manual.arrays import Array, Shape
from nn_manual.check import tolerances
from nn_manual.check.compare.blocks import worst_difference

#: From this size on, a tensor is compared by itself: packed together with others, copying costs more than the calls
#: that it saves.
LARGE = 1 << 14


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
    """One tensor of the step and what torch has in its place."""

    quantity: Quantity
    ours: Array
    reference: torch.Tensor


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


def as_tensor(array: Array) -> torch.Tensor:
    """The array's memory as a tensor; a copy of it where torch can't share the memory."""
    if not array.flags.writeable or any(stride < 0 for stride in array.strides):
        array = array.copy()
    return torch.from_numpy(array)


def within(absolute: Array, scale: Array, tolerances: Array) -> npt.NDArray[np.bool_]:
    """For each, whether `absolute` is within the tolerance of its `scale`; never true for NaN or infinity."""
    allowed = tolerances * scale
    result: npt.NDArray[np.bool_] = (absolute <= allowed) & (allowed < math.inf)
    return result


def worst_differences(ours: Sequence[Array], references: Sequence[torch.Tensor]) -> tuple[Array, Array]:
    """max|ours - reference| and max|reference| of each pair, as two float64 vectors. NaN anywhere, and infinity in
    both, give NaN.

    The pairs must have equal shapes and at least one element each.
    """
    small = [i for i, array in enumerate(ours) if array.size < LARGE]
    if len(small) == len(ours):
        packed, starts = np.concatenate(ours, axis=None), _starts(array.size for array in ours)
        return _packed_differences(packed, np.concatenate([r.numpy() for r in references], axis=None), starts)
    absolute, scale = np.empty(len(ours)), np.empty(len(ours))
    for i, array in enumerate(ours):
        if array.size >= LARGE:
            absolute[i], scale[i] = worst_difference(array, references[i].numpy())
    if small:
        absolute[small], scale[small] = worst_differences([ours[i] for i in small], [references[i] for i in small])
    return absolute, scale


class Differences(NamedTuple):
    """For each tensor, max|ours - torch| and max|torch|; and the names of those that are off by rounding alone."""

    absolute: Array
    scale: Array
    rounding: frozenset[str] = frozenset()


def joined(*parts: Differences) -> Differences:
    """The differences of several parts of a step, in one."""
    absolute, scale = (np.concatenate([part[i] for part in parts]) for i in range(2))
    return Differences(absolute, scale, frozenset[str]().union(*(part.rounding for part in parts)))


class Arena:
    """Tensors that lie end to end in each of several flat vectors. Each must have at least one element."""

    def __init__(self, sizes: list[int], num_vectors: int) -> None:
        self._starts = _starts(sizes * num_vectors)
        self._parts = [slice(start, start + size) for start, size in zip(_starts(sizes), sizes, strict=True)]
        self._is_small = max(sizes, default=0) < LARGE

    def worst_differences(self, ours: Sequence[Array], references: Sequence[Array]) -> tuple[Array, Array]:
        """`worst_differences` of the tensors in the first vectors of both, then in the second ones, ..."""
        if self._is_small:  # one comparison of all: each call costs more than what there is to compare
            return _packed_differences(np.concatenate(ours), np.concatenate(references), self._starts)
        tensors = [torch.from_numpy(vector[part]) for vector in references for part in self._parts]
        return worst_differences([vector[part] for vector in ours for part in self._parts], tensors)


def _starts(sizes: Iterable[int]) -> Array:
    """Where each of the arrays of these sizes starts, laid end to end."""
    return np.array(list(accumulate(sizes, initial=0))[:-1], np.intp)


def _packed_differences(ours: Array, reference: Array, starts: Array) -> tuple[Array, Array]:
    """worst_differences of many small pairs at once, packed end to end."""
    with np.errstate(invalid="ignore"):  # infinity - infinity, which the caller sees as NaN
        difference = ours - reference
    return np.maximum.reduceat(np.abs(difference), starts), np.maximum.reduceat(np.abs(reference), starts)


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
        ulps=ulps(float(difference[index]), scale, reference_array.dtype),
        index=index,
        ours=float(ours[index]),
        reference=float(reference_array[index]),
        origin=quantity.origin,
    )


def beyond_tolerance(both: list[Pair]) -> list[Pair]:
    """Those of the pairs that differ by more than is allowed."""
    absolute, scale = worst_differences([pair.ours for pair in both], [pair.reference for pair in both])
    passed = within(absolute, scale, np.array([pair.quantity.tolerance for pair in both]))
    return [pair for pair, agrees in zip(both, passed, strict=True) if not agrees]
