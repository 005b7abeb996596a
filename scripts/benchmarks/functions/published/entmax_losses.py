"""entmax: Fenchel-Young losses, omega(p) + (p - target) x, whose gradient is p - target."""

from __future__ import annotations

from typing import Any

import entmax
import torch
from torch.nn import functional

from benchmarks.functions.published.entmax_mappings import alpha_entmax
from benchmarks.functions.subject import Published, normal


def loss(x: torch.Tensor, target: torch.Tensor, alpha: torch.Tensor | float) -> torch.Tensor:
    """Of each row, (1 - sum(p ** alpha)) / (alpha (alpha - 1)) + (p - target) x."""
    column = alpha[:, None] if isinstance(alpha, torch.Tensor) and alpha.ndim else alpha
    p = alpha_entmax(x, column)
    powers = torch.where(p > 0, torch.where(p > 0, p, 1) ** column, 0).sum(1)
    one_hot = functional.one_hot(target, x.shape[1]).to(x.dtype)
    return (1 - powers) / (alpha * (alpha - 1)) + ((p - one_hot) * x).sum(1)


def classes(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), torch.randint(0, D, (N,), generator=generator)]


def with_alpha(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [*classes(generator, N, D), torch.tensor(1.4, dtype=torch.float64)]


def with_alphas(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [*classes(generator, N, D), 1.2 + 0.6 * torch.rand(N, generator=generator, dtype=torch.float64)]


def once(name: str, function: Any, alpha: float) -> Published:
    return Published(name, function, lambda x, target: loss(x, target, alpha), classes, ENVELOPE, SIZES, FIRST)


SIZES = {"N": 5, "D": 20}
ENVELOPE = "the gradient is p - target: what p changes in omega and in p x cancels, by hand"
FIRST = {"skip": ["twice"]}
ALPHAS = {"domain": {"alpha": (1.2, 1.8)}, "skip": ["twice"]}
RIGHT = [
    once("sparsemax_bisect_loss", lambda x, target: entmax.sparsemax_bisect_loss(x, target, 60), 2.0),
    once("entmax15_loss", entmax.entmax15_loss, 1.5),
    once("entmax_bisect_loss", lambda x, target: entmax.entmax_bisect_loss(x, target, 1.3, 60), 1.3),
]
WRONG = [
    Published(
        "sparsemax_loss",
        entmax.sparsemax_loss,
        lambda x, target: loss(x, target, 2.0),
        classes,
        "backward multiplies by p - target, which forward has computed without a graph",
        SIZES,
        {},
        "the second derivative with respect to x is left out",
        ("twice",),
    ),
    Published(
        "entmax_bisect_loss of alpha",
        lambda x, target, alpha: entmax.entmax_bisect_loss(x, target, alpha, 60),
        loss,
        with_alpha,
        "omega depends on alpha, and backward returns None for it",
        SIZES,
        ALPHAS,
        "the gradient of alpha is left out",
        ("grad_alpha",),
    ),
    Published(
        "entmax_bisect_loss of an alpha for each row",
        lambda x, target, alpha: entmax.entmax_bisect_loss(x, target, alpha[:, None], 60),
        loss,
        with_alphas,
        "alpha (alpha - 1) has the shape (N, 1), and divides one number for each row, (N,)",
        SIZES,
        ALPHAS,
        "returns N x N losses",
        ("output: shape",),
    ),
]
