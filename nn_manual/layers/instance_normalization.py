"""Normalization of images: each channel of each example with mean 0 and variance 1."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.group_normalization import OverGroups
from nn_manual.layers.running_statistics import RunningStatistics
from nn_manual.layers.windows import check_images


@dataclass(eq=False)
class InstanceNorm(RunningStatistics, OverGroups):
    """GroupNorm of images (batch, num_features, *size) in which each channel is a group of its own.

    Parameters, where `affine`: weight (num_features,) and, unless `bias` is false, bias (num_features,). Buffers, where
    `track_running_stats`: running_mean and running_var (num_features,), num_batches_tracked.

    Evaluation normalizes as training does, or with `track_running_stats` by running values: after a training step, they
    are (1 - momentum) * running + momentum * of_step, where of_step is the mean, over the examples, of a channel's mean
    or of its unbiased variance, which is divided by one less than the number of places. As in torch, they stay where
    `momentum` is None, num_batches_tracked stays 0, and an input without examples or places moves nothing. Source:
    Ulyanov et al., 2016. Raises ValueError for settings out of range, an input of another shape, or in training with a
    single place, and a gradient that is not shaped as the output.
    """

    num_dims: ClassVar[int]

    num_features: int
    eps: float = 1e-5
    momentum: float | None = 0.1
    affine: bool = False
    track_running_stats: bool = False
    bias: bool = field(default=True, kw_only=True)  # as GroupNorm's

    @property
    def num_rows(self) -> int:
        """num_features."""
        return self.num_features

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape. Raises ValueError for an input that a training step doesn't take."""
        self.check_shape(input_shape)
        if math.prod(input_shape[2:]) == 1:
            raise ValueError(f"{type(self).__name__} needs more than 1 place, the input has shape {input_shape}")
        return input_shape

    def check_shape(self, input_shape: Shape) -> None:
        """Raise ValueError for a shape of input that the class doesn't take."""
        name = type(self).__name__
        check_images(name, input_shape, self.num_dims, f"num_features={self.num_features}")
        if input_shape[1] != self.num_features:
            raise ValueError(f"{name} has num_features={self.num_features}, the input has shape {input_shape}")

    def update_buffers(self, saved: tuple[Array, ...]) -> None:
        """Move the running values towards the means over the examples."""
        normalized, _, mean, variance = saved
        if self.track_running_stats and self.momentum is not None and normalized.size:
            num_places = normalized.size // len(mean)
            unbiased = variance * (num_places / (num_places - 1))
            means = (rows.reshape(-1, self.num_features).mean(axis=0) for rows in (mean, unbiased))
            self._move_running(self.momentum, *means)


@dataclass(eq=False)
class InstanceNorm1d(InstanceNorm):
    """Each channel of each sequence with mean 0 and variance 1, input (batch, num_features, length)."""

    num_dims = 1

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """With and without parameters, with weight alone, and with running values."""
        return [
            (cls(3, affine=True), (3, 3, 3)),
            (cls(2, eps=0.1), (2, 2, 4)),
            (cls(2, affine=True, bias=False), (2, 2, 3)),
            (cls(3, momentum=0.3, track_running_stats=True), (2, 3, 4)),
            (cls(2, momentum=None, affine=True, track_running_stats=True), (3, 2, 3)),
        ]


@dataclass(eq=False)
class InstanceNorm2d(InstanceNorm):
    """Each channel of each image with mean 0 and variance 1, input (batch, num_features, height, width)."""

    num_dims = 2

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """With and without parameters, and with running values."""
        tracking = cls(2, affine=True, track_running_stats=True)
        return [(cls(2, affine=True), (3, 2, 2, 3)), (cls(3, eps=0.1), (1, 3, 3, 3)), (tracking, (3, 2, 2, 2))]


@dataclass(eq=False)
class InstanceNorm3d(InstanceNorm):
    """Each channel of each volume with mean 0 and variance 1, input (batch, num_features, depth, height, width)."""

    num_dims = 3

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """With and without parameters, and with running values."""
        tracking = cls(2, track_running_stats=True)
        return [
            (cls(2, affine=True), (2, 2, 1, 2, 3)),
            (cls(1, eps=0.1), (2, 1, 2, 2, 2)),
            (tracking, (3, 2, 1, 2, 2)),
        ]
