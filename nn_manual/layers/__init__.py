"""Layers: each its configuration, its formulas and their derivation."""

from nn_manual.layers.activations import GELU, Activation, ReLU, Sigmoid, SiLU, Tanh
from nn_manual.layers.attention import CausalSelfAttention
from nn_manual.layers.base import Layer
from nn_manual.layers.batch_normalization import BatchNorm1d, BatchNorm2d
from nn_manual.layers.branches import Concat, Sum
from nn_manual.layers.composite import Composite
from nn_manual.layers.containers import Residual
from nn_manual.layers.convolution import Conv2d
from nn_manual.layers.dropout import Dropout
from nn_manual.layers.embedding import Embedding, LearnedPositions
from nn_manual.layers.exponential_units import CELU, ELU, SELU
from nn_manual.layers.gated_linear_unit import GLU
from nn_manual.layers.gru import GRU
from nn_manual.layers.hard_activations import Hardshrink, Hardsigmoid, Hardswish, Softshrink
from nn_manual.layers.learned_slope import PReLU
from nn_manual.layers.linear import Linear
from nn_manual.layers.lstm import LSTM
from nn_manual.layers.normalization import LayerNorm, RMSNorm
from nn_manual.layers.padded_recurrent import PaddedGRU, PaddedLSTM, PaddedRNN
from nn_manual.layers.piecewise_activations import Hardtanh, LeakyReLU, ReLU6, Threshold
from nn_manual.layers.pooling import AdaptiveAvgPool2d, AvgPool2d, MaxPool2d
from nn_manual.layers.rnn import RNN
from nn_manual.layers.shape import Flatten, Identity, Unflatten
from nn_manual.layers.smooth_activations import LogSigmoid, Mish, Softplus, Softsign, Tanhshrink
from nn_manual.layers.softmax import LogSoftmax, Softmax, Softmin
from nn_manual.layers.time_pooling import PaddedTimePool, TimePool
from nn_manual.layers.with_buffers import LayerWithBuffers
from nn_manual.layers.with_lengths import LayerWithLengths
from nn_manual.layers.with_noise import LayerWithNoise

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "GRU",
    "LSTM",
    "RNN",
    "SELU",
    "Activation",
    "AdaptiveAvgPool2d",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "CausalSelfAttention",
    "Composite",
    "Concat",
    "Conv2d",
    "Dropout",
    "Embedding",
    "Flatten",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "Identity",
    "Layer",
    "LayerNorm",
    "LayerWithBuffers",
    "LayerWithLengths",
    "LayerWithNoise",
    "LeakyReLU",
    "LearnedPositions",
    "Linear",
    "LogSigmoid",
    "LogSoftmax",
    "MaxPool2d",
    "Mish",
    "PReLU",
    "PaddedGRU",
    "PaddedLSTM",
    "PaddedRNN",
    "PaddedTimePool",
    "RMSNorm",
    "ReLU",
    "ReLU6",
    "Residual",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Sum",
    "Tanh",
    "Tanhshrink",
    "Threshold",
    "TimePool",
    "Unflatten",
]
