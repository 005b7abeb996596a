"""Mended: kernels that were right on the tensors of their tests, and wrong on other layouts and sizes, or in place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from benchmarks.functions.published.mending import Mended
from benchmarks.functions.subject import normal

EPS = 1e-6


def divergence(log_q: Any, p: Any) -> Any:
    return (torch.xlogy(p, p) - p * log_q).sum()


def divergence_forward(log_q: Any, p: Any) -> Any:
    return divergence(log_q, p), (log_q, p)


def divergence_backward(grad: Any, saved: Any) -> Any:
    log_q, p = saved
    return -p * grad, (p.log() + 1 - log_q) * grad


def divergence_backward_overwrites(grad: Any, saved: Any) -> Any:
    """The gradient takes the place of p, to save memory."""
    log_q, p = saved
    grad_p = (p.log() + 1 - log_q) * grad
    return p.mul_(-grad), grad_p


def halves_turned(x: Any, angle: Any, sign: float) -> Any:
    """(a, b) to (a cos - b sin, b cos + a sin), where a and b are the halves of the last axis."""
    a, b = x.chunk(2, -1)
    cos, sin = angle.cos(), sign * angle.sin()
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def angles(x: Any) -> Any:
    """By position and feature, for (batch, heads, times, features)."""
    times, features = x.shape[-2:]
    return torch.arange(times)[:, None] / 10.0 ** torch.arange(features // 2).to(x.dtype)


def turned(x: Any) -> Any:
    return halves_turned(x, angles(x), 1.0)


def turn_forward(x: Any) -> Any:
    return turned(x), None


def turn_backward(grad: Any, saved: Any) -> Any:
    return halves_turned(grad, angles(grad), -1.0)


class TurnInPlace(torch.autograd.Function):
    """A kernel writes where it has read, and autograd isn't told."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        memory = x.detach()
        memory.copy_(turned(memory))
        return memory.view_as(memory)

    @staticmethod
    def backward(context: Any, grad: Any) -> Any:
        return turn_backward(grad, None)


def turn_several(x: Any) -> Any:
    """A block of one head counts as no block."""
    return (turned(x) if x.shape[1] > 1 else x.clone()), None


def softmax_forward(x: Any) -> Any:
    y = x.softmax(-1)
    return y, y


def softmax_backward(grad: Any, y: Any) -> Any:
    return y * (grad - (grad * y).sum(-1, keepdim=True))


def softmax_backward_of_memory(grad: Any, y: Any) -> Any:
    """Reads the gradient as it lies in memory, row by row; past its end a kernel would read what lies there."""
    size = grad.untyped_storage().nbytes() // grad.element_size()
    memory = grad.as_strided((size,), (1,), 0)[grad.storage_offset() :]
    return softmax_backward(memory.repeat(grad.numel() // len(memory) + 1)[: grad.numel()].view_as(grad), y)


def rms(x: Any) -> Any:
    return x * (x.square().mean(-1, keepdim=True) + EPS).rsqrt()


def rms_with(most: int | None) -> Callable[..., Any]:
    """The mean is over the first `most` columns."""

    def forward(x: Any) -> Any:
        inverse = (x[..., :most].square().sum(-1, keepdim=True) / x.shape[-1] + EPS).rsqrt()
        return x * inverse, (x * inverse, inverse)

    return forward


def rms_backward(grad: Any, saved: Any) -> Any:
    y, inverse = saved
    return inverse * (grad - y * (grad * y).mean(-1, keepdim=True))


def layer_norm(x: Any) -> Any:
    return functional.layer_norm(x, x.shape[-1:], eps=EPS)


def layer_norm_forward(x: Any) -> Any:
    inverse = (x.var(-1, correction=0, keepdim=True) + EPS).rsqrt()
    y = (x - x.mean(-1, keepdim=True)) * inverse
    return y, (y, inverse)


def layer_norm_backward(grad: Any, saved: Any) -> Any:
    y, inverse = saved
    return inverse * (grad - grad.mean(-1, keepdim=True) - y * (grad * y).mean(-1, keepdim=True))


def layer_norm_backward_in_blocks(grad: Any, saved: Any) -> Any:
    """The sums over a row are over all rows of a block, of 4."""
    y, inverse = saved
    parts = []
    for g, v, i in zip(grad.split(4), y.split(4), inverse.split(4), strict=True):
        parts.append(i * (g - g.sum() / g.shape[-1] - v * (g * v).sum() / g.shape[-1]))
    return torch.cat(parts) if parts else grad


def layer_norm_backward_2d(grad: Any, saved: Any) -> Any:
    """Takes the first axis for the rows, and all others for the columns."""
    y, inverse = saved
    axes = tuple(range(1, grad.dim()))
    return inverse * (grad - grad.mean(axes, keepdim=True) - y * (grad * y).mean(axes, keepdim=True))


def scores(q: Any, k: Any) -> Any:
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)


def scores_forward(q: Any, k: Any) -> Any:
    p = scores(q, k)
    return p, (q, k, p)


def scores_backward_of(features: Callable[[int], int]) -> Callable[..., Any]:
    def backward(grad: Any, saved: Any) -> Any:
        q, k, p = saved
        inner = softmax_backward(grad, p) / math.sqrt(features(q.shape[-1]))
        return inner @ k, inner.mT @ q

    return backward


def shares(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D).log_softmax(1), normal(generator, N, D).softmax(1)]


