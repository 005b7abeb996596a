"""Batch normalization."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from nn_manual.arrays import Array, Shape, size_of
from nn_manual.layers.base import Layer
from nn_manual.layers.fast_forms import mean_over
from nn_manual.layers.running_statistics import RunningStatistics
from nn_manual.layers.windows import names_of


@dataclass(eq=False)
class BatchNorm(RunningStatistics):
    """Normalization of each feature over the batch, input (batch, num_features, ...).

    Parameters, where `affine`: weight (num_features,) and, unless `bias` is false, bias (num_features,). Buffers, where
    `track_running_stats`: running_mean and running_var (num_features,), num_batches_tracked. `axes` are all axes but
    that of the features, and `across` shapes a vector of features so that it broadcasts against the input:

        mean        = input.mean(axis=axes, keepdims=True)
        deviation   = 1 / sqrt(((input - mean)**2).mean(axis=axes, keepdims=True) + eps)
        normalized  = (input - mean) * deviation
        output      = across(weight) * normalized + across(bias)
        grad        = across(weight) * grad_output
        grad_mean   = grad.mean(axis=axes, keepdims=True)
        grad_cross  = (grad * normalized).mean(axis=axes, keepdims=True)
        grad_input  = deviation * (grad - grad_mean - normalized * grad_cross)
        grad_weight = (grad_output * normalized).sum(axis=axes)
        grad_bias   = grad_output.sum(axis=axes)

    Derivation, for one feature, with x the input, h the normalized values, r = deviation, g = grad and n values:
    d mean / d x[j] = 1 / n, and with v the variance d v / d x[j] = 2 (x[j] - mean) / n, because the deviations from the
    mean add up to 0. So d r / d x[j] = -r**3 (x[j] - mean) / n = -r**2 h[j] / n, and

        d h[i] / d x[j] = r ([i = j] - 1 / n) - r**2 h[j] (x[i] - mean) / n = r ([i = j] - 1 / n - h[i] h[j] / n)

    So grad_input[j] = sum_i g[i] d h[i] / d x[j] = r (g[j] - mean(g) - h[j] mean(g h)). A weight or bias is used n
    times.

    After a training step, running = (1 - momentum) * running + momentum * of_batch, for the mean and for the unbiased
    variance, which is divided by n - 1. If momentum is None, `running` is the mean over all steps so far. A batch
    without values counts as a step and moves nothing. Evaluation uses the running values, or the batch's if there are
    none. The variance is computed in two passes, because mean(x**2) - mean(x)**2 loses its digits.

    Source: Ioffe and Szegedy, 2015. Raises ValueError for an input of another shape and, as torch does, for an input
    with a single value for each feature in training.
    """

    num_dims: ClassVar[int]

    num_features: int
    eps: float = 1e-5
    momentum: float | None = 0.1
    affine: bool = True
    track_running_stats: bool = True
    bias: bool = field(default=True, kw_only=True)  # before it, torch has device and dtype

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape. Raises ValueError for an input that a training step doesn't take."""
        self.check_shape(input_shape)
        if size_of(input_shape) == self.num_features:
            raise ValueError(
                f"{type(self).__name__} needs more than 1 value for each feature in a training step, "
                f"the input has shape {input_shape}"
            )
        return input_shape

    def longest_sum(self, input_shape: Shape) -> int:
        """Over the batch."""
        return size_of(input_shape) // self.num_features

    def forward(self, input: Array) -> tuple[Array, tuple[Array, ...]]:
        """The output. Saved are the normalized values, 1 / standard deviation, the mean and the variance."""
        self.output_shape(input.shape)
        axes = self._axes(input)
        mean = mean_over(input, axes)
        centered = input - mean
        variance = mean_over(centered * centered, axes)
        deviation = 1 / np.sqrt(variance + self.eps)
        normalized = centered * deviation
        return self._affine(normalized), (normalized, deviation, mean, variance)

    def backward(self, saved: tuple[Array, ...], grad_output: Array) -> Array:
        """Write grad_weight and grad_bias, return grad_input."""
        normalized, deviation, *_ = saved
        self.check_gradient(grad_output, normalized.shape)
        axes = self._axes(normalized)
        grad = grad_output
        if self.affine:
            np.sum(grad_output * normalized, axis=axes, out=self.grad.weight)
            if self.bias:
                np.sum(grad_output, axis=axes, out=self.grad.bias)
            grad = self.param.weight[self._across(grad_output.ndim)] * grad_output
        grad_mean = mean_over(grad, axes)
        grad_cross = mean_over(grad * normalized, axes)
        grad_input: Array = deviation * (grad - grad_mean - normalized * grad_cross)
        return grad_input

    def update_buffers(self, saved: tuple[Array, ...]) -> None:
        """Move the running values towards the batch's."""
        normalized, _, mean, variance = saved
        self._move(mean, variance, normalized.size // self.num_features)

    def _move(self, mean: Array, variance: Array, num_values: int) -> None:
        """Move the running values towards those of a batch in which each feature has `num_values` values. A batch
        without values counts, and moves nothing.
        """
        if self.track_running_stats:
            self.buffer.num_batches_tracked += 1
        if self.track_running_stats and num_values:
            unbiased = variance * (num_values / (num_values - 1))
            momentum = 1 / self.buffer.num_batches_tracked if self.momentum is None else self.momentum
            self._move_running(momentum, mean.ravel(), unbiased.ravel())

    def check_shape(self, input_shape: Shape) -> None:
        """Raise ValueError for a shape of input that the class doesn't take."""
        if len(input_shape) != 2 + self.num_dims or input_shape[1] != self.num_features:
            raise ValueError(
                f"{type(self).__name__} takes (batch, num_features={self.num_features}, {names_of(self.num_dims)}), "
                f"the input has shape {input_shape}"
            )

    @staticmethod
    def _axes(array: Array) -> tuple[int, ...]:
        return (0, *range(2, array.ndim))


@dataclass(eq=False)
class BatchNorm1d(BatchNorm):
    """BatchNorm of vectors, or of sequences: input (batch, num_features) or (batch, num_features, length)."""

    num_dims = 1

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Each setting, and both shapes of input."""
        return [
            (cls(3), (4, 3)),
            (cls(3, eps=0.1, momentum=None), (3, 3)),
            (cls(2, affine=False), (4, 2, 3)),
            (cls(3, track_running_stats=False), (5, 3)),
            (cls(2, bias=False), (3, 2)),
        ]

    def check_shape(self, input_shape: Shape) -> None:
        """As in every batch normalization."""
        if len(input_shape) not in (2, 3) or input_shape[1] != self.num_features:
            raise ValueError(
                f"BatchNorm1d takes (batch, num_features={self.num_features}) or (batch, {self.num_features}, length), "
                f"the input has shape {input_shape}"
            )


@dataclass(eq=False)
class BatchNorm2d(BatchNorm):
    """BatchNorm of images, each channel over the batch and all pixels: input (batch, num_features, height, width)."""

    num_dims = 2

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Each setting."""
        return [
            (cls(2), (3, 2, 2, 3)),
            (cls(3, eps=0.1, momentum=None), (2, 3, 3, 3)),
            (cls(2, affine=False, track_running_stats=False), (1, 2, 3, 2)),
        ]


@dataclass(eq=False)
class BatchNorm3d(BatchNorm):
    """BatchNorm of volumes, each channel over the batch and all places: input (batch, num_features, depth, height,
    width).
    """

    num_dims = 3

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Each setting."""
        return [
            (cls(2), (3, 2, 1, 2, 3)),
            (cls(1, eps=0.1, momentum=None), (2, 1, 2, 2, 2)),
            (cls(2, affine=False, track_running_stats=False), (1, 2, 2, 3, 1)),
        ]
