"""Batch normalization of a slice by the statistics of the whole batch."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.batch_normalization import BatchNorm, BatchNorm1d, BatchNorm2d, BatchNorm3d
from nn_manual.layers.composite import buffer_names, descendants
from nn_manual.layers.fast_forms import mean_over
from nn_manual.model import Sequential
from nn_manual.model.memory import give_buffers
from nn_manual.step.slices.batch_statistics import BatchStatistics


@dataclass(eq=False)
class SyncBatchNorm(BatchNorm):
    """In one slice of a batch, what BatchNorm computes of the whole batch. It is torch.nn.SyncBatchNorm, for which each
    process's part of the batch is a slice.

    A feature has n values in the batch, of which slice s has n[s], so share[s] = n[s] / n. `sum_s` adds up over the
    slices in their order; `axes` and `across` are BatchNorm's:

        slice_mean     = input.mean(axis=axes)
        slice_variance = ((input - across(slice_mean))**2).mean(axis=axes)
        mean           = sum_s share[s] * slice_mean[s]
        variance       = sum_s share[s] * (slice_variance[s] + (slice_mean[s] - mean)**2)
        deviation      = 1 / sqrt(variance + eps)
        normalized     = (input - across(mean)) * across(deviation)
        output         = across(weight) * normalized + across(bias)
        grad_weight    = (grad_output * normalized).sum(axis=axes)
        grad_bias      = grad_output.sum(axis=axes)
        mean_grad      = sum_s grad_bias[s] / n
        mean_cross     = sum_s grad_weight[s] / n
        centered_grad  = grad_output - across(mean_grad) - normalized * across(mean_cross)
        grad_input     = across(weight * deviation) * centered_grad

    Derivation of the variance: it is sum_i (x[i] - mean)**2 / n. In slice s, with m = slice_mean[s],

        sum_i (x[i] - mean)**2 = sum_i (x[i] - m)**2 + 2 (m - mean) sum_i (x[i] - m) + n[s] (m - mean)**2

    and the sum in the middle is 0. Divided by n, the rest is share[s] (slice_variance[s] + (m - mean)**2). No two large
    numbers are subtracted, as in mean(x**2) - mean**2, and one exchange of both is enough.

    Derivation of the gradients: normalized is the same as for the whole batch, so its derivative is BatchNorm's. With g
    the gradient of the batch's loss with respect to normalized, r = deviation and h = normalized,

        grad_input[j] = r (g[j] - mean(g) - h[j] mean(g h))

    A value moves the output of every slice, through mean and variance: so both means are over the whole batch. Here
    g = weight grad_output, and weight is a factor of each term. The gradients of weight and bias are the slice's part
    of a sum over the batch, which is made where the slices' gradients are added up.

    So grad_output must be the gradient of the batch's loss: that of the slice's loss, times the slice's weight in it.
    """

    def take_part(self, layer: BatchNorm, statistics: BatchStatistics, position: int) -> None:
        """Take the place of `layer` in the copy of its model that runs this process's `position`-th slice."""
        self._stands_for, self._statistics, self._position = layer, statistics, position

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape. A slice may have a single value for each feature if the batch has more."""
        self.check_shape(input_shape)
        return input_shape

    def forward(self, input: Array) -> tuple[Array, tuple[Array, ...]]:
        """Saves what BatchNorm saves; the mean and the variance are the batch's."""
        if self._statistics.num_parts == 1:
            self._stands_for.output_shape(input.shape)
        self.output_shape(input.shape)
        axes, across = self._axes(input), self._across(input.ndim)
        slice_mean = mean_over(input, axes).ravel()
        centered = input - slice_mean[across]
        slice_variance = mean_over(centered * centered, axes).ravel()
        rows = self._statistics.gathered(np.concatenate([slice_mean, slice_variance]))
        shares, (means, variances) = self._statistics.shares(input.dtype), np.hsplit(rows, 2)
        mean = (shares * means).sum(axis=0)
        variance = (shares * (variances + (means - mean) ** 2)).sum(axis=0)
        deviation = 1 / np.sqrt(variance + self.eps)
        normalized = (input - mean[across]) * deviation[across]
        return self._affine(normalized), (normalized, deviation, mean, variance)

    def backward(self, saved: tuple[Array, ...], grad_output: Array) -> Array:
        """Write the slice's grad_weight and grad_bias, return grad_input."""
        normalized, deviation, *_ = saved
        self.check_gradient(grad_output, normalized.shape)
        axes, across = self._axes(normalized), self._across(normalized.ndim)
        grad_weight, grad_bias = (grad_output * normalized).sum(axis=axes), grad_output.sum(axis=axes)
        factor = deviation
        if self.affine:
            self.grad.weight[...], self.grad.bias[...] = grad_weight, grad_bias
            factor = self.param.weight * deviation
        rows = self._statistics.gathered(np.concatenate([grad_weight, grad_bias]))
        mean_cross, mean_grad = np.split(rows.sum(axis=0) / max(1, self._num_values(normalized)), 2)
        grad_input: Array = factor[across] * (grad_output - mean_grad[across] - normalized * mean_cross[across])
        return grad_input

    def update_buffers(self, saved: tuple[Array, ...]) -> None:
        """Move the running values towards the batch's. The first slice does that, and no other."""
        normalized, _, mean, variance = saved
        if self._statistics.own[self._position].number == 0:
            self._move(mean, variance, self._num_values(normalized))

    def _num_values(self, array: Array) -> int:
        """How many values a feature has in the batch, from an array of the slice."""
        rows = self._statistics.own[self._position].rows
        num_rows: int = rows.stop - rows.start
        return array.size // self.num_features * self._statistics.num_rows // num_rows

    def check_shape(self, input_shape: Shape) -> None:
        """As the layer that it stands for."""
        self._stands_for.check_shape(input_shape)


