"""Inputs without elements, without dimensions and of one element, and sizes that are None: as torch, layer by layer."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest
import torch
from every_component import each

from nn_manual import Padded, Sequential
from nn_manual.arrays import Shape
from nn_manual.check.twin.layers import layer_function
from nn_manual.layers import (
    CELU,
    ELU,
    GELU,
    GLU,
    GRU,
    LSTM,
    RNN,
    SELU,
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
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
    ChannelShuffle,
    CircularPad1d,
    CircularPad2d,
    CircularPad3d,
    Composite,
    Concat,
    ConstantPad1d,
    ConstantPad2d,
    ConstantPad3d,
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
    Embedding,
    EmbeddingBag,
    FeatureAlphaDropout,
    Flatten,
    Fold,
    FractionalMaxPool2d,
    FractionalMaxPool3d,
    GroupNorm,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    Identity,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    Layer,
    LayerNorm,
    LeakyReLU,
    LearnedPositions,
    Linear,
    LocalResponseNorm,
    LogSigmoid,
    LogSoftmax,
    LPPool1d,
    LPPool2d,
    LPPool3d,
    MaskedFill,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
    Mish,
    MultiheadAttention,
    PaddedCausalSelfAttention,
    PaddedEmbeddingBag,
    PaddedGRU,
    PaddedLSTM,
    PaddedMultiheadAttention,
    PaddedRNN,
    PaddedTimePool,
    PaddedTransformerEncoderLayer,
    Permute,
    PixelShuffle,
    PixelUnshuffle,
    PReLU,
    ReflectionPad1d,
    ReflectionPad2d,
    ReflectionPad3d,
    ReLU,
    ReLU6,
    ReplicationPad1d,
    ReplicationPad2d,
    ReplicationPad3d,
    Residual,
    RMSNorm,
    RReLU,
    Sigmoid,
    SiLU,
    SinusoidalPositions,
    Softmax,
    Softmax2d,
    Softmin,
    Softplus,
    Softshrink,
    Softsign,
    SpectralNorm,
    StochasticDepth,
    Sum,
    SwiGLU,
    Tanh,
    Tanhshrink,
    Threshold,
    TimePool,
    TransformerEncoder,
    TransformerEncoderLayer,
    Unflatten,
    Unfold,
    Upsample,
    WeightNorm,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)
from nn_manual.layers.time_pooling import Mode
from nn_manual.registry import components

ELEMENTWISE: list[Shape] = [(), (0,), (1,), (0, 3), (3, 0), (1, 1), (2, 0, 3)]
ONE_PLACE = (ConvTranspose1d, (1,)), (ConvTranspose2d, (1, 1)), (ConvTranspose3d, (1, 1, 1))
CHANNELS_DROPPED = (Dropout1d, (1,)), (Dropout2d, (1, 1)), (Dropout3d, (1, 1, 1))
MIRRORED = [
    (1, (ReflectionPad1d, ReplicationPad1d, CircularPad1d)),
    (2, (ReflectionPad2d, ReplicationPad2d, CircularPad2d)),
    (3, (ReflectionPad3d, ReplicationPad3d, CircularPad3d)),
]
ZEROS = (1, ZeroPad1d), (2, ZeroPad2d), (3, ZeroPad3d)
CONSTANT = (1, ConstantPad1d), (2, ConstantPad2d), (3, ConstantPad3d)
TABLE: list[tuple[Layer, list[Shape]]] = [
    *((layer, ELEMENTWISE) for layer in (GELU("tanh"), Threshold(0.5, 2.0), Dropout(0.5))),
    *((layer(), ELEMENTWISE) for layer in (CELU, ELU, GELU, SELU, Hardshrink, Hardsigmoid, Hardswish, Hardtanh)),
    *((layer(), ELEMENTWISE) for layer in (LeakyReLU, LogSigmoid, Mish, ReLU, ReLU6, Sigmoid, SiLU, Softplus)),
    *((layer(), ELEMENTWISE) for layer in (Identity, Softshrink, Softsign, Tanh, Tanhshrink)),
    *((layer(0), [*ELEMENTWISE, (5, 0, 0), (0, 5, 1)]) for layer in (LogSoftmax, Softmax, Softmin)),
    *((layer(-1), [*ELEMENTWISE, (5, 0, 0), (0, 5, 1)]) for layer in (LogSoftmax, Softmax, Softmin)),
    *((layer(1), [(5, 0, 0), (0, 5), (1, 1), (5, 0)]) for layer in (LogSoftmax, Softmax, Softmin)),
    (GLU(), [(0,), (2,), (0, 2), (3, 0), (1, 4), (2, 0, 2)]),
    (GLU(0), [(0,), (2,), (2, 0), (0, 3), (4, 1, 1)]),
    *((layer, ELEMENTWISE) for layer in (AlphaDropout(0.25), RReLU())),
    (FeatureAlphaDropout(0.5), [(0, 3), (3, 0), (1, 1), (2, 0, 3), (1, 1, 1, 1)]),
    (Softmax2d(), [(0, 2, 1, 1), (1, 2, 0, 3), (1, 1, 1, 1), (2, 0, 1, 1)]),
    (LocalResponseNorm(3), [(0, 2, 1), (1, 1, 1), (2, 0, 1), (1, 2, 0, 3)]),
    *((layer(2, 1), [(0, 1, *size), (1, 1, *size)]) for layer, size in [(LPPool1d, (1,)), (LPPool3d, (1, 1, 1))]),
    (FractionalMaxPool2d(2, 2), [(0, 1, 3, 3), (1, 2, 3, 4)]),
    (FractionalMaxPool3d(1, output_ratio=0.5), [(0, 1, 2, 2, 3), (1, 1, 2, 3, 4)]),
    (LPPool2d(4, 2, ceil_mode=True), [(0, 1, 3, 2), (1, 1, 2, 2)]),
    (Unfold(2, padding=1), [(0, 1, 2, 2), (1, 1, 1, 1)]),
    (Fold(2, 1), [(0, 2, 4), (1, 1, 4)]),
    (PReLU(), ELEMENTWISE),
    (PReLU(2), [(0, 2), (1, 2), (3, 2, 0), (1, 2, 1, 1)]),
    (Flatten(0), ELEMENTWISE),
    (Flatten(-1, 0), [(), (0,), (1,)]),
    (Flatten(), [(0, 3), (3, 0, 2), (1, 1)]),
    (Unflatten(1, [0, 2]), [(3, 0), (0, 0)]),
    (Unflatten(-1, [0]), [(0,), (2, 0)]),
    (Unflatten(0, [-1, 2]), [(0,), (0, 3)]),
    (Unflatten(0, [1, 1]), [(1,), (1, 0)]),
    (Linear(2, 3), [(2,), (0, 2), (1, 2), (3, 0, 2)]),
    (Linear(1, 1, bias=False), [(1,), (0, 1)]),
    (Bilinear(2, 2, 3), [(2,), (0, 2), (1, 2), (3, 0, 2)]),
    (Bilinear(1, 1, 1, bias=False), [(1,), (0, 1)]),
    (LayerNorm(2), [(2,), (0, 2), (3, 0, 2)]),
    (LayerNorm(1), [(1,), (0, 1), (1, 1)]),
    (RMSNorm(2), [(2,), (0, 2), (3, 0, 2)]),
    (RMSNorm(1, elementwise_affine=False), [(1,), (0, 1)]),
    (BatchNorm1d(2), [(0, 2), (0, 2, 3), (4, 2, 0), (2, 2, 1), (1, 2, 2)]),
    (BatchNorm1d(2, momentum=None), [(0, 2), (4, 2, 0)]),
    (BatchNorm1d(1, affine=False), [(0, 1), (2, 1)]),
    (BatchNorm1d(2, track_running_stats=False), [(0, 2)]),
    (BatchNorm2d(2), [(0, 2, 3, 3), (2, 2, 0, 3), (1, 2, 1, 2)]),
    (BatchNorm2d(2, momentum=None, affine=False), [(0, 2, 1, 1)]),
    (Conv2d(2, 3, 2), [(0, 2, 3, 3), (1, 2, 2, 2)]),
    (Conv2d(2, 2, 1, padding=1, groups=2), [(0, 2, 1, 1), (0, 2, 0, 1)]),
    (MaxPool2d(2, stride=None), [(0, 1, 3, 2), (1, 1, 2, 2)]),
    (AvgPool2d(1, padding=0), [(0, 1, 3, 2), (1, 1, 1, 1)]),
    (AdaptiveAvgPool2d([None, 3]), [(2, 1, 2, 4), (0, 1, 2, 4), (1, 1, 1, 1)]),
    (AdaptiveAvgPool2d([2, None]), [(2, 1, 3, 3)]),
    (AdaptiveAvgPool2d([None, None]), [(2, 1, 3, 2)]),
    (AdaptiveAvgPool1d(2), [(0, 1, 2), (1, 1, 1)]),
    (AdaptiveAvgPool3d(1), [(0, 1, 1, 1, 1), (1, 1, 1, 1, 1)]),
    (AdaptiveMaxPool1d(2), [(0, 1, 2), (1, 1, 1)]),
    (AdaptiveMaxPool2d([None, 3]), [(2, 1, 2, 4), (0, 1, 2, 4), (1, 1, 1, 1)]),
    (AdaptiveMaxPool3d(1), [(0, 1, 1, 1, 1), (1, 1, 1, 1, 1)]),
    (Upsample(scale_factor=2), [(0, 1, 2), (1, 1, 1), (0, 1, 1, 2)]),
    (Upsample(3, mode="linear"), [(0, 1, 2), (1, 1, 1)]),
    (Upsample(3, mode="bicubic", align_corners=True), [(0, 1, 2, 2), (1, 1, 1, 1)]),
    (Conv1d(2, 3, 2), [(0, 2, 3), (1, 2, 2)]),
    (Conv3d(1, 2, 1), [(0, 1, 1, 2, 1), (1, 1, 1, 1, 1)]),
    *((layer(2, 3, 2), [(0, 2, *size), (1, 2, *size)]) for layer, size in ONE_PLACE),
    *((layer(1), [(0, 1, *size), (1, 1, *size)]) for layer, size in [(MaxPool1d, (1,)), (MaxPool3d, (1, 1, 1))]),
    *((layer(1), [(0, 1, *size), (1, 1, *size)]) for layer, size in [(AvgPool1d, (1,)), (AvgPool3d, (1, 1, 1))]),
    *((layer(0.0), [(0, 1, *size), (1, 1, *size), (1, 1, 0, *size[1:])]) for layer, size in CHANNELS_DROPPED),
    (StochasticDepth(0.5, "row"), [(0,), (1,), (0, 3), (1, 1), (2, 0, 3)]),
    (StochasticDepth(0.5, "batch"), [(0, 3), (1, 1)]),
    *((layer(1), [(0, 1, *[2] * n), (1, 1, *[2] * n)]) for n, layers in MIRRORED for layer in layers),
    *((layer(1), [(0, 1, *[1] * n), (1, 1, *[1] * n), (1, 1, 0, *[1] * (n - 1))]) for n, layer in ZEROS),
    *((layer(1, 2.0), [(0, 1, *[1] * n), (1, 1, 0, *[1] * (n - 1))]) for n, layer in CONSTANT),
    (WeightNorm(Linear(2, 3)), [(2,), (0, 2), (1, 2), (3, 0, 2)]),
    (WeightNorm(Linear(1, 1, bias=False), dim=None), [(1,), (0, 1)]),
    (WeightNorm(Conv2d(2, 3, 2), dim=1), [(0, 2, 3, 3), (1, 2, 2, 2)]),
    (SpectralNorm(Linear(2, 3)), [(2,), (0, 2), (1, 2), (3, 0, 2)]),
    (SpectralNorm(Linear(1, 1, bias=False)), [(1,), (0, 1)]),
    (SpectralNorm(ConvTranspose1d(2, 3, 2)), [(0, 2, 1), (1, 2, 1)]),
    (GroupNorm(2, 4), [(0, 4), (0, 4, 3), (3, 4)]),  # without places, torch's grad_bias is NaN
    (GroupNorm(2, 4, affine=False), [(2, 4, 0), (1, 4)]),
    (GroupNorm(1, 2, affine=False), [(0, 2), (1, 2)]),
    (InstanceNorm1d(2), [(0, 2, 2), (2, 2, 0), (1, 2, 2)]),
    (InstanceNorm2d(2, affine=True), [(2, 2, 0, 2), (2, 2, 1, 2)]),  # without examples, torch's fails
    (InstanceNorm2d(2), [(0, 2, 2, 2)]),
    (InstanceNorm2d(2, track_running_stats=True), [(2, 2, 1, 2)]),
    (InstanceNorm3d(1), [(0, 1, 1, 2, 1), (1, 1, 1, 2, 1)]),
    (BatchNorm3d(2), [(0, 2, 1, 1, 1), (2, 2, 0, 1, 1), (2, 2, 1, 1, 1)]),
    (PixelShuffle(2), [(1, 0, 1, 1), (1, 4, 1, 1)]),  # without examples, torch's backward fails
    (PixelUnshuffle(2), [(1, 1, 2, 2)]),  # as above
    (ChannelShuffle(2), [(0, 2, 1), (1, 2, 0)]),
    (Permute([0, 2, 1]), [(0, 2, 1), (1, 2, 0), (1, 1, 1)]),
    (Embedding(3, 2, padding_idx=None), [(), (0,), (1,), (2, 0)]),
    (EmbeddingBag(3, 2), [(0, 3), (1, 1)]),
    (EmbeddingBag(3, 2, mode="max", padding_idx=1), [(0, 3), (1, 1), (2, 1)]),
    (SinusoidalPositions(2), [(0, 2, 2), (2, 0, 2), (1, 1, 2)]),
    (LearnedPositions(2, 2), [(0, 2, 2), (2, 0, 2), (1, 1, 2)]),
    (LSTM(2, 3), [(2, 0, 2), (1, 0, 2), (1, 1, 2)]),
    (LSTM(2, 3, num_layers=2, batch_first=True), [(0, 2, 2), (1, 1, 2)]),
    (RNN(2, 3, nonlinearity="relu"), [(2, 0, 2), (1, 1, 2)]),
    (GRU(2, 3, bidirectional=True), [(2, 0, 2), (1, 0, 2), (1, 1, 2)]),
    (PaddedLSTM(2, 3), [(1, 1, 2), (2, 1, 2)]),
    (PaddedGRU(2, 3, bidirectional=True), [(1, 1, 2), (2, 1, 2)]),
    (PaddedRNN(2, 3), [(1, 1, 2), (2, 1, 2)]),
    (LSTM(2, 3, num_layers=2, dropout=0.5, proj_size=2), [(2, 0, 2), (1, 1, 2)]),
    (PaddedGRU(2, 3, num_layers=2, dropout=0.5), [(1, 1, 2), (2, 1, 2)]),
    *((TimePool(mode), [(0, 2, 2), (1, 1, 2), (2, 3, 0), (2, 3, 2, 2)]) for mode in get_args(Mode)),
    *((PaddedTimePool(mode), [(1, 1, 2), (2, 1, 2), (2, 1, 2, 2)]) for mode in get_args(Mode)),
    (MaskedFill(), [(1, 1, 2), (2, 3, 0), (2, 1, 2, 2)]),
    (MaskedFill([0.5, -1.0]), [(1, 1, 2), (2, 3, 2, 2)]),
    (CausalSelfAttention(2, 1), [(0, 3, 2), (3, 0, 2), (0, 0, 2), (1, 1, 2)]),
    (CausalSelfAttention(2, 2, dropout=0.5, bias=False), [(0, 3, 2), (1, 1, 2)]),
    (MultiheadAttention(2, 1), [(0, 3, 2), (3, 0, 2), (1, 1, 2)]),
    (CausalSelfAttention(4, 2, num_kv_heads=1, window=1, positions="rotary"), [(0, 3, 4), (3, 0, 4), (1, 1, 4)]),
    (MultiheadAttention(2, 2, positions="alibi"), [(0, 3, 2), (3, 0, 2), (1, 1, 2)]),
    (PaddedCausalSelfAttention(2, 1), [(1, 1, 2), (2, 1, 2)]),
    (PaddedMultiheadAttention(2, 1), [(1, 1, 2), (2, 1, 2)]),
    (PaddedTransformerEncoderLayer(2, 1, 3), [(1, 1, 2), (2, 1, 2)]),
    (SwiGLU(2, 3), [(0, 2), (2, 0, 2), (1, 1, 2)]),
    (PaddedEmbeddingBag(3, 2), [(1, 1), (2, 1)]),
    (TransformerEncoderLayer(2, 1, 3, dropout=0), [(0, 3, 2), (3, 0, 2), (1, 1, 2)]),
    (TransformerEncoder(TransformerEncoderLayer(2, 1, 3, dropout=0), 2), [(0, 3, 2), (1, 1, 2)]),
    (Residual(Linear(2, 2, bias=False), GELU()), [(0, 2), (2,)]),
    (Sum([Linear(2, 3, bias=False), Linear(2, 3)]), [(0, 2), (1, 2), (2,), (2, 0, 2)]),
    (Concat([Linear(2, 3), GELU()]), [(0, 2), (1, 2)]),
    (Concat([Linear(2, 3), GELU()], dim=-1), [(2, 0, 2), (0, 1, 2)]),
]
CASES = [(layer, shape) for layer, shapes in TABLE for shape in shapes]


def torchs(layer: Layer) -> tuple[Any, ...]:
    """The output as a function of the input, the parameters and the buffers of torch's version."""
    arrays = {kind: {name: array.copy() for name, array in vars(getattr(layer, kind)).items()}
              for kind in ("param", "buffer")}  # fmt: skip
    drawn = vars(getattr(layer, "noise", SimpleNamespace()))
    noise = {name: torch.from_numpy(array.copy()) for name, array in drawn.items()}
    parameters = {name: torch.nn.Parameter(torch.from_numpy(array)) for name, array in arrays["param"].items()}
    buffers = {name: torch.from_numpy(array) for name, array in arrays["buffer"].items()}
    if isinstance(layer, Composite):
        inner = [torchs(child)[0] for child in layer.children().values()]
        return (lambda input: layer.reference(input, *inner, **noise)), {}, {}
    function: Any = layer_function(layer, parameters, buffers, torch.float64)
    return (lambda input: function(input, **noise)), parameters, buffers


