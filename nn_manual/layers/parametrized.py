"""Layers around another layer, one of whose parameters they compute from parameters of their own."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape, size_of
from nn_manual.layers.base import Layer
from nn_manual.layers.with_buffers import LayerWithBuffers
from nn_manual.layers.with_lengths import LayerWithLengths
from nn_manual.layers.with_noise import evaluates_otherwise


@dataclass(eq=False)
class Parametrized(Layer):
    """A layer whose parameter `name`, the weight, is a function of other parameters, the originals.

        weight         = a formula of the originals
        output         = what the layer makes of the input, with this weight
        grad_weight    = what the layer's backward writes
        grad_originals = the formula's own backward, for grad_weight

    It has the layer's other parameters by their names, and behind them the originals, as torch's
    `parametrizations.weight.original0`. The layer inside has no memory: each run gives a copy of it the weight.

    Derivation: the chain rule. The layer writes the gradient of the weight; the formula's backward takes it on to the
    originals. The gradients of input and of the other parameters are the layer's own, at this weight.
    Raises ValueError for a name that is no parameter of the layer; and for a layer that is made of layers, has buffers,
    takes lengths, or evaluates otherwise than it trains, TypeError for what is no layer.
    """

    layer: Layer
    name: str = "weight"

    def __post_init__(self) -> None:
        label = type(self).__name__
        if not isinstance(self.layer, Layer):
            raise TypeError(f"layer must be a layer, not {self.layer!r}")
        inner = type(self.layer).__name__
        known = self.layer.parameter_shapes()
        if self.layer.children() or isinstance(self.layer, Parametrized):
            raise ValueError(f"{label} takes one layer, and {inner} is made of layers")
        if isinstance(self.layer, LayerWithBuffers | LayerWithLengths) or evaluates_otherwise(self.layer):
            raise ValueError(f"{label} takes a layer that evaluates as it trains, without lengths, and not {inner}")
        if self.name not in known:
            has = f"has {', '.join(known)}" if known else "has none"
            raise ValueError(f"name must be a parameter of the layer, not {self.name!r}: {inner} {has}")
        self.domain = self.layer.domain

    @property
    def weight_shape(self) -> Shape:
        """The shape of the layer's parameter `name`."""
        return self.layer.parameter_shapes()[self.name]

    @abstractmethod
    def original_shapes(self) -> dict[str, Shape]:
        """Name and shape of each original, as torch calls them: "original0"."""

    @abstractmethod
    def weight_of(self, originals: SimpleNamespace) -> tuple[Array, Any]:
        """The weight in training, and what `grad_originals` needs."""

    @abstractmethod
    def write_grads(self, saved: Any, grad_weight: Array, grads: SimpleNamespace) -> None:
        """Write the gradients of the originals."""

    @abstractmethod
    def become(self, originals: SimpleNamespace) -> None:
        """Write the other originals so that the weight is the one that the last of them holds: the layer has filled it.
        """

    def children(self) -> dict[str, Layer]:
        """None: the layer inside has no parameters of its own, and runs in no other way than as a part of this one."""
        return {}

    def parameter_shapes(self) -> dict[str, Shape]:
        """The layer's others, and the originals."""
        others = {name: shape for name, shape in self.layer.parameter_shapes().items() if name != self.name}
        return others | {self._full(name): shape for name, shape in self.original_shapes().items()}

    def reset_parameters(self, generator: np.random.Generator) -> None:
        """As the layer's: the weight begins as it would without this one."""
        self._filled().reset_parameters(generator)
        self.become(self._originals(self.param))

    def initialize(self, fill: Callable[[str], None]) -> None:
        """As the layer's."""
        *_, last = self.original_shapes()
        full = {self.name: self._full(last)}
        self._filled().initialize(lambda name: fill(full.get(name, name) if isinstance(name, str) else name))
        self.become(self._originals(self.param))

    def check_values(self, input: Array) -> None:
        """Raise ValueError for values that the layer can't take."""
        self.layer.check_values(input)

    def output_shape(self, input_shape: Shape) -> Shape:
        """The layer's."""
        return self.layer.output_shape(input_shape)

    def num_products(self, input_shape: Shape) -> int:
        """Those of the layer, and one for each number of the weight."""
        return self.layer.num_products(input_shape) + size_of(self.weight_shape)

    def forward(self, input: Array) -> tuple[Array, tuple[Any, Array, Any]]:
        """The layer's output. Saved are what the layer saved, the weight, and what its own gradients need."""
        weight, saved_of_weight = self.weight_of(self._originals(self.param))
        output, saved = self._with(weight).forward(input)
        return output, (saved, weight, saved_of_weight)

    def backward(self, saved: tuple[Any, Array, Any], grad_output: Array) -> Array:
        """Write the gradients, return grad_input."""
        saved_of_layer, weight, saved_of_weight = saved
        inner = self._with_grads(weight)
        grad_input = inner.backward(saved_of_layer, grad_output)
        self.write_grads(saved_of_weight, vars(inner.grad)[self.name], self._originals(self.grad))
        return grad_input

    def backward_parameters(self, saved: tuple[Any, Array, Any], grad_output: Array) -> None:
        """Write the gradients only."""
        saved_of_layer, weight, saved_of_weight = saved
        inner = self._with_grads(weight)
        inner.backward_parameters(saved_of_layer, grad_output)
        self.write_grads(saved_of_weight, vars(inner.grad)[self.name], self._originals(self.grad))

    def _full(self, original: str) -> str:
        """torch's name of an original."""
        return f"parametrizations.{self.name}.{original}"

    def _originals(self, arrays: SimpleNamespace) -> SimpleNamespace:
        """The parameters, or their gradients, by the names of the originals."""
        return SimpleNamespace(**{name: vars(arrays)[self._full(name)] for name in self.original_shapes()})

    def _with_weight(self, arrays: SimpleNamespace, weight: Array) -> SimpleNamespace:
        """The layer's parameters, or their gradients: this weight, and the others."""
        names = self.layer.parameter_shapes()
        return SimpleNamespace(**{name: weight if name == self.name else vars(arrays)[name] for name in names})

    def _with(self, weight: Array) -> Layer:
        """A copy of the layer that has this weight, and the others."""
        inner = copy.copy(self.layer)
        inner.param = self._with_weight(self.param, weight)
        return inner

    def _with_grads(self, weight: Array) -> Layer:
        """The same, with an array for the weight's gradient, and the others' gradients."""
        inner = self._with(weight)
        inner.grad = self._with_weight(self.grad, np.empty_like(weight))
        return inner

    def _filled(self) -> Layer:
        """A copy of the layer whose weight is the last original."""
        *_, last = vars(self._originals(self.param)).values()
        return self._with(last)
