"""Pooling: max with overlapping windows and with ties, average, global average."""

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks.functions.subject import Handwriting
from nn_manual import HandwrittenClass


def overlapping(x: torch.Tensor) -> torch.Tensor:
    return functional.max_pool2d(x, 3, stride=2)


def max_pool_forward(x: Any) -> Any:
    n, channels, height, width = x.shape
    h_out, w_out = (height - 3) // 2 + 1, (width - 3) // 2 + 1
    out = np.zeros((n, channels, h_out, w_out), x.dtype)
    for r in range(h_out):
        for c in range(w_out):
            out[:, :, r, c] = x[:, :, 2 * r : 2 * r + 3, 2 * c : 2 * c + 3].max(axis=(2, 3))
    return out, x


def max_pool_backward(dout: Any, x: Any) -> Any:
    dx = np.zeros_like(x)
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            for r in range(dout.shape[2]):
                for c in range(dout.shape[3]):
                    window = x[i, k, 2 * r : 2 * r + 3, 2 * c : 2 * c + 3]
                    row, column = np.unravel_index(np.argmax(window), window.shape)
                    dx[i, k, 2 * r + row, 2 * c + column] += dout[i, k, r, c]
    return dx


def halved(x: torch.Tensor) -> torch.Tensor:
    return functional.max_pool2d(x, 2)


def max_pool_reshape_forward(x: Any) -> Any:
    n, channels, height, width = x.shape
    blocks = x.reshape(n, channels, height // 2, 2, width // 2, 2)
    out = blocks.max(axis=3).max(axis=4)
    return out, (x, blocks, out)


def max_pool_reshape_backward(dout: Any, cache: Any) -> Any:
    """Each of several equal largest entries gets the full gradient."""
    x, blocks, out = cache
    mask = blocks == out[:, :, :, None, :, None]
    return (mask * dout[:, :, :, None, :, None]).reshape(x.shape)


def average(x: torch.Tensor) -> torch.Tensor:
    return functional.avg_pool2d(x, 3, stride=1)


def average_pool_forward(x: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    return windows.mean(axis=(-1, -2)), {"shape": x.shape, "size": 3}


def average_pool_backward(dout: Any, cache: Any) -> Any:
    """Divides by the window's side, not by its area."""
    size = cache["size"]
    dx = np.zeros(cache["shape"])
    for r in range(dout.shape[2]):
        for c in range(dout.shape[3]):
            dx[:, :, r : r + size, c : c + size] += dout[:, :, r, c][:, :, None, None] / size
    return dx


def global_mean(x: torch.Tensor) -> torch.Tensor:
    return x.mean((2, 3))


class GlobalAveragePool:
    def forward(self, inputs: Any) -> Any:
        self.inputs = inputs
        n, channels = inputs.shape[:2]
        self.output = inputs.reshape(n, channels, -1).mean(axis=-1)
        return self.output

    def backward(self, dvalues: Any) -> None:
        _, _, height, width = self.inputs.shape
        self.dinputs = np.ones_like(self.inputs)
        self.dinputs *= dvalues[:, :, np.newaxis, np.newaxis] / (height * width)


generator = np.random.default_rng(5)
FIVE = [generator.standard_normal((2, 2, 5, 5))]
FOUR = [generator.standard_normal((2, 2, 4, 4))]
UNEVEN = [generator.standard_normal((2, 3, 4, 5))]
RIGHT = [
    Handwriting("max pool naive", (max_pool_forward, max_pool_backward), overlapping, FIVE),
    Handwriting("global average pool", HandwrittenClass(GlobalAveragePool, {"inputs": "dinputs"}), global_mean, UNEVEN),
]
WRONG = [
    Handwriting(
        "max pool ties",
        (max_pool_reshape_forward, max_pool_reshape_backward),
        halved,
        FOUR,
        "each of several tied entries gets the full gradient",
        ("kinds tied", "kinds zero"),
    ),
    Handwriting(
        "average pool by side",
        (average_pool_forward, average_pool_backward),
        average,
        UNEVEN,
        "divided by the wrong size",
        ("grad_x",),
    ),
]
