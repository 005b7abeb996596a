"""Sequential: a Layer made of Layers, which owns the memory of their parameters and gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from nn_manual.arrays import DTYPES, Array, Shape
from nn_manual.initializers import Initializer
from nn_manual.layers.base import Layer

#: The Sequential that each layer is in, by the layer's id. A Sequential that nobody holds any more sets its layers
#: free. As long as it lives, it keeps them alive, so no other object can have the id.
_OWNERS: WeakValueDictionary[int, Sequential] = WeakValueDictionary()


class Sequential(Layer):
    """Layers applied one after the other: output = layers[-1](... layers[1](layers[0](input))).

        forward:   for layer in layers:            input, saved = layer.forward(input)
        backward:  for layer in reversed(layers):  grad_output  = layer.backward(saved, grad_output)

    Derivation: the chain rule. The gradient with respect to a layer's output is the one with respect to the next
    layer's input.

    All parameters lie in one flat vector `param_arena`, all gradients in `grad_arena`, in torch's order; every
    layer's `param` and `grad` are views into them. A Sequential is itself a Layer and may stand in another one:
    the outermost then owns the memory, and its `seed`, `dtype` and `initializer` fill all of it. Initial values
    are drawn in float64 and rounded, so a float32 model starts at the rounded float64 one.

    A layer can be in one Sequential, and there in one place: in a second one it would lose the memory of the first. So
    ValueError is raised for one that stands in two places, or that another Sequential holds which is still in use.
    `copy.deepcopy(model)` has layers and memory of its own.
    """

    def __init__(
        self,
        *layers: Layer,
        seed: int = 0,
        dtype: str | np.dtype[Any] = "float32",
        initializer: Initializer | None = None,
    ) -> None:
        _check_types(layers)
        self.layers = layers
        self._check_distinct()
        self._check_free()
        self.domain = layers[0].domain if layers else "real"  # what enters the model enters its first layer
        self.dtype = _dtype(dtype)
        self.bind(np.zeros(self.num_parameters, self.dtype), np.zeros(self.num_parameters, self.dtype))
        self.initializer = initializer
        self.reset_parameters(np.random.default_rng(seed))
        self._own()  # last: one that could not be made owns nothing

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy, or one that was pickled: its layers' views, which were copied one by one, become views again."""
        vars(self).update(state)
        self.bind(self.param_arena, self.grad_arena)
        self._own()

    def __repr__(self) -> str:
        return f"Sequential({', '.join(map(repr, self.layers))})"

    def forward(self, input: Array) -> tuple[Array, list[Any]]:
        """`output, saved`, saved being the list of the layers' own. Raises TypeError for another dtype."""
        if input.dtype != self.dtype:
            raise TypeError(f"the model is {self.dtype}, its input {input.dtype}")
        output, saved = input, []
        for layer in self.layers:
            output, layer_saved = layer.forward(output)
            saved.append(layer_saved)
        return output, saved

    def backward(self, saved: list[Any], grad_output: Array) -> Array:
        """Overwrite every gradient and return grad_input. Training uses `backward_parameters`."""
        for layer, layer_saved in zip(reversed(self.layers), reversed(saved), strict=True):
            grad_output = layer.backward(layer_saved, grad_output)
        return grad_output

    def backward_parameters(self, saved: list[Any], grad_output: Array) -> None:
        """Overwrite every gradient, and compute no more than that needs: the gradient travels back to the first
        layer that has parameters, and not through it.
        """
        first = next((i for i, layer in enumerate(self.layers) if layer.num_parameters), len(self.layers))
        for layer, layer_saved in zip(self.layers[:first:-1], saved[:first:-1], strict=True):
            grad_output = layer.backward(layer_saved, grad_output)
        for layer, layer_saved in zip(self.layers[first : first + 1], saved[first : first + 1], strict=True):
            layer.backward_parameters(layer_saved, grad_output)

    def __call__(self, input: Array) -> Array:
        """Inference: the output alone."""
        return self.forward(input)[0]

    def parameter_shapes(self) -> dict[str, Shape]:
        """torch's names and order: "0.weight", "0.bias", "2.weight", ..."""
        return {
            f"{index}.{name}": shape
            for index, layer in enumerate(self.layers)
            for name, shape in layer.parameter_shapes().items()
        }

    @property
    def num_parameters(self) -> int:
        """Number of scalars in the parameters of all layers. Raises TypeError for a layer's shapes that are none."""
        return sum(layer.num_parameters for layer in self.layers)

    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape after the last layer; ValueError where one doesn't fit the one before it."""
        for layer in self.layers:
            input_shape = layer.output_shape(input_shape)
        return input_shape

    def bind(self, param: Array, grad: Array) -> None:
        """Take two flat vectors as the arenas and give each layer its part."""
        super().bind(param, grad)
        self.param_arena, self.grad_arena, self.dtype = param, grad, param.dtype
        start = 0
        for layer in self.layers:
            stop = start + layer.num_parameters
            layer.bind(param[start:stop], grad[start:stop])
            start = stop

    def reset_parameters(self, generator: np.random.Generator) -> None:
        """Draw all parameters anew: each layer's default, or where there is an initializer, weights of two or more
        dimensions from that and every `bias` zero.
        """
        for _, layer in self.named_layers():
            if self.initializer is None:
                layer.reset_parameters(generator)
            else:
                _initialize(layer, self.initializer, generator)

    def named_layers(self) -> Iterator[tuple[str, Layer]]:
        """The layers in the order in which they run, those of inner Sequentials by torch's names: "1.0", "1.1"."""
        for index, layer in enumerate(self.layers):
            if isinstance(layer, Sequential):
                for name, inner in layer.named_layers():
                    yield f"{index}.{name}", inner
            else:
                yield str(index), layer

    def state_dict(self) -> dict[str, Array]:
        """The parameters by torch's names, as views: a copy is the caller's to make."""
        return dict(vars(self.param))

    def load_state_dict(self, state_dict: Mapping[str, Array]) -> None:
        """Copy parameters in by torch's names. Raises ValueError for a missing or unexpected name or a shape that
        doesn't fit, TypeError for values that are no real numbers, before anything is changed.
        """
        own = self.state_dict()
        for name in sorted(own.keys() ^ state_dict.keys()):
            raise ValueError(f"{'missing' if name in own else 'unexpected'} parameter {name!r} in the state dict")
        for name, value in state_dict.items():
            if value.shape != own[name].shape:
                raise ValueError(f"parameter {name!r} has shape {own[name].shape}, the state dict's {value.shape}")
            if not np.can_cast(value.dtype, self.dtype, "same_kind"):
                raise TypeError(f"parameter {name!r} is {self.dtype}, the state dict's {value.dtype}")
        for name, value in state_dict.items():
            own[name][...] = value

    def _check_distinct(self) -> None:
        """Raise ValueError for a layer that stands in two places, inner Sequentials included."""
        places: dict[int, str] = {}
        for name, layer in self.named_layers():
            first = places.setdefault(id(layer), name)
            if first != name:
                raise ValueError(
                    f"layer {name} is the same object as layer {first}: their gradients would overwrite each other"
                )

    def _check_free(self) -> None:
        """Raise ValueError for a layer that another Sequential holds."""
        for index, layer in enumerate(self.layers):
            if id(layer) in _OWNERS:
                raise ValueError(
                    f"layer {index}, {type(layer).__name__}, is in another Sequential already, which would lose it: "
                    "pass a new layer, or copy.deepcopy(layer)"
                )

    def _own(self) -> None:
        for layer in self.layers:
            _OWNERS[id(layer)] = self


def _check_types(layers: tuple[Layer, ...]) -> None:
    for index, layer in enumerate(layers):
        if not isinstance(layer, Layer):
            raise TypeError(f"layer {index} is {layer!r}, not a Layer")


def _dtype(dtype: str | np.dtype[Any]) -> np.dtype[Any]:
    name = str(np.dtype(dtype))
    if name not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, not {name}")
    return DTYPES[name]


def _initialize(layer: Layer, initializer: Initializer, generator: np.random.Generator) -> None:
    # The layer's defaults get a generator of their own, so that what the initializer draws doesn't depend on them.
    layer.reset_parameters(generator.spawn(1)[0])
    for name, parameter in vars(layer.param).items():
        if name == "bias":
            parameter[...] = 0
        elif parameter.ndim >= 2:
            initializer.fill(parameter, generator)
