"""The check of clipping: torch clips our gradients as they were."""

from __future__ import annotations

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import Pair, Quantity, compare
from nn_manual.check.compare.worst import Differences, differences_of, tolerances_of, within
from nn_manual.check.judge.not_finite import check_finite
from nn_manual.check.judge.report import GradientReport, mismatch_of
from nn_manual.check.twin.model import TORCH_DTYPES
from nn_manual.errors import NotFiniteError
from nn_manual.optim.clipping import Clipping, NormClipping


def compare_clipping(
    quantities: list[Quantity], clipped: Array, gradients: list[Array], clipping: Clipping
) -> Differences:
    """Have torch clip our `gradients` as they were, and compare with the flat vector `clipped` that ours became.
    Raises GradientMismatch, or NotFiniteError where the norm overflows.
    """
    theirs = torch.from_numpy(clipped_by_torch(np.concatenate(gradients, axis=None), clipping))
    both = [Pair(quantities[0], clipped, theirs)]
    absolute, scale = differences_of(both)
    if not within(absolute, scale, tolerances_of(quantities)).all():
        check_finite(both)
        if isinstance(clipping, NormClipping):
            _check_norm(gradients, quantities[0].tolerance)
        raise mismatch_of(GradientReport(tuple(compare(*pair) for pair in both)))
    return Differences(absolute, scale)


def _check_norm(gradients: list[Array], tolerance: float) -> None:
    """Raise NotFiniteError where the squares overflow, or nearly so: then the norm is infinite or not as they are added
    up, and ours, in blocks, are added up in another way than torch's.
    """
    squares, dtype = sum(float(np.sum(np.square(each, dtype=np.float64))) for each in gradients), gradients[0].dtype
    if squares > float(np.finfo(dtype).max) * (1 - tolerance):
        end = f"{dtype} ends at {np.finfo(dtype).max:.3g}"
        raise NotFiniteError(f"the norm of the gradient overflows: its squares add up to {squares:.3g}, and {end}")


def clipped_by_torch(gradient: Array, clipping: Clipping) -> Array:
    """A flat gradient, clipped where it lies."""
    parameter = torch.zeros(gradient.size, dtype=TORCH_DTYPES[gradient.dtype.name])
    parameter.grad = torch.from_numpy(gradient)
    if isinstance(clipping, NormClipping):
        torch.nn.utils.clip_grad_norm_(parameter, clipping.bound)
    else:
        torch.nn.utils.clip_grad_value_(parameter, clipping.bound)
    return gradient
