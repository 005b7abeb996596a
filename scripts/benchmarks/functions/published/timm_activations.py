"""timm: activations as compositions, in place, and with a backward of their own, beside torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from benchmarks.functions.published.timm_files import timm_file
from benchmarks.functions.subject import Published, normal

activations, activations_me = timm_file("layers.activations"), timm_file("layers.activations_me")


def hard_sigmoid(x: torch.Tensor) -> torch.Tensor:
    """Not torch's: its slope in float64 is the 1/6 of float32."""
    return (x + 3).clamp(0, 6) / 6


def hard_mish(x: torch.Tensor) -> torch.Tensor:
    """x clamp(x + 2, 0, 2) / 2."""
    return torch.where(x > 0, x, torch.where(x < -2, 0, x * (x + 2) / 2))


def quick_gelu(x: torch.Tensor) -> torch.Tensor:
    """x sigmoid(1.702 x)."""
    return x * (1 + torch.tanh(0.851 * x)) / 2


def in_place(function: Callable[..., torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    """On a tensor that isn't a leaf, as within a net."""
    return lambda x: function(x * 1, inplace=True)


def inputs(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [3 * normal(generator, N, D)]


def case(name: str, function: Any, reference: Any, why: str) -> Published:
    return Published(name, function, reference, inputs, why, {"N": 5, "D": 40})


FORMULA = "the backward is the derivative of the forward, by hand"
KINK = "the derivative by hand; at -3 and 3 both slopes are right"
AUTOGRAD = "made of torch's operations, and the formula of its paper"
RIGHT = [
    case("swish_me", activations_me.swish_me, functional.silu, FORMULA),
    case("mish_me", activations_me.mish_me, functional.mish, FORMULA),
    case("hard_sigmoid_me", activations_me.hard_sigmoid_me, hard_sigmoid, KINK),
    case("hard_swish_me", activations_me.hard_swish_me, functional.hardswish, KINK),
    case("hard_mish_me", activations_me.hard_mish_me, hard_mish, "by hand; at -2 and 0 both slopes are right"),
    case("swish", activations.swish, functional.silu, AUTOGRAD),
    case("mish", activations.mish, functional.mish, AUTOGRAD),
    case("hard_sigmoid", activations.hard_sigmoid, hard_sigmoid, KINK),
    case("hard_swish", activations.hard_swish, functional.hardswish, KINK),
    case("hard_mish", activations.hard_mish, hard_mish, "by hand; at -2 and 0 both slopes are right"),
    case("quick_gelu", activations.quick_gelu, quick_gelu, AUTOGRAD),
    case("swish in place", in_place(activations.swish), functional.silu, AUTOGRAD),
    case("hard_swish in place", in_place(activations.hard_swish), functional.hardswish, KINK),
    case("hard_sigmoid in place", in_place(activations.hard_sigmoid), hard_sigmoid, KINK),
]
