"""Normalization of images: each channel of each example with mean 0 and variance 1."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from nn_manual.arrays import Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.group_normalization import OverGroups
from nn_manual.layers.windows import check_images


@dataclass(eq=False)
class InstanceNorm(OverGroups):
    """GroupNorm of images (batch, num_features, *size) in which each channel is a group of its own.

    Without `affine`, there are no parameters. torch's running statistics aren't here: evaluation normalizes as training
    does, as torch's does by default. Source: Ulyanov et al., 2016. Raises ValueError for settings out of range, an
    input of another shape, or with a single place, and a gradient that is not shaped as the output.
    """

    num_dims: ClassVar[int]

    num_features: int
    eps: float = 1e-5
    affine: bool = field(default=False, kw_only=True)  # before it, torch has momentum
    bias: bool = field(default=True, kw_only=True)  # as GroupNorm's

    def __post_init__(self) -> None:
        if self.num_features < 1:
            raise ValueError(f"num_features must be at least 1, not {self.num_features}")
        if not self.eps > 0:
            raise ValueError(f"eps must be above 0, not {self.eps}")

    @property
    def num_rows(self) -> int:
        """num_features."""
        return self.num_features

    @property
    def channels(self) -> int:
        """num_features."""
        return self.num_features

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        name = type(self).__name__
        check_images(name, input_shape, self.num_dims, f"num_features={self.num_features}")
        if input_shape[1] != self.num_features:
            raise ValueError(f"{name} has num_features={self.num_features}, the input has shape {input_shape}")
        if math.prod(input_shape[2:]) == 1:
            raise ValueError(f"{name} needs more than 1 place, the input has shape {input_shape}")
        return input_shape


@dataclass(eq=False)
class InstanceNorm1d(InstanceNorm):
    """Each channel of each sequence with mean 0 and variance 1, input (batch, num_features, length)."""

    num_dims = 1

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """With and without parameters, and with weight alone."""
        return [
            (cls(3, affine=True), (3, 3, 3)),
            (cls(2, eps=0.1), (2, 2, 4)),
            (cls(2, affine=True, bias=False), (2, 2, 3)),
        ]


@dataclass(eq=False)
class InstanceNorm2d(InstanceNorm):
    """Each channel of each image with mean 0 and variance 1, input (batch, num_features, height, width)."""

    num_dims = 2

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """With and without parameters."""
        return [(cls(2, affine=True), (3, 2, 2, 3)), (cls(3, eps=0.1), (1, 3, 3, 3))]


@dataclass(eq=False)
class InstanceNorm3d(InstanceNorm):
    """Each channel of each volume with mean 0 and variance 1, input (batch, num_features, depth, height, width)."""

    num_dims = 3

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """With and without parameters."""
        return [(cls(2, affine=True), (2, 2, 1, 2, 3)), (cls(1, eps=0.1), (2, 1, 2, 2, 2))]