def test_every_layer_is_in_the_table() -> None:
    assert {type(layer) for layer, _ in CASES} == set(components(Layer).values())


@each("layer, shape", CASES)
def test_as_torch(layer: Layer, shape: Shape) -> None:
    generator = np.random.default_rng(0)
    layer = copy.deepcopy(layer)
    model = Sequential(layer, dtype="float64", seed=1)
    model.bind_noise(shape)
    is_index = isinstance(layer, Embedding | EmbeddingBag)
    input = np.asarray(generator.integers(0, 3, shape) if is_index else generator.standard_normal(shape))
    if model.lengths_heeded_by:
        model.bind_lengths(Padded(input, np.ones(len(input), np.int64)))
    function, parameters, buffers = torchs(layer)
    leaf = torch.from_numpy(input.copy())
    leaf.requires_grad_(not is_index)
    theirs = function(leaf)
    grad_output = np.asarray(generator.standard_normal(tuple(theirs.shape)))
    theirs.backward(torch.from_numpy(grad_output.copy()))

    output, saved = layer.forward(input)
    assert output.shape == layer.output_shape(shape) == tuple(theirs.shape)
    np.testing.assert_allclose(output, theirs.detach().numpy(), rtol=1e-12, atol=1e-14)
    assert layer.infer(input).shape == output.shape
    assert (layer.longest_sum(shape) or 0) >= 0
    assert layer.num_products(shape) >= 0

    grad_input = layer.backward(saved, grad_output)
    if not is_index:
        assert leaf.grad is not None
        assert grad_input.shape == shape
        np.testing.assert_allclose(grad_input, leaf.grad.numpy(), rtol=1e-12, atol=1e-14)
    for name, parameter in parameters.items():
        assert parameter.grad is not None
        np.testing.assert_allclose(vars(layer.grad)[name], parameter.grad.numpy(), rtol=1e-12, atol=1e-14)
    layer.update_buffers(saved)
    for name, buffer in buffers.items():
        np.testing.assert_allclose(vars(layer.buffer)[name], buffer.numpy(), rtol=1e-12)


