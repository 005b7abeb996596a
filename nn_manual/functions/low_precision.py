"""How far a value in float16 or bfloat16 may lie from the true one: measured on torch, not tuned."""

from __future__ import annotations

import math

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.compare.tolerances import LOW_PRECISION_FACTOR, MEANINGLESS


def allowed_in_low_precision(
    name: str, ours: Array, truth: torch.Tensor, rounded: torch.Tensor, eps: float
) -> float:
    """The tolerance, relative to the largest true value: three times the distance between `truth`, the reference in
    float64, and `rounded`, the reference in the dtype that has this `eps`.

    The reference can be exact by luck: a product with a power of two is. So its distance counts as half an eps of the
    largest value, which is one rounding, if it is less. Raises TooCoarse if the reference is so far off that half the
    largest value would pass as a difference, and `ours` passes.
    """
    scale = float(truth.abs().max()) if truth.numel() else 0.0
    if scale == 0:
        return LOW_PRECISION_FACTOR * eps
    distance = float((rounded - truth).nan_to_num(0, 0, 0).abs().max())
    allowed = LOW_PRECISION_FACTOR * max(distance / scale, eps / 2)
    if allowed >= MEANINGLESS:
        if np.abs(ours - truth.numpy()).max() <= allowed * scale:
            raise TooCoarse(f"{name}: in so few bits the reference itself is off by {distance / scale:.0%}")
        return math.nextafter(MEANINGLESS, 0)
    return allowed


def check_choices(name: str, ours: Array, reference: torch.Tensor, truth: torch.Tensor) -> None:
    """Raise TooCoarse if integers differ, such as the indices of the largest values, and those of the reference in
    float64 differ, too. Two values may be equal in so few bits: then rounding chooses between them, and decides
    everything that follows from the choice.
    """
    if not np.array_equal(ours, reference.numpy()) and not torch.equal(reference, truth.cpu().double()):
        raise TooCoarse(f"{name}: in so few bits the reference itself has other integers than in float64")


class TooCoarse(ValueError):  # noqa: N818 - says what the dtype is, not that something broke
    """In this dtype the reference is too far from the truth to judge by."""
