"""liger-kernel: normalizations, in Triton's interpreter. They take float32 and 16 bits."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from benchmarks.functions.published.triton_on_cpu import liger
from benchmarks.functions.subject import Published, normal

EPS = 1e-6


def root_mean_square(x: torch.Tensor) -> torch.Tensor:
    return x * (x.square().mean(-1, keepdim=True) + EPS).rsqrt()


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return root_mean_square(x) * weight


def added_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor) -> Any:
    total = x + residual
    return rms_norm(total, weight), total


def poly_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """w0 norm(x**3) + w1 norm(x**2) + w2 norm(x) + bias."""
    cube, square, line = (root_mean_square(x**power) for power in (3, 2, 1))
    return weight[0] * cube + weight[1] * square + weight[2] * line + bias


def modulated(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
    return rms_norm(x, weight) * (1 + scale[:, None]) + shift[:, None]


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x, x.shape[-1:], weight, bias, EPS)


def group_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return functional.group_norm(x, 2, weight, bias, EPS)


def residuals(values: torch.Tensor, query: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """A softmax over the blocks, of the products of the query with the normalized values."""
    scores = (rms_norm(values, weight) * query).sum(-1, keepdim=True)
    return (scores.softmax(0) * values).sum(0)


def rows(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), normal(generator, D)]


def two_rows(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), *rows(generator, N, D)]


def with_bias(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [*rows(generator, N, D), normal(generator, D)]


def with_three(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), normal(generator, 3), normal(generator, 1)[0]]


def with_scale(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, *shape) for shape in ((N, 3, D), (D,), (N, D), (N, D))]


def channels(generator: torch.Generator, N: int, T: int) -> list[torch.Tensor]:
    return [normal(generator, N, 4, T), normal(generator, 4), normal(generator, 4)]


def blocks(generator: torch.Generator, B: int, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, B, N, 2, D), normal(generator, D), normal(generator, D)]


#: Few sizes: a row of the interpreter takes a second. More rows than programs, and a dimension past a block.
SIZES = {"N": (1, 4, 7), "D": (2, 8, 33)}
SINGLE = {"dtypes": ["float32"]}
DEFINITION = "the formula in its documentation, by hand"
RIGHT = [
    Published(
        "liger_rms_norm", lambda x, weight: liger.liger_rms_norm(x, weight, EPS, in_place=False), rms_norm, rows,
        DEFINITION, SIZES, SINGLE,
    ),
    Published(
        "liger_fused_add_rms_norm",
        lambda x, residual, weight: liger.liger_fused_add_rms_norm(x, residual, weight, EPS, in_place=False),
        added_norm, two_rows, DEFINITION, SIZES, SINGLE,
    ),
    Published(
        "liger_layer_norm", lambda x, weight, bias: liger.liger_layer_norm(x, weight, bias, EPS), layer_norm, with_bias,
        DEFINITION, SIZES, SINGLE,
    ),
    Published(
        "liger_poly_norm", lambda x, weight, bias: liger.liger_poly_norm(x, weight, bias, EPS, in_place=False),
        poly_norm, with_three, DEFINITION, SIZES, SINGLE,
    ),
    Published(
        "liger_modulated_rms_norm",
        lambda x, weight, scale, shift: liger.liger_modulated_rms_norm(x, weight, scale, shift, EPS, in_place=False),
        modulated, with_scale, DEFINITION, SIZES, SINGLE,
    ),
    Published(
        "liger_attn_res", liger.liger_attn_res, residuals, blocks, DEFINITION,
        {"B": (1, 3), "N": (1, 2), "D": (2, 8)}, SINGLE,
    ),
]
WRONG = [
    Published(
        "liger_group_norm",
        lambda x, weight, bias: liger.liger_group_norm(x, weight, bias, 4, 2, EPS),
        group_norm,
        channels,
        "the mean of the squares minus the square of the mean has no digits left at 16 + 1 / 128",
        {"N": (1, 3), "T": (2, 8, 33)},
        SINGLE,
        "the variance cancels where the mean is large beside it",
        ("kinds shifted",),
    ),
]
