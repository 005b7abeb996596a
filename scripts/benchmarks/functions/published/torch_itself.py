"""torch: functions whose backward pass is written by hand, beside their definitions."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

from benchmarks.functions.subject import Published, normal


def hard_sigmoid(x: torch.Tensor) -> torch.Tensor:
    return (x + 3).clamp(0, 6) / 6


def across_channels(x: torch.Tensor) -> torch.Tensor:
    """x / (1 + alpha / size sum(x**2)) ** 0.75 over the 3 channels around each."""
    squares = functional.pad(x.square(), (0, 0, 0, 0, 1, 1))
    sums = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
    return x / (1 + 0.5 / 3 * sums) ** 0.75


def softplus(x: torch.Tensor) -> torch.Tensor:
    return torch.logaddexp(x, torch.zeros_like(x))


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    is_later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(is_later, -torch.inf).softmax(-1) @ v


def bag(index: torch.Tensor, weight: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
    return (weight[index] * shares[..., None]).sum(1)


def alignment(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """-log of the sum over all paths of ctc: blanks, 0, may lie between the letters, and letters may be repeated."""
    log_p = x.log_softmax(2)
    letters = functional.pad(target[:, :, None], (1, 0)).flatten(1)
    letters = functional.pad(letters, (0, 1))  # blank, letter, blank, ..., blank
    before = functional.pad(letters, (2, 0))[:, :-2]
    may_skip = (letters != 0) & (letters != before)
    scores = log_p.gather(2, letters.expand(len(x), *letters.shape))
    low = torch.full_like(scores[0], -1e30)
    paths = torch.cat([scores[0, :, :2], low[:, 2:]], 1)
    for score in scores[1:]:
        one = torch.cat([low[:, :1], paths[:, :-1]], 1)
        two = torch.where(may_skip, torch.cat([low[:, :2], paths[:, :-2]], 1), -1e30)
        paths = torch.stack([paths, one, two]).logsumexp(0) + score
    return -paths[:, -2:].logsumexp(1)


def ctc(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    times, letters = (torch.full((len(target),), size) for size in (len(x), target.shape[1]))
    return functional.ctc_loss(x.log_softmax(2), target, times, letters, reduction="none")


def log_cumulative(x: torch.Tensor) -> torch.Tensor:
    is_later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    return x[:, None].masked_fill(is_later, -torch.inf).logsumexp(2)


def cosine(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x * y).sum(1) / (x.square().sum(1).sqrt() * y.square().sum(1).sqrt())


def pictures(generator: torch.Generator, N: int, C: int, H: int) -> list[torch.Tensor]:
    return [normal(generator, N, C, H, H)]


def rows(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [3 * normal(generator, N, D)]


def two_rows(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), normal(generator, N, D)]


def heads(generator: torch.Generator, N: int, T: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, 2, T, D) for _ in range(3)]


def words(generator: torch.Generator, N: int, T: int, V: int, D: int) -> list[torch.Tensor]:
    return [torch.randint(0, V, (N, T), generator=generator), normal(generator, V, D), normal(generator, N, T)]


def letters(generator: torch.Generator, T: int, N: int, C: int) -> list[torch.Tensor]:
    return [normal(generator, T, N, C), torch.randint(1, C, (N, 3), generator=generator)]


SIZES = {"N": 5, "D": 20}
PICTURES = {"N": (1, 2), "C": (6, 17), "H": (1, 3)}
DEFINITION = "its definition in the documentation, by hand"
RIGHT = [
    Published("hardswish", functional.hardswish, lambda x: x * hard_sigmoid(x), rows, "the derivative by hand", SIZES),
    Published(
        "softplus",
        functional.softplus,
        softplus,
        rows,
        "above its threshold, 20, it is x: off by exp(-20) = 2e-9, as documented",
        SIZES,
        {"tolerance": 1e-8},
    ),
    Published(
        "LocalResponseNorm", nn.LocalResponseNorm(3, 0.5).forward, across_channels, pictures, DEFINITION, PICTURES
    ),
    Published(
        "logcumsumexp", lambda x: x.logcumsumexp(1), log_cumulative, rows, DEFINITION, {"N": 5, "D": (1, 2, 7, 20)}
    ),
    Published(
        "cosine_similarity", functional.cosine_similarity, cosine, two_rows, "by hand; a row of zeros has no angle",
        SIZES, {"kinds": ["negative", "tiny", "spread", "large", "shifted"]},
    ),
    Published(
        "scaled_dot_product_attention",
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        attention,
        heads,
        DEFINITION,
        {"N": 2, "T": (1, 5, 17), "D": (1, 4, 8)},
    ),
    Published(
        "embedding_bag",
        lambda index, weight, shares: functional.embedding_bag(index, weight, mode="sum", per_sample_weights=shares),
        bag,
        words,
        DEFINITION,
        {"N": 3, "T": 4, "V": 7, "D": 5},
    ),
    Published(
        "ctc_loss", ctc, alignment, letters, "the sum over all paths, by hand",
        {"T": (7, 8, 12), "N": (1, 3), "C": (5, 9)},
    ),
]
WRONG = [
    Published(
        "CrossMapLRN2d",
        nn.CrossMapLRN2d(3, 0.5).forward,
        across_channels,
        pictures,
        "the sum over a window adds the next channel and takes away the last one; channel 0 stays in it",
        PICTURES,
        {},
        "channel 0 is counted in every window",
        ("output",),
    ),
    Published(
        "hardsigmoid",
        functional.hardsigmoid,
        hard_sigmoid,
        rows,
        "its slope in float64 is 0.1666666716337204, the float32 nearest to 1/6",
        SIZES,
        {},
        "the slope in float64 has the digits of float32",
        ("grad_x", "grad_input"),
    ),
]
