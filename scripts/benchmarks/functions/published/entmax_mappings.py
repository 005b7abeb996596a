"""entmax: sparse mappings from scores to probabilities.

The references find the threshold by bisection, and then make two Newton steps that autograd differentiates: after two
steps the first and the second derivative of the threshold are those of the implicit function.
"""

from __future__ import annotations

from typing import Any

import entmax
import torch

from benchmarks.functions.subject import Published, normal

#: Halvings of an interval of length 1: beyond all digits of float64.
NUM_HALVINGS = 60


def alpha_entmax(x: torch.Tensor, alpha: torch.Tensor | float, dim: int = -1) -> torch.Tensor:
    """max((alpha - 1) x - threshold, 0) ** (1 / (alpha - 1)), whose sum is 1."""
    scores = x * (alpha - 1)
    exponent = 1 / (alpha - 1)

    def probabilities(threshold: torch.Tensor) -> torch.Tensor:
        above = scores > threshold
        return torch.where(above, torch.where(above, scores - threshold, 1) ** exponent, 0)

    with torch.no_grad():
        high = scores.amax(dim, keepdim=True)
        low = high - 1
        for _ in range(NUM_HALVINGS):
            middle = (low + high) / 2
            is_low = probabilities(middle).sum(dim, keepdim=True) >= 1
            low, high = torch.where(is_low, middle, low), torch.where(is_low, high, middle)
    threshold = low
    for _ in range(2):
        found = probabilities(threshold)
        slope = torch.where(found > 0, torch.where(found > 0, found, 1) ** (2 - alpha), 0) * exponent
        threshold = threshold + (found.sum(dim, keepdim=True) - 1) / slope.sum(dim, keepdim=True)
    return probabilities(threshold)


def sparsemax(x: torch.Tensor) -> torch.Tensor:
    return alpha_entmax(x, 2.0)


def entmax15(x: torch.Tensor) -> torch.Tensor:
    return alpha_entmax(x, 1.5)


def along_rows(x: torch.Tensor) -> torch.Tensor:
    return alpha_entmax(x, 2.0, dim=-2)


def budget(x: torch.Tensor) -> torch.Tensor:
    """clamp(x - threshold, 0, 1), whose sum is 2."""
    with torch.no_grad():
        low, high = x.amin(-1, keepdim=True) - 1, x.amax(-1, keepdim=True)
        for _ in range(NUM_HALVINGS):
            middle = (low + high) / 2
            is_low = (x - middle).clamp(0, 1).sum(-1, keepdim=True) >= 2
            low, high = torch.where(is_low, middle, low), torch.where(is_low, high, middle)
        inside = (x > low) & (x < low + 1)
        full = (x >= low + 1).sum(-1, keepdim=True)
    threshold = (torch.where(inside, x, 0).sum(-1, keepdim=True) + full - 2) / inside.sum(-1, keepdim=True)
    return (x - threshold).clamp(0, 1)


def scores(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D)]


def with_alpha(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    """An alpha for each row, from 1.2 to 1.8."""
    return [normal(generator, N, D), 1.2 + 0.6 * torch.rand(N, 1, generator=generator, dtype=torch.float64)]


def bisected(function: Any) -> Any:
    return lambda x: function(x, n_iter=60)


SIZES = {"N": 5, "D": 40}
PROJECTION = "by hand: the support's gradient minus its mean over the support"
RIGHT = [
    Published("sparsemax", entmax.sparsemax, sparsemax, scores, PROJECTION, SIZES),
    Published(
        "sparsemax of the 8 largest", lambda x: entmax.sparsemax(x, k=8), sparsemax, scores, PROJECTION, SIZES
    ),
    Published("sparsemax_bisect", bisected(entmax.sparsemax_bisect), sparsemax, scores, PROJECTION, SIZES),
    Published(
        "budget_bisect",
        bisected(entmax.budget_bisect),
        budget,
        scores,
        PROJECTION,
        {"N": 5, "D": (4, 7, 40)},  # fewer than 2 numbers can't have the sum 2
    ),
]
#: sqrt(p) has the derivative infinity at p = 0: 0 * infinity in the second backward.
NAN_TWICE = "the second derivative differentiates a root of the probabilities, of which some are 0: 0 * infinity"
WRONG = [
    Published(
        "entmax15",
        entmax.entmax15,
        entmax15,
        scores,
        NAN_TWICE,
        SIZES,
        {},
        "the second derivative is NaN where a probability is 0",
        ("twice",),
    ),
    Published(
        "entmax_bisect",
        lambda x, alpha: entmax.entmax_bisect(x, alpha, n_iter=60),
        alpha_entmax,
        with_alpha,
        NAN_TWICE,
        SIZES,
        {"domain": {"alpha": (1.2, 1.8)}},
        "the second derivative is NaN where a probability is 0",
        ("twice",),
    ),
    Published(
        "sparsemax along rows",
        lambda x: entmax.sparsemax(x, dim=-2, k=2),
        along_rows,
        scores,
        "where the support has more than k scores, the last axis but one becomes axis 4 of 2: `X.dim() - dim`",
        {"N": 40, "D": 5},
        {"skip": ["sizes N=0"]},
        "a negative axis other than -1, with k, is an error",
        ("out of range", "permute"),
    ),
]
