"""What several processes have found of the same tensors, each in slices of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array
from nn_manual.check.compare.worst import Differences


class Found(NamedTuple):
    """What was compared: of each tensor its name, max|ours - torch|, the scale and the tolerance, in lists that JSON
    knows. `rounding` and `not_judged` are those of a StepCheck.
    """

    tensors: list[str]
    figures: list[list[float]]
    rounding: list[str]
    not_judged: list[str]

    @classmethod
    def of(
        cls, tensors: Sequence[str], differences: Differences, tolerances: Array, not_judged: frozenset[str]
    ) -> Found:
        """What was found of the first tensors of a plan, as many as there are differences."""
        count = len(differences.absolute)
        figures = np.stack([differences.absolute, differences.scale, tolerances[:count]])
        return cls(list(tensors[:count]), figures.tolist(), sorted(differences.rounding), sorted(not_judged))


class SlicedPlan(NamedTuple):
    """What a StepCheck needs of a plan. A slice's tolerances depend on its size: each tensor has that of its worst."""

    tensors: tuple[str, ...]
    tolerances: Array
    dtype: np.dtype[Any]


def worst(found: list[Found]) -> Found:
    """For each tensor, the figures that are nearest to its tolerance, or furthest beyond it."""
    figures = np.array([each.figures for each in found])  # (found, 3, tensors)
    absolute, scale, tolerance = figures.transpose(1, 0, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        severity = np.where(absolute > 0, absolute / (scale * tolerance), scale * 0)
    worst_of_each = np.nan_to_num(severity, nan=np.inf).argmax(axis=0)
    chosen = figures[worst_of_each, :, np.arange(figures.shape[2])].T
    # Where a tensor is zero in one slice, another slice may show that it needn't be.
    chosen[1] = np.where(absolute.max(axis=0) == 0, scale.max(axis=0), chosen[1])
    rounding = sorted({name for each in found for name in each.rounding})
    not_judged = sorted({name for each in found for name in each.not_judged})
    return Found(found[0].tensors, chosen.tolist(), rounding, not_judged)
