"""Convolutions: naive loops, im2col, loops over the kernel's offsets, depthwise."""

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks.functions.subject import Handwriting
from nn_manual import HandwrittenClass

STRIDE, PAD = 2, 1


def draw(seed: int, *shapes: tuple[int, ...]) -> list[Any]:
    generator = np.random.default_rng(seed)
    return [generator.standard_normal(shape) for shape in shapes]


def strided(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return functional.conv2d(x, w, b, stride=STRIDE, padding=PAD)


def conv_forward_naive(x: Any, w: Any, b: Any) -> Any:
    n, _, height, width = x.shape
    f, _, hh, ww = w.shape
    h_out = 1 + (height + 2 * PAD - hh) // STRIDE
    w_out = 1 + (width + 2 * PAD - ww) // STRIDE
    x_pad = np.pad(x, ((0, 0), (0, 0), (PAD, PAD), (PAD, PAD)), mode="constant")
    out = np.zeros((n, f, h_out, w_out))
    for i in range(n):
        for k in range(f):
            for r in range(h_out):
                for c in range(w_out):
                    window = x_pad[i, :, r * STRIDE : r * STRIDE + hh, c * STRIDE : c * STRIDE + ww]
                    out[i, k, r, c] = np.sum(window * w[k]) + b[k]
    return out, (x, w, b)


def conv_backward_naive(dout: Any, cache: Any) -> Any:
    x, w, b = cache
    _, _, hh, ww = w.shape
    x_pad = np.pad(x, ((0, 0), (0, 0), (PAD, PAD), (PAD, PAD)), mode="constant")
    dx_pad, dw, db = np.zeros_like(x_pad), np.zeros_like(w), np.zeros_like(b)
    n, f, h_out, w_out = dout.shape
    for i in range(n):
        for k in range(f):
            db[k] += dout[i, k].sum()
            for r in range(h_out):
                for c in range(w_out):
                    top, left = r * STRIDE, c * STRIDE
                    dw[k] += x_pad[i, :, top : top + hh, left : left + ww] * dout[i, k, r, c]
                    dx_pad[i, :, top : top + hh, left : left + ww] += w[k] * dout[i, k, r, c]
    return dx_pad[:, :, PAD:-PAD, PAD:-PAD], dw, db


def conv_backward_without_stride(dout: Any, cache: Any) -> Any:
    """dx goes to r, c and not to r * stride, c * stride."""
    x, w, _ = cache
    _, _, hh, ww = w.shape
    x_pad = np.pad(x, ((0, 0), (0, 0), (PAD, PAD), (PAD, PAD)), mode="constant")
    dx_pad, dw = np.zeros_like(x_pad), np.zeros_like(w)
    n, f, h_out, w_out = dout.shape
    for i in range(n):
        for k in range(f):
            for r in range(h_out):
                for c in range(w_out):
                    window = x_pad[i, :, r * STRIDE : r * STRIDE + hh, c * STRIDE : c * STRIDE + ww]
                    dw[k] += window * dout[i, k, r, c]
                    dx_pad[i, :, r : r + hh, c : c + ww] += w[k] * dout[i, k, r, c]
    return dx_pad[:, :, PAD:-PAD, PAD:-PAD], dw, dout.sum(axis=(0, 2, 3))


def same(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return functional.conv2d(x, w, b, padding=1)


def im2col_3x3(x: Any) -> Any:
    """(N * H * W, C * 9)."""
    n, channels, height, width = x.shape
    x_pad = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    cols = np.empty((n, channels, 3, 3, height, width))
    for i in range(3):
        for j in range(3):
            cols[:, :, i, j] = x_pad[:, :, i : i + height, j : j + width]
    return cols.transpose(0, 4, 5, 1, 2, 3).reshape(n * height * width, -1)


def im2col_forward(x: Any, w: Any, b: Any) -> Any:
    n, _, height, width = x.shape
    cols = im2col_3x3(x)
    out = cols @ w.reshape(len(w), -1).T + b
    cache = {"cols": cols, "w": w, "shape": x.shape}
    return out.reshape(n, height, width, -1).transpose(0, 3, 1, 2), cache


def im2col_backward(dout: Any, cache: Any) -> Any:
    w = cache["w"]
    n, channels, height, width = cache["shape"]
    rows = dout.transpose(0, 2, 3, 1).reshape(-1, len(w))
    dcols = rows @ w.reshape(len(w), -1)
    dcols = dcols.reshape(n, height, width, channels, 3, 3).transpose(0, 3, 4, 5, 1, 2)
    dx_pad = np.zeros((n, channels, height + 2, width + 2))
    for i in range(3):
        for j in range(3):
            dx_pad[:, :, i : i + height, j : j + width] += dcols[:, :, i, j]
    return {"dx": dx_pad[:, :, 1:-1, 1:-1], "dw": (rows.T @ cache["cols"]).reshape(w.shape), "db": rows.sum(0)}


def offsets_forward(x: Any, w: Any, b: Any) -> Any:
    _, _, height, width = x.shape
    x_pad = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    out = b[None, :, None, None]
    for i in range(3):
        for j in range(3):
            out = out + np.einsum("nchw,fc->nfhw", x_pad[:, :, i : i + height, j : j + width], w[:, :, i, j])
    return out, [x_pad, w]


def offsets_backward_crops_corner(dout: Any, cache: Any) -> Any:
    """The padding is cut off at the far end only: [:H] for [1:-1]."""
    x_pad, w = cache
    height, width = dout.shape[2:]
    dx_pad, dw = np.zeros_like(x_pad), np.zeros_like(w)
    for i in range(3):
        for j in range(3):
            dx_pad[:, :, i : i + height, j : j + width] += np.einsum("nfhw,fc->nchw", dout, w[:, :, i, j])
            dw[:, :, i, j] = np.einsum("nfhw,nchw->fc", dout, x_pad[:, :, i : i + height, j : j + width])
    return dx_pad[:, :, :height, :width], dw, dout.sum((0, 2, 3))


def depthwise(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return functional.conv2d(x, w[:, None], groups=len(w))


def depthwise_forward(x: Any, w: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[1:], axis=(2, 3))
    return np.einsum("nchwij,cij->nchw", windows, w), (windows, w)


def depthwise_backward(dout: Any, cache: Any) -> Any:
    """dx is a full correlation of dout with the flipped kernel."""
    windows, w = cache
    kh, kw = w.shape[1:]
    padded = np.pad(dout, ((0, 0), (0, 0), (kh - 1, kh - 1), (kw - 1, kw - 1)))
    spread = np.lib.stride_tricks.sliding_window_view(padded, (kh, kw), axis=(2, 3))
    dx = np.einsum("nchwij,cij->nchw", spread, w[:, ::-1, ::-1])
    return dx, np.einsum("nchw,nchwij->cij", dout, windows)


class Convolution:
    """stride 1, no padding. col2im writes with = where windows overlap, so only the last window counts."""

    def __init__(self, W: Any, b: Any) -> None:
        self.W, self.b = W, b

    def forward(self, x: Any) -> Any:
        self.x = x
        windows = np.lib.stride_tricks.sliding_window_view(x, self.W.shape[2:], axis=(2, 3))
        self.windows = windows
        out = np.tensordot(windows, self.W, axes=([1, 4, 5], [1, 2, 3]))
        return out.transpose(0, 3, 1, 2) + self.b.reshape(-1, 1, 1)

    def backward(self, dout: Any) -> Any:
        self.dW = np.tensordot(dout, self.windows, axes=([0, 2, 3], [0, 2, 3]))
        self.db = dout.sum(axis=(0, 2, 3))
        dx = np.zeros_like(self.x)
        fh, fw = self.W.shape[2:]
        for i in range(dout.shape[2]):
            for j in range(dout.shape[3]):
                dx[:, :, i : i + fh, j : j + fw] = np.tensordot(dout[:, :, i, j], self.W, axes=1)
        return dx


def valid(x: torch.Tensor, W: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return functional.conv2d(x, W, b)


STRIDED = draw(1, (2, 2, 5, 5), (2, 2, 3, 3), (2,))
SAME = draw(2, (2, 2, 4, 3), (3, 2, 3, 3), (3,))
DEPTHWISE = [each.astype(np.float32) for each in draw(3, (2, 3, 4, 5), (3, 2, 3))]
VALID = draw(4, (2, 2, 4, 4), (3, 2, 2, 2), (3,))
RIGHT = [
    Handwriting("conv naive", (conv_forward_naive, conv_backward_naive), strided, STRIDED),
    Handwriting("conv im2col", (im2col_forward, im2col_backward), same, SAME),
    Handwriting("conv depthwise", (depthwise_forward, depthwise_backward), depthwise, DEPTHWISE),
]
WRONG = [
    Handwriting(
        "conv without stride",
        (conv_forward_naive, conv_backward_without_stride),
        strided,
        STRIDED,
        "the stride is forgotten in backward",
        ("grad_x",),
    ),
    Handwriting(
        "conv crops corner",
        (offsets_forward, offsets_backward_crops_corner),
        same,
        SAME,
        "the padding is cut off at the wrong end",
        ("grad_x",),
    ),
    Handwriting(
        "conv col2im assigns",
        HandwrittenClass(Convolution, {"W": "dW", "b": "db"}),
        valid,
        VALID,
        "overlapping windows overwrite each other",
        ("grad_x",),
    ),
]
