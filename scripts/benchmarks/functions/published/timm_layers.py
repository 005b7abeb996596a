"""timm: normalizations and pooling, made of torch's operations, beside their definitions in sums and roots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.functions.published.timm_files import timm_file
from benchmarks.functions.subject import Published, normal

adaptive_avgmax_pool2d = timm_file("layers.adaptive_avgmax_pool").adaptive_avgmax_pool2d
norm = timm_file("layers.fast_norm").rms_norm
BlurPool2d = timm_file("layers.blur_pool").BlurPool2d
FilterResponseNormTlu2d = timm_file("layers.filter_response_norm").FilterResponseNormTlu2d
GlobalResponseNorm = timm_file("layers.grn").GlobalResponseNorm
LayerScale2d = timm_file("layers.layer_scale").LayerScale2d
StdConv2d = timm_file("layers.std_conv").StdConv2d


def with_parameters(make: Callable[[int], nn.Module], *names: str) -> Callable[..., Any]:
    """A module as a function of its input and its parameters, in the order of `names`."""

    def run(x: torch.Tensor, *parameters: torch.Tensor) -> Any:
        module = make(x.shape[1]).to(x.dtype)
        return torch.func.functional_call(module, dict(zip(names, parameters, strict=True)), (x,))

    return run


def root_mean_square(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x / (x.square().sum(-1, keepdim=True) / x.shape[-1] + 1e-6).sqrt() * weight


def filter_response(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, tau: torch.Tensor) -> torch.Tensor:
    """max(weight x / sqrt(mean square over the picture + eps) + bias, tau)."""
    weight, bias, tau = (each[:, None, None] for each in (weight, bias, tau))
    return torch.maximum(x / (x.square().mean((2, 3), keepdim=True) + 1e-5).sqrt() * weight + bias, tau)


def global_response(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """x + bias + weight x norm / (mean of the channels' norms + eps)."""
    norm = x.square().sum((2, 3), keepdim=True).sqrt()
    share = norm / (norm.mean(1, keepdim=True) + 1e-6)
    return x + bias[:, None, None] + weight[:, None, None] * x * share


def scaled(x: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
    return x * gamma[:, None, None]


def blurred(x: torch.Tensor) -> torch.Tensor:
    """Each second pixel of the picture under [1, 2, 1] / 4 in both directions; the border is reflected."""
    padded = functional.pad(x, (1, 1, 1, 1), mode="reflect")
    rows = (padded[:, :, :-2] + 2 * padded[:, :, 1:-1] + padded[:, :, 2:])[:, :, ::2]
    return (rows[..., :-2] + 2 * rows[..., 1:-1] + rows[..., 2:])[..., ::2] / 16


def average_and_maximum(x: torch.Tensor) -> torch.Tensor:
    return (x.mean((2, 3), keepdim=True) + x.amax((2, 3), keepdim=True)) / 2


def standardized(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    flat = weight.flatten(1)
    centred = flat - flat.mean(1, keepdim=True)
    flat = centred / (centred.square().mean(1, keepdim=True) + 1e-6).sqrt()
    return functional.conv2d(x, flat.view_as(weight), padding=1)


def pictures(*shapes: str) -> Callable[..., list[torch.Tensor]]:
    """Pictures (N, C, H, H), and parameters with a number for each channel."""

    def make(generator: torch.Generator, N: int, C: int, H: int) -> list[torch.Tensor]:
        return [normal(generator, N, C, H, H), *(normal(generator, C) for _ in shapes)]

    return make


def rows(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), normal(generator, D)]


def kernels(generator: torch.Generator, N: int, C: int, H: int) -> list[torch.Tensor]:
    return [normal(generator, N, C, H, H), normal(generator, 4, C, 3, 3)]


#: Few sizes: with all of them, three dimensions take over a minute.
SIZES = {"N": (1, 2), "C": (2, 3, 33), "H": (2, 6, 17)}
#: Its root is computed in float32.
SINGLE = {"dtypes": ["float32"]}
AUTOGRAD = "made of torch's operations; the definition of its paper, written down by hand"
FILTER = with_parameters(lambda num: FilterResponseNormTlu2d(num), "weight", "bias", "tau")
RESPONSE = with_parameters(lambda num: GlobalResponseNorm(num, channels_last=False), "weight", "bias")
RIGHT = [
    Published(
        "rms_norm", lambda x, weight: norm(x, [x.shape[-1]], weight, 1e-6), root_mean_square, rows, AUTOGRAD,
        {"N": 5, "D": 16},
    ),
    Published(
        "FilterResponseNorm", FILTER, filter_response, pictures("weight", "bias", "tau"), AUTOGRAD, SIZES, SINGLE
    ),
    Published(
        "GlobalResponseNorm", RESPONSE, global_response, pictures("weight", "bias"),
        "the definition, by hand; the norm of a picture of zeros has a kink, where torch's norm has the slope 0", SIZES,
    ),
    Published(
        "LayerScale2d", with_parameters(lambda num: LayerScale2d(num), "gamma"), scaled, pictures("gamma"), AUTOGRAD,
        SIZES,
    ),
    Published("BlurPool2d", lambda x: BlurPool2d(x.shape[1]).to(x.dtype)(x), blurred, pictures(), AUTOGRAD, SIZES),
    Published("adaptive_avgmax_pool2d", adaptive_avgmax_pool2d, average_and_maximum, pictures(), AUTOGRAD, SIZES),
    Published(
        "StdConv2d", with_parameters(lambda num: StdConv2d(num, 4, 3), "weight"), standardized, kernels, AUTOGRAD,
        SIZES,
    ),
]
