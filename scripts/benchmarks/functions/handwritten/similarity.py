"""Cosine similarity, word2vec, bilinear forms."""

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks.functions.subject import Handwriting

EPS = 1e-8


def cosine(x: Any, y: Any) -> Any:
    return (x * y).sum(1) / (x.norm(dim=1).clamp_min(EPS) * y.norm(dim=1).clamp_min(EPS))


def cosine_forward(x: Any, y: Any) -> Any:
    x_norm, y_norm = np.linalg.norm(x, axis=1), np.linalg.norm(y, axis=1)
    x_safe, y_safe = np.maximum(x_norm, EPS), np.maximum(y_norm, EPS)
    out = np.einsum("nd,nd->n", x, y) / (x_safe * y_safe)
    return out, {"x": x, "y": y, "x_norm": x_norm, "y_norm": y_norm, "x_safe": x_safe, "y_safe": y_safe, "out": out}


def cosine_backward(dout: Any, c: Any) -> Any:
    """A norm below eps is a constant."""
    both = c["x_safe"] * c["y_safe"]
    x_pull = np.where(c["x_norm"] > EPS, c["out"] / c["x_safe"] ** 2, 0)
    y_pull = np.where(c["y_norm"] > EPS, c["out"] / c["y_safe"] ** 2, 0)
    dx = dout[:, None] * (c["y"] / both[:, None] - x_pull[:, None] * c["x"])
    dy = dout[:, None] * (c["x"] / both[:, None] - y_pull[:, None] * c["y"])
    return dx, dy


def cosine_backward_constant_norm(dout: Any, c: Any) -> Any:
    """The norms as constants."""
    scale = (dout / (c["x_safe"] * c["y_safe"]))[:, None]
    return scale * c["y"], scale * c["x"]


def negative_sampling(center: torch.Tensor, outside: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    scores = outside[indices] @ center
    return -functional.logsigmoid(scores[0]) - functional.logsigmoid(-scores[1:]).sum()


def sigmoid(x: Any) -> Any:
    z = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, z) / (1 + z)


def negative_sampling_loss(center: Any, outside: Any, indices: Any) -> Any:
    """indices: the word that is outside, and then negative samples, some of them several times."""
    signs = -np.ones(len(indices))
    signs[0] = 1
    u = outside[indices]
    scores = signs * (u @ center)
    loss = np.logaddexp(0, -scores).sum()
    dscores = -signs * sigmoid(-scores)
    grad_outside = np.zeros_like(outside)
    np.add.at(grad_outside, indices, np.outer(dscores, center))
    return loss, (u.T @ dscores, grad_outside)


def negative_sampling_loss_sign(center: Any, outside: Any, indices: Any) -> Any:
    """The negative samples' part of the center's gradient has the wrong sign."""
    target, negatives = indices[0], indices[1:]
    score = outside[target] @ center
    loss = np.logaddexp(0, -score)
    delta = sigmoid(score) - 1
    grad_center = delta * outside[target]
    grad_outside = np.zeros_like(outside)
    grad_outside[target] = delta * center
    for k in negatives:
        score = outside[k] @ center
        loss += np.logaddexp(0, score)
        grad_center -= sigmoid(score) * outside[k]
        grad_outside[k] += sigmoid(score) * center
    return loss, (grad_center, grad_outside)


def naive_softmax(center: torch.Tensor, outside: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return -functional.log_softmax(outside @ center, dim=0)[target]


def naive_softmax_loss(center: Any, outside: Any, target: Any) -> Any:
    """exp of a score that isn't shifted overflows."""
    e = np.exp(outside @ center)
    probabilities = e / e.sum()
    loss = -np.log(probabilities[target])
    delta = probabilities.copy()
    delta[target] -= 1
    return loss, (outside.T @ delta, np.outer(delta, center))


def bilinear(x: torch.Tensor, y: torch.Tensor, W: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return functional.bilinear(x, y, W, b)


def bilinear_forward(x: Any, y: Any, W: Any, b: Any) -> Any:
    return np.einsum("ni,oij,nj->no", x, W, y) + b, (x, y, W)


def bilinear_backward(dout: Any, cache: Any) -> Any:
    x, y, w = cache
    wy = np.stack([y @ each.T for each in w], axis=1)
    xw = np.stack([x @ each for each in w], axis=1)
    dw = np.stack([(x * dout[:, o : o + 1]).T @ y for o in range(len(w))])
    return [(dout[:, :, None] * wy).sum(1), (dout[:, :, None] * xw).sum(1), dw, dout.sum(0)]


generator = np.random.default_rng(16)
ROWS = [generator.standard_normal((4, 3)), generator.standard_normal((4, 3))]
SAMPLED = [generator.standard_normal(3), generator.standard_normal((6, 3)), np.array([2, 5, 0, 5, 4])]
WORDS = [generator.standard_normal(3), generator.standard_normal((6, 3)), np.array(4)]
FORMS = [generator.standard_normal(shape).astype(np.float32) for shape in ((4, 3), (4, 2), (5, 3, 2), (5,))]
RIGHT = [
    Handwriting("cosine", (cosine_forward, cosine_backward), cosine, ROWS),
    Handwriting("negative sampling", (negative_sampling_loss, lambda grads: grads), negative_sampling, SAMPLED),
    Handwriting("bilinear", (bilinear_forward, bilinear_backward), bilinear, FORMS),
]
WRONG = [
    Handwriting(
        "cosine constant norm",
        (cosine_forward, cosine_backward_constant_norm),
        cosine,
        ROWS,
        "the norms are taken as constants",
        ("grad_x", "grad_y"),
    ),
    Handwriting(
        "negative sampling sign",
        (negative_sampling_loss_sign, lambda grads: grads),
        negative_sampling,
        SAMPLED,
        "a sign",
        ("grad_center",),
    ),
    Handwriting(
        "naive softmax overflows",
        (naive_softmax_loss, lambda grads: grads),
        naive_softmax,
        WORDS,
        "exp overflows",
        ("kinds large", "kinds spread", "kinds shifted"),
    ),
]
