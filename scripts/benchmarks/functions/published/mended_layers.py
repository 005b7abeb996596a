"""Mended: activations, sparsemax, a broadcast sum, a mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from benchmarks.functions.published.mending import Mended
from benchmarks.functions.subject import normal


def leaky(x: Any) -> Any:
    return functional.leaky_relu(x, -2.0)


def leaky_forward(x: Any) -> Any:
    return leaky(x), x


def leaky_forward_in_place(x: Any) -> Any:
    """Only the output is left."""
    y = leaky(x)
    return y, y


def leaky_backward(grad: Any, saved: Any) -> Any:
    """With a slope below 0, the output is positive on both sides."""
    return torch.where(saved > 0, grad, -2 * grad)


def shrunk(x: Any) -> Any:
    return functional.hardshrink(x, 1.0)


def shrink(is_large: Callable[[Any], Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def forward(x: Any) -> Any:
        return torch.where(is_large(x), x, 0), x

    def backward(grad: Any, x: Any) -> Any:
        return torch.where(is_large(x), grad, 0)

    return forward, backward


def sparsemax(x: Any) -> Any:
    """max(x - threshold, 0), whose sum is 1."""
    with torch.no_grad():
        largest = x.sort(-1, descending=True).values
        counts = torch.arange(1, x.shape[-1] + 1)
        size = (1 + counts * largest > largest.cumsum(-1)).sum(-1, keepdim=True)
        support = x >= largest.gather(-1, size - 1)
    threshold = (torch.where(support, x, 0).sum(-1, keepdim=True) - 1) / size
    return (x - threshold).clamp(min=0)


def sparsemax_forward(x: Any) -> Any:
    y = sparsemax(x)
    return y, (y, (y > 0).sum(-1, keepdim=True))


def sparsemax_backward(grad: Any, saved: Any) -> Any:
    y, size = saved
    kept = torch.where(y > 0, grad, 0)
    return torch.where(y > 0, kept - (kept.sum(-1) / size.squeeze(-1))[..., None], 0)


def sparsemax_backward_squeezed(grad: Any, saved: Any) -> Any:
    """`squeeze()` takes away every axis of length 1, and not the last alone."""
    y, size = saved
    kept = torch.where(y > 0, grad, 0)
    return torch.where(y > 0, kept - (kept.sum(-1) / size.squeeze())[..., None], 0)


def shifted(x: Any, bias: Any) -> Any:
    return x + bias


def shifted_forward(x: Any, bias: Any) -> Any:
    return x + bias, None


def shifted_backward(grad: Any, saved: Any) -> Any:
    return grad, grad.sum(0)


def shifted_backward_without_sum(grad: Any, saved: Any) -> Any:
    return grad, grad


def mean(x: Any) -> Any:
    return x.mean(1)


def mean_forward(x: Any) -> Any:
    return x.sum(1) / x.shape[1], x.shape


def mean_backward(grad: Any, shape: Any) -> Any:
    return (grad / shape[1])[:, None].expand(shape).clone()


def mean_backward_by_rows(grad: Any, shape: Any) -> Any:
    """Divides by the number of means."""
    return (grad / len(grad))[:, None].expand(shape).clone()


def rows(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D)]


def sequences(generator: torch.Generator, N: int, T: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, T, D)]


def with_bias(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), normal(generator, D)]


SIZES = {"N": 5, "D": 20}
CASES = [
    Mended(
        "pytorch/pytorch#31938", "the side of a kink is read from the output", ("grad_x", "grad_input"),
        (leaky_forward_in_place, leaky_backward), (leaky_forward, leaky_backward), leaky, rows, SIZES,
    ),
    Mended(
        "attorch's Hardshrink", "the threshold itself is kept", ("kinds tied",),
        shrink(lambda x: x.abs() >= 1), shrink(lambda x: x.abs() > 1), shrunk, rows, SIZES,
    ),
    Mended(
        "deep-spin/entmax#13", "with one time step, the rows are divided by each other's sizes", ("sizes T=1",),
        (sparsemax_forward, sparsemax_backward_squeezed), (sparsemax_forward, sparsemax_backward),
        sparsemax, sequences, {"N": 3, "T": 4, "D": 6},
    ),
    Mended(
        "apache/tvm#2465", "the gradient of a broadcast input isn't summed", ("grad_bias",),
        (shifted_forward, shifted_backward_without_sum), (shifted_forward, shifted_backward), shifted, with_bias, SIZES,
    ),
    Mended(
        "pocketpy/cTensor#24", "divides by the number of means", ("grad_x",),
        (mean_forward, mean_backward_by_rows), (mean_forward, mean_backward), mean, rows, SIZES,
    ),
]
RIGHT, WRONG = [case.right for case in CASES], [case.wrong for case in CASES]