def has_batch_norm(layers: Iterable[Layer]) -> bool:
    """Whether there is a layer to synchronise."""
    return any(map(_is_batch_norm, layers))


def not_synchronized(layers: Mapping[str, Layer]) -> str:
    """Why slices of a net with these layers, by their names, can't compute what the whole batch does, in words; empty
    where they can, or nothing is synchronised. A layer with buffers that isn't a batch normalization may take
    statistics of its slice alone.
    """
    for name, layer in layers.items() if has_batch_norm(layers.values()) else ():
        if not layer.children() and buffer_names(layer) and not _is_batch_norm(layer):
            others = "and only BatchNorm1d, BatchNorm2d and BatchNorm3d are synchronized"
            return f"sync_batch_norm must be false: {name} ({type(layer).__name__}) keeps buffers, {others}"
    return ""


def synchronized_copy(model: Sequential, statistics: BatchStatistics, position: int) -> Sequential:
    """A copy of a model for this process's `position`-th slice, in which a SyncBatchNorm takes the place of each batch
    normalization. It has gradients of its own; its parameters and buffers are the model's.
    """
    # For an object with its id here, deepcopy takes the value as the copy: so a layer in a composite is replaced, too.
    in_place_of: dict[int, Any] = {
        id(layer): _synchronized(layer, statistics, position) for layer in _batch_norms(model)
    }
    copied = copy.deepcopy(model, in_place_of)
    copied.bind(model.param_arena, np.zeros_like(model.grad_arena))
    give_buffers(copied, vars(model.buffer))
    return copied


def take_settings(copied: Sequential, model: Sequential) -> None:
    """Give the layers of a copy the settings that the model's layers have now."""
    for (_, own), (_, layer) in zip(descendants(copied), descendants(model), strict=True):
        names: list[str] = [field.name for field in fields(layer)] if is_dataclass(layer) else []
        for name in names:
            value = getattr(layer, name)
            may_be_layers = layer.children() and not isinstance(value, int | float | str)
            if value is not getattr(own, name) and not may_be_layers:
                setattr(own, name, value)


def _is_batch_norm(layer: Layer) -> bool:
    """Whether its class is the package's own: a user's that inherits from one may have other formulas."""
    return type(layer) in (BatchNorm1d, BatchNorm2d, BatchNorm3d)


def _batch_norms(model: Sequential) -> Iterator[BatchNorm]:
    for _, layer in descendants(model):
        if _is_batch_norm(layer):
            assert isinstance(layer, BatchNorm)
            yield layer


def _synchronized(layer: BatchNorm, statistics: BatchStatistics, position: int) -> SyncBatchNorm:
    synchronized = SyncBatchNorm(**{field.name: getattr(layer, field.name) for field in fields(layer)})
    synchronized.take_part(layer, statistics, position)
    return synchronized
