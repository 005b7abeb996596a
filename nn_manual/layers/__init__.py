"""Layers: each its configuration, its formulas and their derivation."""

from nn_manual.layers.activations import GELU, ReLU, Tanh
from nn_manual.layers.base import Layer
from nn_manual.layers.linear import Linear
from nn_manual.layers.normalization import LayerNorm

__all__ = ["GELU", "Layer", "LayerNorm", "Linear", "ReLU", "Tanh"]
