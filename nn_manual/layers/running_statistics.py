"""Normalization of channels whose mean and variance may be kept from step to step."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.of_channels import OfChannels
from nn_manual.layers.with_buffers import LayerWithBuffers


class RunningStatistics(OfChannels, LayerWithBuffers):
    """Normalization of channels, by the input's statistics in training, and with `track_running_stats` by running ones
    in evaluation.

    Buffers, where `track_running_stats`: running_mean and running_var (num_features,), num_batches_tracked. Raises
    ValueError for settings out of range.
    """

    num_features: int
    eps: float
    momentum: float | None
    track_running_stats: bool

    def __post_init__(self) -> None:
        if self.num_features < 1:
            raise ValueError(f"num_features must be at least 1, not {self.num_features}")
        if not self.eps > 0:
            raise ValueError(f"eps must be above 0, not {self.eps}")
        if self.momentum is not None and not 0 <= self.momentum <= 1:
            raise ValueError(f"momentum must be between 0 and 1, not {self.momentum}")

    @property
    def channels(self) -> int:
        """num_features."""
        return self.num_features

    def buffer_shapes(self) -> dict[str, Shape]:
        """running_mean and running_var (num_features,)."""
        names = ("running_mean", "running_var")
        return dict.fromkeys(names, (self.num_features,)) if self.track_running_stats else {}

    def counter_names(self) -> tuple[str, ...]:
        """num_batches_tracked."""
        return ("num_batches_tracked",) if self.track_running_stats else ()

    def reset_buffers(self) -> None:
        """running_mean 0, running_var 1, num_batches_tracked 0."""
        if self.track_running_stats:
            self.buffer.running_mean[...], self.buffer.running_var[...] = 0, 1
            self.buffer.num_batches_tracked[...] = 0

    @abstractmethod
    def check_shape(self, input_shape: Shape) -> None:
        """Raise ValueError for a shape of input that the class doesn't take."""

    def infer(self, input: Array) -> Array:
        """The output, normalized by the running values."""
        if not self.track_running_stats:
            return self.forward(input)[0]
        self.check_shape(input.shape)
        across = self._across(input.ndim)
        deviation = 1 / np.sqrt(self.buffer.running_var + self.eps)
        return self._affine((input - self.buffer.running_mean[across]) * deviation[across])

    def _move_running(self, momentum: float, mean: Array, unbiased: Array) -> None:
        """Move the running values towards the input's, (num_features,)."""
        for running, of_input in ((self.buffer.running_mean, mean), (self.buffer.running_var, unbiased)):
            running *= 1 - momentum
            running += momentum * of_input
