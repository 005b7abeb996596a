"""Embeddings, gather, cumulative sums."""

from typing import Any

import numpy as np
import torch

from benchmarks.functions.subject import Handwriting
from nn_manual import HandwrittenClass


def embedding(idx: torch.Tensor, W: torch.Tensor) -> torch.Tensor:
    return W[idx]


class Embedding:
    def __init__(self, W: Any) -> None:
        self.params = [W]
        self.grads = [np.zeros_like(W)]
        self.idx: Any = None

    def forward(self, idx: Any) -> Any:
        self.idx = idx
        return self.params[0][idx]

    def backward(self, dout: Any) -> None:
        dw = self.grads[0]
        dw[...] = 0
        np.add.at(dw, self.idx, dout)


def word_embedding_forward(x: Any, W: Any) -> Any:
    return W[x, :], (x, W.shape)


def word_embedding_backward(dout: Any, cache: Any) -> Any:
    """A word that occurs several times gets only the last gradient."""
    x, shape = cache
    dw = np.zeros(shape)
    dw[x] += dout
    return None, dw


def gather(x: torch.Tensor, idx: torch.Tensor) -> torch.Tensor:
    return x.gather(1, idx)


def gather_forward(x: Any, idx: Any) -> Any:
    return np.take_along_axis(x, idx, axis=1), (x.shape, idx)


def gather_backward(dout: Any, cache: Any) -> Any:
    """A one-hot row for each index."""
    shape, idx = cache
    one_hot = (idx[:, :, None] == np.arange(shape[1])).astype(dout.dtype)
    return np.einsum("nk,nkd->nd", dout, one_hot)


def gather_backward_overwrites(dout: Any, cache: Any) -> Any:
    """A column that is read twice gets one gradient. Here no row reads a column twice; other indices do."""
    shape, idx = cache
    dx = np.zeros(shape)
    np.put_along_axis(dx, idx, dout, axis=1)
    return dx


def running_sum(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x * w).cumsum(1)


def running_sum_forward(x: Any, w: Any) -> Any:
    total = np.zeros(len(x))
    out = np.empty_like(x)
    for t in range(x.shape[1]):
        total = total + x[:, t] * w[t]
        out[:, t] = total
    return out, (x, w)


def running_sum_backward(dout: Any, cache: Any) -> Any:
    x, w = cache
    later = np.cumsum(dout[:, ::-1], axis=1)[:, ::-1]
    return later * w, (later * x).sum(axis=0)


def running_sum_backward_into_cache(dout: Any, cache: Any) -> Any:
    """Multiplies into the cached x, which is the caller's."""
    x, w = cache
    later = dout.sum(axis=1, keepdims=True) - np.cumsum(dout, axis=1) + dout
    dx = later * w
    x *= later
    return dx, x.sum(axis=0)


generator = np.random.default_rng(14)
WORDS = [np.array([[0, 3, 1], [3, 3, 2]]), generator.standard_normal((5, 4))]
REPEATED = [generator.standard_normal((3, 5)), generator.integers(0, 5, (3, 6))]
ONCE = [generator.standard_normal((3, 5)), np.array([[4, 0, 2], [1, 3, 0], [2, 1, 4]])]
SUMS = [generator.standard_normal((3, 5)), generator.standard_normal(5)]
RIGHT = [
    Handwriting("embedding layer", HandwrittenClass(Embedding, {"W": "grads[0]"}), embedding, WORDS),
    Handwriting("gather one-hot", (gather_forward, gather_backward), gather, REPEATED),
    Handwriting("running sum", (running_sum_forward, running_sum_backward), running_sum, SUMS),
]
WRONG = [
    Handwriting(
        "embedding adds once",
        (word_embedding_forward, word_embedding_backward),
        embedding,
        WORDS,
        "repeated indices are counted once",
        ("grad_W",),
    ),
    Handwriting(
        "gather overwrites",
        (gather_forward, gather_backward_overwrites),
        gather,
        ONCE,
        "repeated indices are counted once",
        ("repeated", "grad_x"),
    ),
    Handwriting(
        "running sum writes into cache",
        (running_sum_forward, running_sum_backward_into_cache),
        running_sum,
        SUMS,
        "overwrites the cached input",
        ("writes saved", "writes inputs"),
    ),
]
