"""Layers that are made of layers. Sequential, which owns their memory, is in nn_manual/model/."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.batch_normalization import BatchNorm1d
from nn_manual.layers.chain import Chain
from nn_manual.layers.composite import check_are_layers, shapes_of_chain
from nn_manual.layers.linear import Linear


@dataclass(eq=False, init=False)
class Residual(Chain):
    """A skip connection around layers that run one after the other, the branch: `Residual(Linear(8, 8), ReLU())`.

        output     = input + branch(input)
        grad_input = grad_output + grad_branch

    where grad_branch is what the branch's own backward returns for grad_output. Input and output have the same shape:
    any shape that the branch keeps.

    Derivation: the input goes two ways. d output / d input = 1 + d branch(input) / d input, so by the chain rule the
    gradients of the two ways add. d output / d branch(input) = 1, so the branch's last layer gets grad_output as it is.
    Raises ValueError for no layers, and for layers that don't keep the shape; TypeError for what is no
    layer.
    """

    layers: tuple[Layer, ...]

    def __init__(self, *layers: Layer) -> None:
        if not layers:
            raise ValueError("layers must be at least one: a Residual without layers would double its input")
        check_are_layers("layers", layers)
        self.layers = self.chain = layers
        self.domain = layers[0].domain

    def __repr__(self) -> str:
        return f"Residual({', '.join(map(repr, self.layers))})"

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """One layer, and several of different widths, one of them with buffers."""
        return [(cls(Linear(3, 3)), (4, 3)), (cls(Linear(3, 2), BatchNorm1d(2), Linear(2, 3)), (5, 3))]

    def children(self) -> dict[str, Layer]:
        """torch's names in a Sequential: "0", "1", ..."""
        return {str(index): layer for index, layer in enumerate(self.layers)}

    def check_values(self, input: Array) -> None:
        """Raise ValueError for values that the first layer can't take."""
        self.layers[0].check_values(input)

    def input_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        """Each layer's input is the output of the one before it."""
        return shapes_of_chain(self.children(), input_shape)

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape. Raises ValueError if a layer doesn't fit the one before it, or if the shape changes."""
        shape = super().output_shape(input_shape)
        if shape != input_shape:
            raise ValueError(f"Residual adds its input of shape {input_shape} to its layers' output of shape {shape}")
        return shape

    def forward(self, input: Array) -> tuple[Array, list[Any]]:
        """`output, saved`, where saved is a list of what each layer saved."""
        branch, saved = super().forward(input)
        if branch.shape != input.shape:  # the sum would broadcast
            self.output_shape(input.shape)
        return input + branch, saved

    def backward(self, saved: list[Any], grad_output: Array) -> Array:
        """Overwrite the layers' gradients and return grad_input."""
        return grad_output + super().backward(saved, grad_output)

    def infer(self, input: Array) -> Array:
        """The output in evaluation: input + branch(input), with infer of each layer."""
        branch = super().infer(input)
        if branch.shape != input.shape:  # as in forward
            self.output_shape(input.shape)
        return input + branch

    def update_buffers(self, saved: list[Any]) -> None:
        """Move the buffers of each layer."""
        for layer, layer_saved in zip(self.layers, saved, strict=True):
            layer.update_buffers(layer_saved)

    def reference(self, input: Any, *layers: Callable[[Any], Any]) -> Any:
        """The definition, on torch tensors."""
        output = input
        for layer in layers:
            output = layer(output)
        return input + output