@pytest.mark.parametrize("momentum", [0.1, None])
def test_a_batch_without_rows_between_others_counts_and_moves_nothing(momentum: float | None) -> None:
    ours, theirs = BatchNorm1d(2, momentum=momentum), torch.nn.BatchNorm1d(2, momentum=momentum).double()
    Sequential(ours, dtype="float64")
    for num_rows in (3, 0, 4):
        input = np.random.default_rng(num_rows).standard_normal((num_rows, 2))
        ours.update_buffers(ours.forward(input)[1])
        theirs(torch.from_numpy(input))
        for name, buffer in theirs.named_buffers():
            np.testing.assert_allclose(vars(ours.buffer)[name], buffer.numpy(), rtol=1e-12)
    assert ours.buffer.num_batches_tracked == 3


@pytest.mark.parametrize(
    ("layer", "shape", "message"),
    [
        (Softmax(1), (), "Softmax runs along dimension 1, the input has shape"),
        (LogSoftmax(2), (2, 3), "LogSoftmax runs along dimension 2, the input has shape"),
        (Flatten(), (), "Flatten joins the dimensions 1 to -1, the input has shape"),
        (BatchNorm1d(2), (1, 2), "needs more than 1 value for each feature in a training step"),
        (MaxPool2d(1), (1, 0, 2, 2), "MaxPool2d takes images with numbers in them"),
        (AvgPool2d(2, padding=1, count_include_pad=False), (1, 1, 0, 2), "AvgPool2d takes images with numbers in them"),
        (AdaptiveAvgPool2d(2), (1, 1, 0, 2), "AdaptiveAvgPool2d takes images with numbers in them"),
        (LPPool1d(2, 2), (2, 0, 3), "LPPool1d takes images with numbers in them, the input has shape"),
        (AdaptiveMaxPool1d(2), (2, 0, 3), "AdaptiveMaxPool1d takes images with channels, the input has shape"),
        (AvgPool3d(2, padding=1), (1, 1, 1, 2, 2), "AvgPool3d takes volumes of at least the window's size"),
        (Upsample(3), (1, 0, 2), r"Upsample with mode=nearest takes \(batch, channels, length\) or"),
        (GroupNorm(2, 2), (1, 2), r"GroupNorm needs groups of more than 1 number, the input has shape \(1, 2\)"),
        (ReflectionPad1d(1), (2, 1, 1), "ReflectionPad1d mirrors at least 2 numbers in dimension 2, the input has"),
        (ReplicationPad1d(1), (2, 1, 0), "ReplicationPad1d repeats at least 1 number in dimension 2, the input has"),
        (ReplicationPad1d(1), (2, 0, 1), "ReplicationPad1d takes images with channels, the input has shape"),
        (CircularPad2d(2), (2, 1, 3, 1), "CircularPad2d takes round at least 2 numbers in dimension 3, the input has"),
        (InstanceNorm1d(2), (3, 2, 1), r"InstanceNorm1d needs more than 1 place, the input has shape \(3, 2, 1\)"),
        (LSTM(2, 3), (0, 2, 2), r"LSTM takes \(time, batch, input_size=2\)"),
    ],
    ids=repr,
)
def test_what_torch_refuses_gets_a_message(layer: Layer, shape: Shape, message: str) -> None:
    Sequential(layer)
    with pytest.raises(ValueError, match=message):
        layer.forward(np.zeros(shape, np.float32))
