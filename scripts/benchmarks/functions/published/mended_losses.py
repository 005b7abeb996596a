"""Mended: cross entropies, norms and distances."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from benchmarks.functions.published.mending import Mended
from benchmarks.functions.subject import normal


def cross_entropy(x: Any, target: Any) -> Any:
    return functional.cross_entropy(x, target, reduction="none")


def cross_entropy_forward(x: Any, target: Any) -> Any:
    """The gradient is computed with the loss."""
    return cross_entropy(x, target), x.softmax(1) - functional.one_hot(target, x.shape[1])


def cross_entropy_backward(grad: Any, saved: Any) -> Any:
    return saved * grad[:, None], None


def cross_entropy_backward_by_first(grad: Any, saved: Any) -> Any:
    """The gradient of the output is read as if it were one number."""
    return saved * grad[:1], None


def linear_cross_entropy(x: Any, weight: Any, target: Any) -> Any:
    return cross_entropy(x @ weight.T, target)


def linear_forward(x: Any, weight: Any, target: Any) -> Any:
    loss, grad_scores = cross_entropy_forward(x @ weight.T, target)
    return loss, (x, weight, grad_scores)


def linear_backward(grad: Any, saved: Any) -> Any:
    x, weight, grad_scores = saved
    grad_scores = grad_scores * grad[:, None]
    return grad_scores @ weight, grad_scores.T @ x, None


def linear_backward_late(grad: Any, saved: Any) -> Any:
    """Of the weight, the sum over the rows comes before the gradients of the rows."""
    x, weight, grad_scores = saved
    return grad_scores * grad[:, None] @ weight, (grad_scores.T @ x) * grad[:1], None


def mean_cross_entropy(x: Any, target: Any) -> Any:
    """In more than 16 bits: torch's own log_softmax loses all digits of a loss of 0.001."""
    return functional.cross_entropy(x.to(torch.promote_types(x.dtype, torch.float32)), target).to(x.dtype)


def mean_forward(x: Any, target: Any) -> Any:
    one_hot = functional.one_hot(target, x.shape[1])
    return mean_cross_entropy(x, target), ((x.double().softmax(1) - one_hot) / len(x)).to(x.dtype)


def mean_forward_rounded(x: Any, target: Any) -> Any:
    """The share of the true class is rounded to 16 bits before 1 / N is taken away from it."""
    grad_x = (x.double().softmax(1) / len(x)).to(x.dtype)
    return mean_cross_entropy(x, target), grad_x - (functional.one_hot(target, x.shape[1]) / len(x)).to(x.dtype)


def mean_backward(grad: Any, saved: Any) -> Any:
    return saved * grad, None


def quantized_forward(x: Any, target: Any) -> Any:
    """The logarithm of the sum is rounded to 16 bits before the score is taken away from it."""
    _, grad_x = cross_entropy_forward(x.double(), target)
    return x.double().logsumexp(1).to(x.dtype) - x.gather(1, target[:, None])[:, 0], grad_x


def exact_forward(x: Any, target: Any) -> Any:
    loss, grad_x = cross_entropy_forward(x.double(), target)
    return loss.to(x.dtype), grad_x


def in_16_bits(grad: Any, saved: Any) -> Any:
    return (saved * grad[:, None]).to(grad.dtype), None


def norm(x: Any) -> Any:
    return torch.linalg.vector_norm(x, dim=1)


def norm_forward(x: Any) -> Any:
    y = x.square().sum(1).sqrt()
    return y, (x, y)


def norm_backward(grad: Any, saved: Any) -> Any:
    x, y = saved
    return grad[:, None] * x / torch.where(y == 0, 1, y)[:, None]


def norm_backward_at_zero(grad: Any, saved: Any) -> Any:
    x, y = saved
    return grad[:, None] * x / y[:, None]


def deviation(x: Any) -> Any:
    return x.std(1, correction=0)