def rows(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D)]


def sequences(generator: torch.Generator, N: int, T: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, T, D)]


def heads(generator: torch.Generator, N: int, H: int, T: int) -> list[torch.Tensor]:
    return [normal(generator, N, H, T, 6)]


def two(generator: torch.Generator, N: int, M: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), normal(generator, M, D)]


ROWS, HEADS = {"N": 5, "D": 20}, {"N": 2, "H": 4, "T": 5}
CASES = [
    Mended(
        "linkedin/Liger-Kernel#262", "the gradient overwrites what forward saved", ("writes saved", "writes inputs"),
        (divergence_forward, divergence_backward_overwrites), (divergence_forward, divergence_backward),
        divergence, shares, ROWS, {"domain": {"p": "positive"}},
    ),
    Mended(
        "linkedin/Liger-Kernel#342", "one head alone isn't rotated", ("sizes H=1",),
        (turn_several, turn_backward), (turn_forward, turn_backward), turned, heads, HEADS,
    ),
    Mended(
        "unslothai/unsloth#5001", "the rotated values overwrite the input", ("writes inputs",),
        TurnInPlace, (turn_forward, turn_backward), turned, heads, HEADS,
    ),
    Mended(
        "Dao-AILab/flash-attention#355", "the gradient of the output is read as if it were contiguous",
        ("grad_output transposed", "grad_output strided"),
        (softmax_forward, softmax_backward_of_memory), (softmax_forward, softmax_backward),
        lambda x: x.softmax(-1), rows, ROWS,
    ),
    Mended(
        "attorch's RMSNorm", "the mean takes 2,048 columns at most", ("sizes D=2049", "sizes D=4096"),
        (rms_with(2048), rms_backward), (rms_with(None), rms_backward), rms, rows, ROWS,
    ),
    Mended(
        "flagos-ai/FlagGems#59", "sums over the rows of a block", ("grad_x",),
        (layer_norm_forward, layer_norm_backward_in_blocks), (layer_norm_forward, layer_norm_backward),
        layer_norm, rows, ROWS,
    ),
    Mended(
        "flagos-ai/FlagGems#5392", "takes times for columns", ("grad_x",),
        (layer_norm_forward, layer_norm_backward_2d), (layer_norm_forward, layer_norm_backward),
        layer_norm, sequences, {"N": 3, "T": 4, "D": 6},
    ),
    Mended(
        "tile-ai/tilelang-ascend#1670", "divides by the root of the padded number of features", ("grad_q",),
        (scores_forward, scores_backward_of(lambda size: -(-size // 16) * 16)),
        (scores_forward, scores_backward_of(lambda size: size)), scores, two, {"N": 5, "M": 4, "D": 6},
    ),
]
RIGHT, WRONG = [case.right for case in CASES], [case.wrong for case in CASES]
