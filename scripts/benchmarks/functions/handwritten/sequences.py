"""Over time: an affine map at each step, and the softmax loss with a mask."""

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks.functions.subject import Handwriting


def affine(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return x @ w + b


def temporal_affine_forward(x: Any, w: Any, b: Any) -> Any:
    n, steps, size = x.shape
    out = x.reshape(n * steps, size).dot(w).reshape(n, steps, -1) + b
    return out, (x, w, b, out)


def temporal_affine_backward(dout: Any, cache: Any) -> Any:
    x, w, b, _ = cache
    n, steps, size = x.shape
    width = b.shape[0]
    dx = dout.reshape(n * steps, width).dot(w.T).reshape(n, steps, size)
    dw = dout.reshape(n * steps, width).T.dot(x.reshape(n * steps, size)).T
    return dx, dw, dout.sum(axis=(0, 1))


def temporal_affine_backward_transposed(dout: Any, cache: Any) -> Any:
    """dx takes w and not w.T: as w is square, the shapes fit."""
    x, w, _, _ = cache
    dx = np.einsum("nti,ij->ntj", dout, w)
    dw = np.einsum("ntd,ntm->dm", x, dout)
    return dx, dw, np.einsum("ntm->m", dout)


def masked_loss(x: torch.Tensor, y: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    losses = functional.cross_entropy(x.flatten(0, 1), y.flatten(), reduction="none")
    return (losses * mask.flatten()).sum() / x.shape[0]


def temporal_softmax_loss(x: Any, y: Any, mask: Any) -> Any:
    """The loss and dx together; logarithms of sums, so that no probability is zero in a logarithm."""
    n, steps, size = x.shape
    flat, classes, counted = x.reshape(n * steps, size), y.reshape(n * steps), mask.reshape(n * steps)
    shifted = flat - flat.max(axis=1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    rows = np.arange(n * steps)
    loss = -np.sum(counted * log_probs[rows, classes]) / n
    dx = np.exp(log_probs)
    dx[rows, classes] -= 1
    dx /= n
    dx *= counted[:, None]
    return loss, dx.reshape(n, steps, size)


def temporal_softmax_forward(scores: Any, y: Any, mask: Any) -> Any:
    shifted = scores - scores.max(axis=-1, keepdims=True)
    log_probs = shifted - np.log(np.sum(np.exp(shifted), axis=-1, keepdims=True))
    chosen = np.take_along_axis(log_probs, y[..., None], axis=-1)[..., 0]
    loss = -(chosen * mask).sum() / len(scores)
    return loss, {"probs": np.exp(log_probs), "y": y, "mask": mask}


def temporal_softmax_backward_without_mask(cache: Any) -> Any:
    """Masked steps get a gradient."""
    probs, y = cache["probs"], cache["y"]
    dx = probs - np.eye(probs.shape[-1])[y]
    return dx / len(probs)


generator = np.random.default_rng(13)
THIN = [generator.standard_normal(shape) for shape in ((2, 3, 4), (4, 5), (5,))]
SQUARE = [generator.standard_normal(shape) for shape in ((2, 3, 4), (4, 4), (4,))]
SCORES = [
    generator.standard_normal((2, 4, 5)),
    generator.integers(0, 5, (2, 4)),
    np.array([[True, True, True, False], [True, True, False, False]]),
]
RIGHT = [
    Handwriting("temporal affine", (temporal_affine_forward, temporal_affine_backward), affine, THIN),
    Handwriting("temporal softmax", (temporal_softmax_loss, lambda dx: dx), masked_loss, SCORES),
]
WRONG = [
    Handwriting(
        "temporal affine transposed",
        (temporal_affine_forward, temporal_affine_backward_transposed),
        affine,
        SQUARE,
        "the weight isn't transposed",
        ("grad_x",),
    ),
    Handwriting(
        "temporal softmax without mask",
        (temporal_softmax_forward, temporal_softmax_backward_without_mask),
        masked_loss,
        SCORES,
        "the mask isn't applied in backward",
        ("grad_x",),
    ),
]
