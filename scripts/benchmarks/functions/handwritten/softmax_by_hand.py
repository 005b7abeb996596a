"""Softmax and its logarithm over the rows of scores."""

from typing import Any

import numpy as np
import torch

from benchmarks.functions.handwritten.draws import normals
from benchmarks.functions.subject import Handwriting


def softmax_forward(z: Any) -> Any:
    e = np.exp(z - np.max(z, axis=1, keepdims=True))
    s = e / e.sum(axis=1, keepdims=True)
    return s, s


def softmax_jacobian_backward(dout: Any, s: Any) -> Any:
    """The whole Jacobian of each row."""
    dz = np.empty_like(s)
    for i, (row, gradient) in enumerate(zip(s, dout, strict=True)):
        column = row.reshape(-1, 1)
        jacobian = np.diagflat(column) - column @ column.T
        dz[i] = jacobian @ gradient
    return dz


def softmax_diagonal_backward(dout: Any, s: Any) -> Any:
    """Only the diagonal of the Jacobian."""
    return dout * s * (1 - s)


def log_softmax_forward(z: Any) -> Any:
    shifted = z - z.max(axis=-1, keepdims=True)
    out = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return out, (out,)


def log_softmax_backward(dout: Any, cache: Any) -> Any:
    (out,) = cache
    return dout - np.exp(out) * dout.sum(axis=-1, keepdims=True)


def log_of_softmax_forward(z: Any) -> Any:
    """A probability below 1e-308 is zero, and its logarithm is -inf."""
    s, _ = softmax_forward(z)
    return np.log(s), s


def log_of_softmax_backward(dout: Any, s: Any) -> Any:
    return dout - s * dout.sum(axis=1, keepdims=True)


def softmax(z: Any) -> Any:
    return torch.softmax(z, 1)


def log_softmax(z: Any) -> Any:
    return torch.log_softmax(z, -1)


RIGHT = [
    Handwriting(
        "softmax by a Jacobian for each row",
        (softmax_forward, softmax_jacobian_backward),
        softmax,
        normals(40, (4, 5)),
    ),
    Handwriting(
        "log-softmax of three axes",
        (log_softmax_forward, log_softmax_backward),
        log_softmax,
        normals(41, (2, 3, 4)),
    ),
]
WRONG = [
    Handwriting(
        "softmax by the diagonal",
        (softmax_forward, softmax_diagonal_backward),
        softmax,
        normals(40, (4, 5)),
        "only the Jacobian's diagonal",
        ("grad_z",),
    ),
    Handwriting(
        "logarithm of softmax",
        (log_of_softmax_forward, log_of_softmax_backward),
        log_softmax,
        normals(42, (4, 5)),
        "the logarithm of a probability that is zero",
        ("kinds large",),
    ),
]
