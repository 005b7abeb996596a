"""Layers: each its configuration, its formulas and their derivation."""

from nn_manual.layers.activations import GELU, ReLU, Tanh
from nn_manual.layers.base import Layer
from nn_manual.layers.batch_normalization import BatchNorm1d
from nn_manual.layers.containers import Residual
from nn_manual.layers.dropout import Dropout
from nn_manual.layers.embedding import Embedding
from nn_manual.layers.linear import Linear
from nn_manual.layers.normalization import LayerNorm

__all__ = ["GELU", "BatchNorm1d", "Dropout", "Embedding", "Layer", "LayerNorm", "Linear", "ReLU", "Residual", "Tanh"]
