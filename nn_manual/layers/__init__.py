"""Layers: each its configuration, its formulas and their derivation."""

from nn_manual.layers.activations import GELU, Activation, ReLU, Sigmoid, SiLU, Tanh
from nn_manual.layers.adaptive_average_pooling import AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d
from nn_manual.layers.adaptive_max_pooling import AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d
from nn_manual.layers.alpha_dropout import AlphaDropout, FeatureAlphaDropout
from nn_manual.layers.average_pooling import AvgPool1d, AvgPool2d, AvgPool3d
from nn_manual.layers.base import Layer
from nn_manual.layers.batch_normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from nn_manual.layers.bilinear import Bilinear
from nn_manual.layers.branches import Concat, Sum
from nn_manual.layers.composite import Composite
from nn_manual.layers.containers import Residual
from nn_manual.layers.convolution import Conv1d, Conv2d, Conv3d
from nn_manual.layers.dropout import Dropout, Dropout1d, Dropout2d, Dropout3d
from nn_manual.layers.embedding import Embedding, LearnedPositions
from nn_manual.layers.embedding_bag import EmbeddingBag, PaddedEmbeddingBag
from nn_manual.layers.exponential_units import CELU, ELU, SELU
from nn_manual.layers.folding import Fold, Unfold
from nn_manual.layers.fractional_pooling import FractionalMaxPool2d, FractionalMaxPool3d
from nn_manual.layers.gated_linear_unit import GLU
from nn_manual.layers.group_normalization import GroupNorm
from nn_manual.layers.gru import GRU
from nn_manual.layers.hard_activations import Hardshrink, Hardsigmoid, Hardswish, Softshrink
from nn_manual.layers.instance_normalization import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from nn_manual.layers.learned_slope import PReLU
from nn_manual.layers.linear import Linear
from nn_manual.layers.local_response import LocalResponseNorm
from nn_manual.layers.lstm import LSTM
from nn_manual.layers.masked_fill import MaskedFill
from nn_manual.layers.max_pooling import MaxPool1d, MaxPool2d, MaxPool3d
from nn_manual.layers.normalization import LayerNorm, RMSNorm
from nn_manual.layers.padded_recurrent import PaddedGRU, PaddedLSTM, PaddedRNN
from nn_manual.layers.padded_transformer import PaddedTransformerEncoderLayer
from nn_manual.layers.padding_classes import (
    CircularPad1d,
    CircularPad2d,
    CircularPad3d,
    ConstantPad1d,
    ConstantPad2d,
    ConstantPad3d,
    ReflectionPad1d,
    ReflectionPad2d,
    ReflectionPad3d,
    ReplicationPad1d,
    ReplicationPad2d,
    ReplicationPad3d,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)
from nn_manual.layers.piecewise_activations import Hardtanh, LeakyReLU, ReLU6, Threshold
from nn_manual.layers.positions import SinusoidalPositions
from nn_manual.layers.power_pooling import LPPool1d, LPPool2d, LPPool3d
from nn_manual.layers.random_slope import RReLU
from nn_manual.layers.rearranging import ChannelShuffle, Permute, PixelShuffle, PixelUnshuffle
from nn_manual.layers.rnn import RNN
from nn_manual.layers.self_attention import (
    CausalSelfAttention,
    MultiheadAttention,
    PaddedCausalSelfAttention,
    PaddedMultiheadAttention,
)
from nn_manual.layers.shape import Flatten, Identity, Unflatten
from nn_manual.layers.smooth_activations import LogSigmoid, Mish, Softplus, Softsign, Tanhshrink
from nn_manual.layers.softmax import LogSoftmax, Softmax, Softmax2d, Softmin
from nn_manual.layers.spectral_norm import SpectralNorm
from nn_manual.layers.stochastic_depth import StochasticDepth
from nn_manual.layers.swiglu import SwiGLU
from nn_manual.layers.time_pooling import PaddedTimePool, TimePool
from nn_manual.layers.transformer import TransformerEncoder, TransformerEncoderLayer
from nn_manual.layers.transposed_convolution import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from nn_manual.layers.upsampling import Upsample
from nn_manual.layers.weight_norm import WeightNorm
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
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AlphaDropout",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Bilinear",
    "CausalSelfAttention",
    "ChannelShuffle",
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "Composite",
    "Concat",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "Embedding",
    "EmbeddingBag",
    "FeatureAlphaDropout",
    "Flatten",
    "Fold",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "GroupNorm",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "Identity",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "Layer",
    "LayerNorm",
    "LayerWithBuffers",
    "LayerWithLengths",
    "LayerWithNoise",
    "LeakyReLU",
    "LearnedPositions",
    "Linear",
    "LocalResponseNorm",
    "LogSigmoid",
    "LogSoftmax",
    "MaskedFill",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "Mish",
    "MultiheadAttention",
    "PReLU",
    "PaddedCausalSelfAttention",
    "PaddedEmbeddingBag",
    "PaddedGRU",
    "PaddedLSTM",
    "PaddedMultiheadAttention",
    "PaddedRNN",
    "PaddedTimePool",
    "PaddedTransformerEncoderLayer",
    "Permute",
    "PixelShuffle",
    "PixelUnshuffle",
    "RMSNorm",
    "RReLU",
    "ReLU",
    "ReLU6",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "Residual",
    "SiLU",
    "Sigmoid",
    "SinusoidalPositions",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "SpectralNorm",
    "StochasticDepth",
    "Sum",
    "SwiGLU",
    "Tanh",
    "Tanhshrink",
    "Threshold",
    "TimePool",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "Unflatten",
    "Unfold",
    "Upsample",
    "WeightNorm",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]
