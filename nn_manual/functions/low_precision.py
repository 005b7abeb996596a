"""How far a value in float16 or bfloat16 may lie from the true one: measured on torch, not tuned."""

from __future__ import annotations

import math

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.tolerances import LOW_PRECISION_FACTOR, MEANINGLESS


def allowed_in_low_precision(
    name: str, ours: Array, truth: torch.Tensor, rounded: torch.Tensor, eps: float
) -> float:
    """The tolerance, relative to the largest true value: three times the distance to `truth`, the reference in float64,
    at which `rounded` lies, the reference in the dtype of which 1 and `eps` more are neighbours.

    The reference can be right by luck, as a product by a power of two is. So its distance counts as half an eps of the
    largest value, one rounding, where it is less. Raises TooCoarse where torch itself is so far off that half the value
    would pass, and ours would, too.
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
    """Raise TooCoarse where integers, such as the places of the largest, differ, and the reference in float64 chooses
    others, too: where two values are one in so few bits, rounding decides, and about all that follows.
    """
    if not np.array_equal(ours, reference.numpy()) and not torch.equal(reference, truth.cpu().double()):
        raise TooCoarse(f"{name}: in so few bits the reference itself has other integers than in float64")


class TooCoarse(ValueError):  # noqa: N818 - says what the dtype is, not that something broke
    """In this dtype the reference is so far from the truth that nothing can be judged by it."""
