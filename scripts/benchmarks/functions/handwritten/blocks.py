"""Residual, tied weights, spatial batch norm, straight-through rounding, a regularized loss, a bias for images."""

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks.functions.subject import Handwriting
from nn_manual import HandwrittenClass


def batch_norm(x: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
    return functional.batch_norm(x, None, None, gamma, beta, training=True)


def spatial_batch_norm_forward(x: Any, gamma: Any, beta: Any) -> Any:
    n, channels, height, width = x.shape
    rows = x.transpose(0, 2, 3, 1).reshape(-1, channels)
    centered = rows - rows.mean(axis=0)
    std = np.sqrt((centered**2).mean(axis=0) + 1e-5)
    x_hat = centered / std
    out = (gamma * x_hat + beta).reshape(n, height, width, channels).transpose(0, 3, 1, 2)
    return out, (x_hat, gamma, std)


def spatial_batch_norm_backward(dout: Any, cache: Any) -> Any:
    x_hat, gamma, std = cache
    n, channels, height, width = dout.shape
    rows = dout.transpose(0, 2, 3, 1).reshape(-1, channels)
    m = len(rows)
    dbeta = rows.sum(axis=0)
    dgamma = (rows * x_hat).sum(axis=0)
    drows = gamma / (m * std) * (m * rows - dbeta - x_hat * dgamma)
    return drows.reshape(n, height, width, channels).transpose(0, 3, 1, 2), dgamma, dbeta


def autoencoder(x: torch.Tensor, W: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x @ W + b) @ W.T + c


class TiedAutoencoder:
    """Gradients add up: the weight is used twice."""

    def __init__(self, W: Any, b: Any, c: Any) -> None:
        self.W, self.b, self.c = W, b, c
        self.dW, self.db, self.dc = np.zeros_like(W), np.zeros_like(b), np.zeros_like(c)

    def forward(self, x: Any) -> Any:
        self.x = x
        self.h = np.tanh(x @ self.W + self.b)
        return self.h @ self.W.T + self.c

    def backward(self, dout: Any) -> Any:
        self.dW += dout.T @ self.h
        self.dc += dout.sum(axis=0)
        da = (dout @ self.W) * (1 - self.h**2)
        self.dW += self.x.T @ da
        self.db += da.sum(axis=0)
        return da @ self.W.T


def quantized(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ (w + ((4 * w).round() / 4 - w).detach())


def quantized_forward(x: Any, w: Any) -> Any:
    steps = np.rint(w * 4) / 4
    return x @ steps, (x, steps)


def quantized_backward(dout: Any, cache: Any) -> Any:
    """Straight through: the rounding has the slope 1."""
    x, steps = cache
    return dout @ steps.T, x.T @ dout


def residual(x: torch.Tensor, W1: torch.Tensor, b1: torch.Tensor, W2: torch.Tensor) -> torch.Tensor:
    return x + torch.relu(x @ W1 + b1) @ W2


def residual_forward(x: Any, W1: Any, b1: Any, W2: Any) -> Any:
    a = x @ W1 + b1
    h = a * (a > 0)
    return x + h @ W2, (x, W1, W2, h)


def residual_backward_without_skip(dout: Any, cache: Any) -> Any:
    """dx comes only through the branch."""
    x, w1, w2, h = cache
    dh = dout @ w2.T
    dh[h <= 0] = 0
    return dh @ w1.T, x.T @ dh, dh.sum(0), h.T @ dout


def ridge(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return functional.mse_loss(x @ w, y) + 0.1 * w.square().sum()


def ridge_forward(x: Any, y: Any, w: Any) -> Any:
    difference = x.dot(w) - y
    loss = np.mean(difference**2) + 0.1 * np.sum(w * w)
    return loss, (x, w, difference)


def ridge_backward(cache: Any) -> Any:
    """The factor 2 of the square of the weights is forgotten."""
    x, w, difference = cache
    ddifference = 2 * difference / difference.size
    return {"dx": np.outer(ddifference, w), "dy": -ddifference, "dw": x.T.dot(ddifference) + 0.1 * w}


def scaled_images(x: torch.Tensor, g: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return x * g[:, None, None] + b[:, None, None]


def scaled_images_forward(x: Any, g: Any, b: Any) -> Any:
    return x * g.reshape(1, -1, 1, 1) + b.reshape(1, -1, 1, 1), {"x": x, "g": g}


def scaled_images_backward(dout: Any, cache: Any) -> Any:
    """db isn't summed over the images."""
    dx = dout * cache["g"].reshape(1, -1, 1, 1)
    dg = np.sum(dout * cache["x"], axis=(0, 2, 3))
    return dx, dg, np.sum(dout[0], axis=(1, 2))


generator = np.random.default_rng(17)


def draw(*shapes: tuple[int, ...]) -> list[Any]:
    return [generator.standard_normal(shape) for shape in shapes]


IMAGES = draw((2, 3, 2, 4), (3,), (3,))
CODES = draw((4, 5), (5, 3), (3,), (5,))
WEIGHTS = draw((4, 3), (3, 5))
BRANCH = draw((4, 3), (3, 5), (5,), (5, 3))
TARGETS = draw((6, 3), (6,), (3,))
TIED = HandwrittenClass(TiedAutoencoder, {"W": "dW", "b": "db", "c": "dc"})
RIGHT = [
    Handwriting("spatial batch norm", (spatial_batch_norm_forward, spatial_batch_norm_backward), batch_norm, IMAGES),
    Handwriting("tied autoencoder", TIED, autoencoder, CODES),
    Handwriting("straight through", (quantized_forward, quantized_backward), quantized, WEIGHTS),
]
WRONG = [
    Handwriting(
        "residual without skip",
        (residual_forward, residual_backward_without_skip),
        residual,
        BRANCH,
        "the gradient of the skip is missing",
        ("grad_x",),
    ),
    Handwriting(
        "ridge factor",
        (ridge_forward, ridge_backward),
        ridge,
        TARGETS,
        "the factor 2 of the regularizer is forgotten",
        ("grad_w",),
    ),
    Handwriting(
        "image bias",
        (scaled_images_forward, scaled_images_backward),
        scaled_images,
        IMAGES,
        "a sum over a broadcast axis is missing",
        ("grad_b",),
    ),
]
