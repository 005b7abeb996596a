"""liger-kernel: activations, rotations, attention, in Triton's interpreter. They take float32 and 16 bits."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional

from benchmarks.functions.published.mended_layers import sparsemax
from benchmarks.functions.published.triton_on_cpu import embedding, liger
from benchmarks.functions.subject import Published, normal


def gelu_gate(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return functional.gelu(a, approximate="tanh") * b


def silu_gate(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a / (1 + torch.exp(-a)) * b


def half_turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


def rotate(q: torch.Tensor, k: torch.Tensor) -> tuple[Any, Any]:
    return tuple(half_turned(each, *circle(each)) for each in (q, k))  # type: ignore[return-value] # two


def circle(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine, (1, times, features), whose halves are the same."""
    times, features = x.shape[-2:]
    angles = torch.arange(times)[:, None] / 10.0 ** torch.arange(features // 2).repeat(2)
    return angles.cos()[None].to(x.dtype), angles.sin()[None].to(x.dtype)


def liger_rotate(q: torch.Tensor, k: torch.Tensor) -> Any:
    return liger.liger_rope(q, k, *circle(q))


def multi_token(scores: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """A convolution over the causal softmax of the scores; what lies above the diagonal is 0."""
    is_later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    p = scores.masked_fill(is_later, -1e9).softmax(-1)
    return functional.conv2d(p, weight, bias, padding=1).masked_fill(is_later, 0)


def neighborhood(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Each query looks at the keys at a distance of 1 at most."""
    times = torch.arange(q.shape[-2])
    is_far = (times[:, None] - times).abs() > 1
    return (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(is_far, -torch.inf).softmax(-1) @ v


def lookup(weight: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return weight[index]


def mixed(x: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
    """(batch, times, streams, features) and (batch, times, streams): the sum over the streams."""
    return (x * share[..., None]).sum(-2)


def spread(x: torch.Tensor, f: torch.Tensor, post: torch.Tensor, mixing: torch.Tensor) -> torch.Tensor:
    return mixing @ x + post[..., None] * f[..., None, :]


def rows(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D)]


def two_rows(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), normal(generator, N, D)]


def heads(generator: torch.Generator, N: int, T: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, 2, T, D), normal(generator, N, 1, T, D)]


def three_heads(generator: torch.Generator, N: int, T: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, 2, T, D) for _ in range(3)]


def squares(generator: torch.Generator, N: int, T: int) -> list[torch.Tensor]:
    return [normal(generator, *shape) for shape in ((N, 2, T, T), (2, 2, 3, 3), (2,))]


def words(generator: torch.Generator, N: int, V: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, V, D), torch.randint(0, V, (N,), generator=generator)]


def streams(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, 2, 4, D), normal(generator, N, 2, 4)]


def all_streams(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, *shape) for shape in ((N, 2, 4, D), (N, 2, D), (N, 2, 4), (N, 2, 4, 4))]


#: Few sizes: a row of the interpreter takes a second.
SIZES = {"N": (1, 4, 7), "D": (2, 8, 33)}
HEADS = {"N": (1, 2), "T": (1, 5), "D": (2, 8)}
SINGLE = {"dtypes": ["float32"]}
#: The gradients take the place of the inputs, to save memory. So it takes two tensors, once.
OVERWRITES = SINGLE | {"skip": ["writes saved", "inputs same", "twice"]}
DEFINITION = "the formula in its documentation, by hand"
RIGHT = [
    Published("liger_geglu", liger.liger_geglu, gelu_gate, two_rows, DEFINITION, SIZES, OVERWRITES),
    Published("liger_relu_squared", liger.liger_relu_squared, lambda x: x.relu() ** 2, rows, DEFINITION, SIZES, SINGLE),
    Published("liger_softmax", liger.liger_softmax, lambda x: x.softmax(-1), rows, DEFINITION, SIZES, SINGLE),
    Published("liger_sparsemax", liger.liger_sparsemax, sparsemax, rows, DEFINITION, SIZES, SINGLE),
    Published(
        "liger_multi_token_attention",
        lambda scores, weight, bias: liger.liger_multi_token_attention(scores, weight, bias, padding=1),
        multi_token, squares, DEFINITION, {"N": (1, 2), "T": (3, 8)}, SINGLE,
    ),
    Published(
        "liger_fused_neighborhood_attention", lambda q, k, v: liger.liger_fused_neighborhood_attention(q, k, v, 3),
        neighborhood, three_heads, DEFINITION, {"N": (1, 2), "T": (3, 8), "D": (16,)}, SINGLE,
    ),
    Published(
        "LigerEmbedding", embedding, lookup, words, DEFINITION, {"N": (1, 7), "V": (3, 5), "D": (2, 33)}, SINGLE
    ),
    Published("liger_mhc_pre", liger.liger_mhc_pre, mixed, streams, DEFINITION, SIZES, SINGLE),
    Published("liger_mhc_post_res", liger.liger_mhc_post_res, spread, all_streams, DEFINITION, SIZES, SINGLE),
]
WRONG = [
    Published(
        "liger_swiglu",
        liger.liger_swiglu,
        silu_gate,
        two_rows,
        "backward writes both gradients over the inputs: of one tensor as both, the second reads the first",
        SIZES,
        SINGLE,
        "overwrites what forward saved",
        ("writes saved",),
    ),
    Published(
        "liger_rope",
        liger_rotate,
        rotate,
        heads,
        "one head alone is contiguous after the transposition, so the kernel writes into the caller's tensor",
        HEADS,
        SINGLE,
        "overwrites its input, and autograd isn't told",
        ("writes inputs",),
    ),
]
