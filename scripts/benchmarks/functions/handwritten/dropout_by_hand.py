"""Dropout that gets its mask."""

from typing import Any

import numpy as np

from benchmarks.functions.handwritten.draws import normals
from benchmarks.functions.subject import Handwriting

KEEP = 0.8


def inverted_forward(x: Any, mask: Any) -> Any:
    scaled = mask / KEEP
    return x * scaled, {"mask": scaled}


def inverted_backward(dout: Any, cache: Any) -> Any:
    return dout * cache["mask"], None


def forgetful_forward(x: Any, mask: Any) -> Any:
    return np.where(mask, x / KEEP, 0), mask


def forgetful_backward(dout: Any, mask: Any) -> Any:
    """The mask without its scale."""
    return dout * mask


def dropout(x: Any, mask: Any) -> Any:
    return x * mask / KEEP


INPUTS = [*normals(60, (5, 4)), np.random.default_rng(61).random((5, 4)) < KEEP]
RIGHT = [Handwriting("inverted dropout", (inverted_forward, inverted_backward), dropout, INPUTS)]
WRONG = [
    Handwriting(
        "dropout without its scale",
        (forgetful_forward, forgetful_backward),
        dropout,
        INPUTS,
        "backward forgets to divide by the probability",
        ("grad_x",),
    )
]
