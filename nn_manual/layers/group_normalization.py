"""Normalization of images over groups of channels: each example's groups with mean 0 and variance 1."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.normalization import OfRows
from nn_manual.layers.of_channels import OfChannels


class OverGroups(OfChannels, OfRows):
    """Normalization over groups of channels, input (batch, channels, ...) to output of the same shape."""

    @property
    @abstractmethod
    def num_rows(self) -> int:
        """How many groups there are."""

    def forward(self, input: Array) -> tuple[Array, tuple[Array, ...]]:
        """The output. Saved are `normalized` and `std`, and for running values the mean and the variance."""
        self.output_shape(input.shape)
        normalized, *statistics = self._normalized_rows(self._rows(input))
        normalized = normalized.reshape(input.shape)
        return self._affine(normalized), (normalized, *statistics)

    def backward(self, saved: tuple[Array, ...], grad_output: Array) -> Array:
        """Write grad_weight and grad_bias, return grad_input.

        The sums over a channel's places are taken once: they give the parameters' gradients, and times weight / std the
        two means over a group.
        """
        normalized, std, *_ = saved
        self.check_gradient(grad_output, normalized.shape)
        batch, places = len(grad_output), math.prod(grad_output.shape[2:])
        shape = batch, self.num_rows, self.channels // self.num_rows, places
        grad, normalized = grad_output.reshape(shape), normalized.reshape(shape)
        sums, cross = grad.sum(axis=-1), (grad * normalized).sum(axis=-1)
        scale = 1 / std.reshape(batch, self.num_rows, 1)
        if self.affine:
            self.grad.weight[...] = cross.sum(axis=0).ravel()
            if self.bias:
                self.grad.bias[...] = sums.sum(axis=0).ravel()
            scale = scale * self.param.weight.reshape(shape[1:3])
        size = max(1, shape[2] * places)  # of a group; without values, nothing is computed with the means
        grad_mean, projection = ((each * scale).sum(axis=-1, keepdims=True) / size for each in (sums, cross))
        grad_input = grad * scale[..., np.newaxis]
        grad_input -= grad_mean[..., np.newaxis]
        grad_input -= normalized * projection[..., np.newaxis]
        return grad_input.reshape(grad_output.shape)

    def longest_sum(self, input_shape: Shape) -> int:
        """Over the numbers of a group, for the mean; or over the batch and all places, for grad_weight."""
        places = math.prod(input_shape[2:])
        return max(self.channels // self.num_rows * places, input_shape[0] * places if self.affine else 0)

    def _rows(self, images: Array) -> Array:
        """(batch * groups, numbers of a group)."""
        size = self.channels // self.num_rows * math.prod(images.shape[2:])
        return images.reshape(len(images) * self.num_rows, size)


@dataclass(eq=False)
class GroupNorm(OverGroups):
    """Normalization over groups of channels, input (batch, num_channels, ...) to output of the same shape.

    Parameters, where `affine`: weight (num_channels,) and, unless `bias` is false, bias (num_channels,). `groups`
    shapes an array as (batch, num_groups, numbers of a group), `images` shapes it back, and `across` shapes a vector of
    channels so that it broadcasts against the input; `axes` are all axes but that of the channels:

        std             = sqrt(groups(input).var(-1, keepdims=True) + eps)
        normalized      = images((groups(input) - groups(input).mean(-1, keepdims=True)) / std)
        output          = normalized * across(weight) + across(bias)
        grad            = groups(grad_output * across(weight))
        grad_mean       = grad.mean(-1, keepdims=True)
        projection      = (grad * groups(normalized)).mean(-1, keepdims=True)
        grad_input      = images((grad - grad_mean - groups(normalized) * projection) / std)
        grad_weight     = (grad_output * normalized).sum(axes)
        grad_bias       = grad_output.sum(axes)

    Derivation: a group is what an example is in LayerNorm, and so are the gradients, but for weight and bias, which
    have one number for a channel: it is used for each example and place. Source: Wu and He, 2018. Raises ValueError for
    settings out of range, an input of another shape, a single example with groups of one number, as torch does, and a
    gradient that is not shaped as the output.
    """

    num_groups: int
    num_channels: int
    eps: float = 1e-5
    affine: bool = True
    bias: bool = field(default=True, kw_only=True)  # before it, torch has device and dtype

    def __post_init__(self) -> None:
        for name in ("num_groups", "num_channels"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.num_channels % self.num_groups:
            raise ValueError(f"num_groups must divide num_channels={self.num_channels}, {self.num_groups} doesn't")
        if not self.eps >= 0:
            raise ValueError(f"eps must be at least 0, not {self.eps}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Several groups, one, and one for each channel, of vectors, sequences and images."""
        return [
            (cls(2, 4), (3, 4, 2, 3)),
            (cls(1, 3, eps=0.1), (3, 3)),
            (cls(3, 3, affine=False), (2, 3, 4)),
            (cls(2, 6), (1, 6, 1, 2, 2)),
            (cls(2, 4, bias=False), (2, 4, 3)),
        ]

    @property
    def num_rows(self) -> int:
        """num_groups."""
        return self.num_groups

    @property
    def channels(self) -> int:
        """num_channels."""
        return self.num_channels

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        if len(input_shape) < 2 or input_shape[1] != self.num_channels:
            raise ValueError(
                f"GroupNorm takes (batch, num_channels={self.num_channels}, ...), the input has shape {input_shape}"
            )
        if math.prod(input_shape) == self.num_groups:
            raise ValueError(f"GroupNorm needs groups of more than 1 number, the input has shape {input_shape}")
        return input_shape