def deviation_forward(x: Any) -> Any:
    centred = x - x.mean(1, keepdim=True)
    y = centred.square().mean(1).sqrt()
    return y, (centred, y)


def deviation_backward(grad: Any, saved: Any) -> Any:
    centred, y = saved
    return norm_backward(grad, (centred, y)) / centred.shape[1]


def deviation_backward_at_zero(grad: Any, saved: Any) -> Any:
    centred, y = saved
    return norm_backward_at_zero(grad, (centred, y)) / centred.shape[1]


def distances(x: Any, y: Any) -> Any:
    return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")


def distances_forward(x: Any, y: Any) -> Any:
    difference = x[:, None] - y
    distance = difference.square().sum(2).sqrt()
    return distance, (difference, distance)


def distances_backward(grad: Any, saved: Any) -> Any:
    difference, distance = saved
    scaled = (grad / torch.where(distance == 0, 1, distance))[:, :, None] * difference
    return scaled.sum(1), -scaled.sum(0)


def distances_backward_at_zero(grad: Any, saved: Any) -> Any:
    difference, distance = saved
    scaled = (grad / distance)[:, :, None] * difference
    return scaled.sum(1), -scaled.sum(0)


def classes(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), torch.randint(0, D, (N,), generator=generator)]


def confident(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    """The true class has a share of about 0.999."""
    x, target = classes(generator, N, D)
    return [(x + 10 * functional.one_hot(target, D)).bfloat16(), target]


def large(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    """The scores are about 100, which 16 bits round to halves."""
    x, target = classes(generator, N, D)
    return [(x + 100).bfloat16(), target]


def projected(generator: torch.Generator, N: int, D: int, V: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), normal(generator, V, D), torch.randint(0, V, (N,), generator=generator)]


def rows(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D)]


def clouds(generator: torch.Generator, N: int, M: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), normal(generator, M, D)]


SIZES = {"N": 5, "D": 20}
LOW = {"dtypes": ["bfloat16"]}
CASES = [
    Mended(
        "linkedin/Liger-Kernel#680", "each row gets the first row's gradient", ("grad_x",),
        (cross_entropy_forward, cross_entropy_backward_by_first), (cross_entropy_forward, cross_entropy_backward),
        cross_entropy, classes, SIZES,
    ),
    Mended(
        "linkedin/Liger-Kernel#1298", "the weight gets the first row's gradient for all", ("grad_weight",),
        (linear_forward, linear_backward_late), (linear_forward, linear_backward),
        linear_cross_entropy, projected, SIZES | {"V": 7},
    ),
    Mended(
        "linkedin/Liger-Kernel#1329", "p is rounded to 16 bits before 1 is taken away", ("grad_x",),
        (mean_forward_rounded, mean_backward), (mean_forward, mean_backward), mean_cross_entropy, confident, SIZES, LOW,
    ),
    Mended(
        "google-deepmind/optax#1020", "the logarithm is rounded to 16 bits before the score is taken away", ("output",),
        (quantized_forward, in_16_bits), (exact_forward, in_16_bits), cross_entropy, large, SIZES, LOW,
    ),
    Mended(
        "pytorch/pytorch#2421", "the gradient of the norm of zeros is NaN", ("kinds zero",),
        (norm_forward, norm_backward_at_zero), (norm_forward, norm_backward), norm, rows, SIZES,
    ),
    Mended(
        "pytorch/pytorch#4320", "the gradient of the deviation of equal numbers is NaN", ("kinds zero", "sizes D=1"),
        (deviation_forward, deviation_backward_at_zero), (deviation_forward, deviation_backward),
        deviation, rows, SIZES,
    ),
    Mended(
        "pytorch/pytorch#37154", "the gradient of the distance of equal points is NaN", ("kinds zero", "inputs same"),
        (distances_forward, distances_backward_at_zero), (distances_forward, distances_backward),
        distances, clouds, {"N": 5, "M": 4, "D": 3},
    ),
]
RIGHT, WRONG = [case.right for case in CASES], [case.wrong for case in CASES]
