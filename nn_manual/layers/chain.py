"""Layers in a row inside a composite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.composite import Composite


class Chain(Composite):
    """A composite that runs layers one after the other. They are its children, or are made of these."""

    #: The layers, in the order in which they run.
    chain: Sequence[Layer]

    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape of the last layer's output. Raises ValueError if a layer doesn't fit the one before it."""
        shape = input_shape
        for layer in self.chain:
            shape = layer.output_shape(shape)
        return shape

    def forward(self, input: Array) -> tuple[Array, list[Any]]:
        """The last layer's output. What is saved is what each layer saved."""
        output, saved = input, []
        for layer in self.chain:
            output, layer_saved = layer.forward(output)
            saved.append(layer_saved)
        return output, saved

    def backward(self, saved: list[Any], grad_output: Array) -> Array:
        """Overwrite the layers' gradients and return grad_input."""
        grad = grad_output
        for layer, layer_saved in zip(reversed(self.chain), reversed(saved), strict=True):
            grad = layer.backward(layer_saved, grad)
        return grad

    def infer(self, input: Array) -> Array:
        """The output in evaluation, with infer of each layer."""
        output = input
        for layer in self.chain:
            output = layer.infer(output)
        return output
