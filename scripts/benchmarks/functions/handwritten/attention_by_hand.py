"""Attention with one head, with several and a causal mask, and rotated positions."""

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks.functions.subject import Handwriting


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.T / q.shape[1] ** 0.5, dim=-1) @ v


def attention_forward(q: Any, k: Any, v: Any) -> Any:
    scale = 1 / np.sqrt(q.shape[1])
    weights = softmax(q @ k.T * scale)
    return weights @ v, (q, k, v, weights, scale)


def attention_backward(dout: Any, cache: Any) -> Any:
    """The Jacobian of each row's softmax, written out."""
    q, k, v, weights, scale = cache
    dweights = dout @ v.T
    dscores = np.zeros_like(weights)
    for row, p in enumerate(weights):
        jacobian = np.diag(p) - np.outer(p, p)
        dscores[row] = jacobian @ dweights[row]
    dscores *= scale
    return dscores @ k, dscores.T @ q, weights.T @ dout


def attention_backward_diagonal(dout: Any, cache: Any) -> Any:
    """The softmax's Jacobian as its diagonal."""
    q, k, v, weights, scale = cache
    dweights = dout @ v.T
    dscores = dweights * weights * (1 - weights) * scale
    return dscores @ k, dscores.T @ q, weights.T @ dout


def causal(x: torch.Tensor, Wq: torch.Tensor, Wk: torch.Tensor, Wv: torch.Tensor, Wo: torch.Tensor) -> torch.Tensor:
    n, steps, size = x.shape
    q, k, v = ((x @ w).view(n, steps, 2, size // 2).transpose(1, 2) for w in (Wq, Wk, Wv))
    mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return mixed.transpose(1, 2).reshape(n, steps, size) @ Wo


def heads(x: Any) -> Any:
    n, steps, size = x.shape
    return x.reshape(n, steps, 2, size // 2).transpose(0, 2, 1, 3)


def together(x: Any) -> Any:
    n, count, steps, width = x.shape
    return x.transpose(0, 2, 1, 3).reshape(n, steps, count * width)


def causal_parts(x: Any, Wq: Any, Wk: Any, Wv: Any, Wo: Any) -> Any:
    steps = x.shape[1]
    q, k, v = heads(x @ Wq), heads(x @ Wk), heads(x @ Wv)
    scores = np.einsum("nhtd,nhsd->nhts", q, k) / np.sqrt(q.shape[-1])
    scores = np.where(np.tril(np.ones((steps, steps), dtype=bool)), scores, -np.inf)
    weights = softmax(scores)
    mixed = together(np.einsum("nhts,nhsd->nhtd", weights, v))
    parts = {"x": x, "Wq": Wq, "Wk": Wk, "Wv": Wv, "Wo": Wo, "q": q, "k": k, "v": v, "weights": weights, "mixed": mixed}
    return mixed @ Wo, parts


def causal_forward(x: Any, Wq: Any, Wk: Any, Wv: Any, Wo: Any) -> Any:
    return causal_parts(x, Wq, Wk, Wv, Wo)


CACHE: dict[str, Any] = {}


def causal_forward_one_cache(x: Any, Wq: Any, Wk: Any, Wv: Any, Wo: Any) -> Any:
    """All calls share one cache, so that backward sees the latest forward."""
    out, parts = causal_parts(x, Wq, Wk, Wv, Wo)
    CACHE.update(parts)
    return out, CACHE


def causal_backward(dout: Any, cache: Any) -> Any:
    x, q, k, v, weights = (cache[name] for name in ("x", "q", "k", "v", "weights"))
    dwo = np.einsum("nti,nto->io", cache["mixed"], dout)
    dmixed = heads(dout @ cache["Wo"].T)
    dv = weights.swapaxes(2, 3) @ dmixed
    dweights = dmixed @ v.swapaxes(2, 3)
    dscores = weights * (dweights - (dweights * weights).sum(axis=-1, keepdims=True)) / np.sqrt(q.shape[-1])
    dq, dk, dv = together(dscores @ k), together(dscores.swapaxes(2, 3) @ q), together(dv)
    dx = dq @ cache["Wq"].T + dk @ cache["Wk"].T + dv @ cache["Wv"].T
    dwq, dwk, dwv = (np.tensordot(x, each, axes=([0, 1], [0, 1])) for each in (dq, dk, dv))
    return {"dx": dx, "dWq": dwq, "dWk": dwk, "dWv": dwv, "dWo": dwo}


def rotated(x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    size = x.shape[-1]
    angles = positions[:, None] * 10000.0 ** (-torch.arange(0, size, 2, dtype=x.dtype) / size)
    even, odd = x[..., ::2], x[..., 1::2]
    pairs = (even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos())
    return torch.stack(pairs, dim=-1).flatten(-2)


def rope_forward(x: Any, positions: Any) -> Any:
    size = x.shape[-1]
    frequencies = 1.0 / 10000.0 ** (np.arange(0, size, 2) / size)
    angles = np.outer(positions, frequencies)
    cosine, sine = np.cos(angles), np.sin(angles)
    out = np.empty_like(x)
    out[..., 0::2] = x[..., 0::2] * cosine - x[..., 1::2] * sine
    out[..., 1::2] = x[..., 0::2] * sine + x[..., 1::2] * cosine
    return out, (cosine, sine)


def rope_backward(dout: Any, cache: Any) -> Any:
    """A multiplication of complex numbers, backwards by the conjugate."""
    cosine, sine = cache
    turned = (dout[..., 0::2] + 1j * dout[..., 1::2]) * (cosine - 1j * sine)
    dx = np.zeros_like(dout)
    dx[..., 0::2], dx[..., 1::2] = turned.real, turned.imag
    return dx


def rope_backward_forwards(dout: Any, cache: Any) -> Any:
    """Turns the gradient forwards, as the values."""
    cosine, sine = cache
    dx = np.zeros_like(dout)
    dx[..., 0::2] = dout[..., 0::2] * cosine - dout[..., 1::2] * sine
    dx[..., 1::2] = dout[..., 0::2] * sine + dout[..., 1::2] * cosine
    return dx


generator = np.random.default_rng(15)
QUERIES = [generator.standard_normal(shape) for shape in ((3, 4), (5, 4), (5, 2))]
HEADS = [generator.standard_normal(shape) for shape in ((2, 3, 4), (4, 4), (4, 4), (4, 4), (4, 4))]
POSITIONS = [generator.standard_normal((2, 5, 6)), np.arange(5)]
RIGHT = [
    Handwriting("attention", (attention_forward, attention_backward), attention, QUERIES),
    Handwriting("causal heads", (causal_forward, causal_backward), causal, HEADS),
    Handwriting("rotation", (rope_forward, rope_backward), rotated, POSITIONS),
]
WRONG = [
    Handwriting(
        "attention diagonal",
        (attention_forward, attention_backward_diagonal),
        attention,
        QUERIES,
        "the softmax's Jacobian as its diagonal",
        ("grad_q", "grad_k"),
    ),
    Handwriting(
        "causal heads one cache",
        (causal_forward_one_cache, causal_backward),
        causal,
        HEADS,
        "a stale cache in a global",
        ("two forwards",),
    ),
    Handwriting(
        "rotation forwards",
        (rope_forward, rope_backward_forwards),
        rotated,
        POSITIONS,
        "the sign of the angle",
        ("grad_x",),
    ),
]
