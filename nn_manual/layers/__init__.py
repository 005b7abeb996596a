"""Layers: each its configuration, its formulas and their derivation."""

from nn_manual.layers.activations import GELU, Activation, ReLU, Sigmoid, SiLU, Tanh
from nn_manual.layers.attention import CausalSelfAttention
from nn_manual.layers.base import Layer
from nn_manual.layers.batch_normalization import BatchNorm1d, BatchNorm2d
from nn_manual.layers.composite import Composite
from nn_manual.layers.containers import Residual
from nn_manual.layers.convolution import Conv2d
from nn_manual.layers.dropout import Dropout
from nn_manual.layers.embedding import Embedding, LearnedPositions
from nn_manual.layers.linear import Linear
from nn_manual.layers.normalization import LayerNorm, RMSNorm
from nn_manual.layers.padded_recurrent import PaddedLSTM
from nn_manual.layers.pooling import AdaptiveAvgPool2d, AvgPool2d, MaxPool2d
from nn_manual.layers.recurrent import LSTM
from nn_manual.layers.shape import Flatten, Unflatten
from nn_manual.layers.softmax import Softmax
from nn_manual.layers.with_buffers import LayerWithBuffers
from nn_manual.layers.with_lengths import LayerWithLengths
from nn_manual.layers.with_noise import LayerWithNoise

__all__ = [
    "GELU",
    "LSTM",
    "Activation",
    "AdaptiveAvgPool2d",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "CausalSelfAttention",
    "Composite",
    "Conv2d",
    "Dropout",
    "Embedding",
    "Flatten",
    "Layer",
    "LayerNorm",
    "LayerWithBuffers",
    "LayerWithLengths",
    "LayerWithNoise",
    "LearnedPositions",
    "Linear",
    "MaxPool2d",
    "PaddedLSTM",
    "RMSNorm",
    "ReLU",
    "Residual",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "Unflatten",
]
