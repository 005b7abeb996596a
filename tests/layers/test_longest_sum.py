"""`longest_sum` is what the formulas add up: counted in the derivation, measured in forward and backward."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from nn_manual import Sequential
from nn_manual.arrays import Array, Shape
from nn_manual.check.step.plan import longest_sum
from nn_manual.defaults import defines
from nn_manual.layers import (
    GRU,
    LSTM,
    RNN,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AlphaDropout,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    Bilinear,
    CausalSelfAttention,
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    Dropout,
    Dropout1d,
    Dropout2d,
    Dropout3d,
    FeatureAlphaDropout,
    Fold,
    FractionalMaxPool2d,
    FractionalMaxPool3d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    Layer,
    LearnedPositions,
    LocalResponseNorm,
    LogSoftmax,
    LPPool1d,
    LPPool2d,
    LPPool3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
    SinusoidalPositions,
    Softmax,
    Softmax2d,
    Softmin,
    StochasticDepth,
    Unfold,
)
from nn_manual.model.memory import give_parameters
from nn_manual.registry import components

#: Layer, shape of its input, and the longest of its sums, with where that is.
TABLE: list[tuple[Layer, Shape, int]] = [
    (LPPool1d(2, 3), (1, 1, 6), 3),
    (FractionalMaxPool2d(3, [2, 4]), (1, 1, 8, 8), 6),  # the windows that may have a number
    (FractionalMaxPool3d(2, output_ratio=0.5), (1, 1, 4, 5, 4), 8),
    (LPPool2d(4, [2, 3], stride=1), (1, 1, 4, 4), 6),
    (LPPool3d(2, 2, stride=1), (1, 1, 4, 4, 4), 8),
    (AdaptiveMaxPool1d(2), (1, 1, 5), 2),  # the bins of 3 overlap
    (AdaptiveMaxPool2d([5, 3]), (1, 1, 2, 4), 6),  # of 2 numbers one is in 3 bins, of 4 one is in 2
    (AdaptiveMaxPool3d(2), (1, 1, 2, 4, 6), 1),
    (Softmax(1), (2, 7, 3), 7),  # the sum of the exponentials, that of grad_output * output
    (Softmax(-1), (2, 7, 3), 3),
    (LogSoftmax(1), (2, 7, 3), 7),
    (Softmin(0), (2, 7, 3), 2),
    (Softmax2d(), (2, 7, 3, 8), 7),
    (LocalResponseNorm(5), (2, 7, 8), 5),
    (LocalResponseNorm(5), (2, 3, 8), 3),
    (Dropout(), (4, 3), 1),
    (StochasticDepth(0.5, "row"), (4, 3), 1),
    (Bilinear(3, 3, 1), (2, 3), 9),  # over the products
    (Bilinear(1, 1, 2), (5, 6, 1), 30),  # grad_weight, over the batch
    (Bilinear(3, 3, 7), (2, 3), 42),  # grad_input, over the outputs and both factors
    (AlphaDropout(), (4, 3), 1),
    (FeatureAlphaDropout(), (4, 3, 5), 1),
    (Unfold([2, 3], stride=[2, 1]), (1, 1, 4, 9), 3),  # a number of a row lies in three windows
    (Fold([4, 9], [2, 3], stride=[2, 1]), (1, 6, 14), 3),
    (SinusoidalPositions(4), (5, 6, 4), 1),
    (LearnedPositions(9, 4), (5, 6, 4), 5),  # grad_weight, over the batch
    (BatchNorm1d(3), (5, 3, 4), 20),  # the means and the parameters' gradients, over batch and length
    (BatchNorm2d(3), (2, 3, 4, 5), 40),
    (LSTM(2, 512), (2, 3, 2), 2048),  # grad_z @ weight_hh, over the gates
    (LSTM(2, 3), (5, 6, 2), 30),  # grad_weight, over time and batch
    (LSTM(99, 2, num_layers=2, batch_first=True), (2, 3, 99), 99),  # input @ weight_ih.T
    (GRU(2, 512, bidirectional=True), (2, 3, 2), 1536),
    (RNN(2, 3), (5, 6, 2), 30),
    (CausalSelfAttention(4, 2), (5, 6, 4), 30),  # grad_weight, over batch and time
    (CausalSelfAttention(8, 2), (2, 3, 8), 24),  # grad_projected @ in_proj_weight, over query, key and value
    (Conv2d(4, 4096, 1), (1, 4, 1, 1), 4096),  # weight.mT @ grads, over the output's channels
    (Conv2d(1, 1024, 2), (1, 1, 3, 3), 4096),  # the same, in each of the four windows of the number in the middle
    (Conv2d(1, 1024, 2), (1, 1, 2, 2), 1024),  # in the only window
    (Conv2d(4, 6, 3, groups=2), (1, 4, 3, 3), 18),  # weight @ columns, over a window
    (Conv2d(1, 2, 2), (5, 1, 4, 4), 45),  # grad_weight, over batch and places
    (Conv2d(2, 5, 3, stride=2, dilation=2), (1, 2, 9, 9), 45),  # the number in the middle lies in 3 * 3 windows
    (Conv2d(1, 7, 3, padding=1), (1, 1, 1, 2), 14),
    (MaxPool2d(2), (2, 2, 4, 4), 1),  # no number lies in two windows
    (MaxPool2d(3, stride=1), (1, 1, 7, 7), 9),
    (MaxPool2d([3, 2], stride=[2, 1], padding=1), (1, 1, 5, 4), 4),
    (AvgPool2d([3, 2]), (1, 1, 6, 4), 6),  # forward, over a window
    (Conv1d(2, 3, 4), (5, 2, 6), 15),  # grad_weight, over batch and places
    (Conv1d(2, 40, 4), (1, 2, 9), 160),  # a number in the middle lies in 4 windows
    (Conv3d(3, 1, 2), (1, 3, 3, 2, 2), 24),  # weight @ columns, over a window
    (ConvTranspose1d(2, 3, 4), (5, 2, 6), 45),  # grad_bias, over batch and the output's 9 places
    (ConvTranspose1d(2, 3, 4, bias=False), (5, 2, 6), 30),  # grad_weight, over batch and the input's places
    (ConvTranspose2d(7, 1, 2, stride=2), (1, 7, 1, 1), 7),  # each number of the output lies in one window
    (ConvTranspose2d(7, 1, 2), (1, 7, 3, 3), 28),  # each in four
    (ConvTranspose3d(1, 9, 2, bias=False), (1, 1, 1, 1, 1), 72),  # grad_input, over a window
    (MaxPool1d(3, stride=1), (1, 1, 7), 3),
    (MaxPool3d(3, stride=1), (1, 1, 5, 5, 5), 27),
    (AvgPool1d(3), (1, 1, 6), 3),
    (AvgPool3d([3, 2, 1]), (1, 1, 6, 4, 1), 6),
    (BatchNorm3d(3), (2, 3, 1, 4, 5), 40),
    *((layer(), shape, 1) for layer, shape in [(Dropout1d, (4, 3, 2)), (Dropout2d, (4, 3, 2, 2))]),
    (Dropout3d(), (4, 3, 2, 2, 2), 1),
    (GroupNorm(2, 6), (1, 6, 4), 12),  # the mean of a group
    (GroupNorm(6, 6), (5, 6, 4), 20),  # grad_weight, over batch and places
    (GroupNorm(6, 6, affine=False), (5, 6, 4), 4),
    (InstanceNorm1d(3), (5, 3, 4), 4),
    (InstanceNorm2d(3, affine=True), (5, 3, 4, 2), 40),
    (InstanceNorm3d(3), (5, 3, 4, 2, 2), 16),
]


def stated_or_longest(layer: Layer, shape: Shape) -> int:
    """What the layer states, or where it states nothing the longest dimension."""
    stated = layer.longest_sum(shape)
    return longest_sum(layer, shape, layer.output_shape(shape)) if stated is None else stated


@pytest.mark.parametrize(("layer", "shape", "longest"), TABLE, ids=repr)
def test_the_derivations_number(layer: Layer, shape: Shape, longest: int) -> None:
    assert stated_or_longest(layer, shape) == longest


def test_every_layer_that_states_one_is_in_the_table() -> None:
    """The others in it are those whose longest dimension is their longest sum."""
    stating = {cls for cls in components(Layer).values() if defines(cls, "longest_sum")}
    assert stating == {type(layer) for layer, _, _ in TABLE} - {GRU, LSTM, RNN, CausalSelfAttention}


class Counted(np.ndarray):
    """An array that notes how long the sums are that are computed of it."""

    longest = 0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        plain = [np.asarray(each) for each in inputs]
        if ufunc in (np.matmul, np.vecdot):
            Counted.longest = max(Counted.longest, plain[0].shape[-1])
        out = [np.asarray(each) for each in keywords.pop("out", ())]
        result = np.asarray(getattr(ufunc, method)(*plain, **keywords, **({"out": tuple(out)} if out else {})))
        if ufunc is np.add and method == "reduce":
            Counted.longest = max(Counted.longest, plain[0].size // max(1, result.size))
        return result.view(Counted)


DRAWN: list[tuple[Layer, Shape]] = [
    *((layer(*sizes, num_layers=2, bidirectional=True), (*shape, sizes[0])) for layer in (RNN, LSTM, GRU)
      for sizes in [(2, 3), (3, 2), (40, 2), (1, 1)] for shape in [(1, 1), (5, 6), (2, 1)]),
    *((CausalSelfAttention(*sizes), (*shape, sizes[0])) for sizes in [(4, 2), (6, 1)] for shape in [(1, 1), (5, 6)]),
    *((layer(dim), (2, 5, 3)) for dim in (0, 1, 2) for layer in (LogSoftmax, Softmax, Softmin)),
    *((BatchNorm1d(3), shape) for shape in [(2, 3), (5, 3), (2, 3, 4)]),
    (BatchNorm2d(2), (2, 2, 3, 3)),
    *((LearnedPositions(4, 2), (batch, 3, 2)) for batch in (1, 5)),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "shape"), DRAWN, ids=repr)
def test_the_longest_sum_that_is_computed(layer: Layer, shape: Shape) -> None:
    Sequential(layer)
    counted = {name: array.view(Counted) for name, array in vars(layer.param).items()}
    give_parameters(layer, counted, {name: array.view(Counted) for name, array in vars(layer.grad).items()})
    Counted.longest = 0
    output, saved = layer.forward(np.ones(shape, np.float32).view(Counted))
    layer.backward(saved, np.ones(output.shape, np.float32).view(Counted))
    assert stated_or_longest(layer, shape) == Counted.longest


def ones_added(layer: Layer, input: Array) -> float:
    """The largest number in output and gradients, where all that is multiplied is 1: as many terms has the sum."""
    model = Sequential(layer)
    for name, parameter in vars(layer.param).items():
        parameter[...] = name == "weight"
    output, saved = layer.forward(input)
    grad_input = layer.backward(saved, np.ones_like(output))
    return float(max(array.max() for array in (output, grad_input, model.grad_arena) if array.size))


def test_of_convolutions() -> None:
    """Zeros in the padding are terms, too: with padding there can be fewer that aren't 0."""
    generator = np.random.default_rng(0)
    for _ in range(60):
        groups, batch = int(generator.integers(1, 3)), int(generator.integers(1, 4))
        channels, outputs = (groups * int(generator.integers(1, 5)) for _ in range(2))
        kernel, stride, dilation = ([int(n) for n in generator.integers(1, 4, 2)] for _ in range(3))
        size = [d * (k - 1) + int(generator.integers(1, 5)) for k, d in zip(kernel, dilation, strict=True)]
        padding = int(generator.integers(0, 2))
        layer = Conv2d(channels, outputs, kernel, stride, padding, dilation, groups)
        shape = (batch, channels, *size)
        added, stated = ones_added(layer, np.ones(shape, np.float32)), layer.longest_sum(shape)
        assert added == stated if not padding else added <= stated


def test_of_pooling() -> None:
    generator = np.random.default_rng(0)
    for _ in range(30):
        kernel, stride = ([int(n) for n in generator.integers(1, 4, 2)] for _ in range(2))
        size = [k + int(generator.integers(0, 4)) for k in kernel]
        largest, average = MaxPool2d(kernel, stride), AvgPool2d(kernel, stride)
        most = 0.0
        for place in itertools.product(*map(range, size)):
            input = np.full((1, 1, *size), -1, np.float32)
            input[0, 0, *place] = 1  # the largest of each window in which it lies
            most = max(most, ones_added(largest, input))
        assert largest.longest_sum((1, 1, *size)) == most
        assert average.longest_sum((1, 1, *size)) == math.prod(kernel)
