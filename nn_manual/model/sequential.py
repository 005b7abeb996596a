"""Sequential: a Layer made of Layers, which owns the memory of their parameters and gradients.

The file is long because a model is three things at once: a layer, the owner of its memory, and what training calls.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from nn_manual.arrays import DTYPES, Array, Padded, Shape, carve, check_arrays, flat, size_of
from nn_manual.layers.base import Layer, num_parameters
from nn_manual.layers.composite import (
    Composite,
    buffer_names,
    counter_names,
    descendants,
    has_buffers,
    shapes_of_chain,
)
from nn_manual.model import memory
from nn_manual.model.contract import check_layers, checked_output, lost_setting
from nn_manual.model.initializers import Initializer, draw_parameters
from nn_manual.model.lengths import Lengths
from nn_manual.model.noise import Noise
from nn_manual.model.ownership import check_places, check_types, own
from nn_manual.model.state_dict import check_state_dict
from nn_manual.model.summary import ModelSummary, summary_of
from nn_manual.model.ties import Ties
from nn_manual.plain_settings import check_type


class Sequential(Composite):
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
    ValueError is raised for a layer that stands in two places, and for one that is in another Sequential which is still
    in use. `copy.deepcopy(model)` has layers and memory of its own.

    `tied=[("0.weight", "9.weight")]` makes these two one parameter, which starts as the first and has its name. Each
    layer writes the gradient of its own use of the parameter, and the model adds these gradients.
    """

    _looks_at_input = True
    _noise: Noise | None
    _lengths: Lengths | None = None

    def __init__(
        self,
        *layers: Layer,
        seed: int = 0,
        dtype: str | np.dtype[Any] = "float32",
        initializer: Initializer | None = None,
        tied: Iterable[tuple[str, str]] = (),
    ) -> None:
        self._take_layers(layers)
        check_type(int, seed=seed)
        if seed < 0:
            raise ValueError(f"seed must be at least 0, not {seed}")
        if initializer is not None:
            check_type(Initializer, initializer=initializer)
        #: What the layers' random numbers depend on: a Trainer counts the steps.
        self.seed, self.num_steps = seed, 0
        #: The row in the batch at which the next input of forward begins: a slice draws what the whole batch draws.
        self.first_row = 0
        self.ties = Ties(super().parameter_shapes(), tied)
        self.dtype = _dtype(dtype)
        for name, layer in descendants(self):
            if reason := lost_setting(layer, self.dtype):
                raise ValueError(f"{name} ({type(layer).__name__}): {reason}")
        self.bind(np.zeros(self.num_parameters, self.dtype), np.zeros(self.num_parameters, self.dtype))
        memory.new_buffers(self, self.dtype)
        memory.reset_buffers(self)
        self.initializer = initializer
        self.reset_parameters(np.random.default_rng(seed))
        own(self)  # last: one that could not be made owns nothing

    @classmethod
    def without_memory(cls, *layers: Layer) -> Sequential:
        """A Sequential that gets its memory from the one in which it will stand. Until then it has no parameters."""
        inner = cls.__new__(cls)
        inner._take_layers(layers)
        inner.initializer = None
        own(inner)
        return inner

    def _take_layers(self, layers: tuple[Layer, ...]) -> None:
        check_types(layers)
        self.layers, self.ties = layers, Ties({}, ())
        check_places(self)
        for name, layer in descendants(self):
            if isinstance(layer, Sequential) and layer.ties.names:
                raise ValueError(f"layer {name} has tied parameters: only the outermost Sequential can have them")
        check_layers(*layers)
        #: The first layer that has parameters.
        self._first = next((i for i, layer in enumerate(layers) if num_parameters(layer)), len(layers))
        self._with_buffers = [i for i, layer in enumerate(layers) if has_buffers(layer)]
        self.domain = layers[0].domain if layers else "real"  # what enters the model enters its first layer

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copy or a pickled model: its layers' arrays, which were copied one by one, become views again."""
        vars(self).update(state)
        if "param" in state:
            param, grad = (flat(vars(views)).astype(self.dtype, copy=False) for views in (self.param, self.grad))
            if self._noise is not None:
                self.bind(param, grad)
            else:  # it stands in another one, which has bound it
                memory.bind(self, param, grad)
            buffers = vars(self.buffer)
            counts = {name: buffers[name] for name in counter_names(self)}
            values = {name: buffer for name, buffer in buffers.items() if name not in counts}
            vectors = flat(values).astype(self.dtype, copy=False), flat(counts).astype(np.int64, copy=False)
            memory.bind_buffers(self, *vectors)
        own(self)

    def __copy__(self) -> Sequential:
        raise TypeError("copy.copy would give the layers to two models: copy.deepcopy makes a model of its own")

    def __repr__(self) -> str:
        return f"Sequential({', '.join(map(repr, self.layers))})"

    def _repr_html_(self) -> str:
        """The summary, in a notebook."""
        return self.summary()._repr_html_()

    def summary(self, input_shape: Shape | None = None) -> ModelSummary:
        """The layers as a table: their parameters, with names and shapes. With the shape of an input, such as
        `array.shape`, also the shape of each layer's output for one example, and about how many multiplications its
        forward takes for one example. print() shows it, and so does a notebook.

        Raises TypeError where `input_shape` is no tuple of integers, and ValueError where the layers don't take it.
        """
        return summary_of(self.children(), self.num_parameters, input_shape, is_tied=bool(self.ties.names))

    def forward(self, input: Array | Padded) -> tuple[Array, list[Any]]:
        """`output, saved`: `saved` lists what each layer saved. Raises TypeError for another dtype and for what is no
        array, and ValueError for masked numbers, for an index that the first layer doesn't have, and where a layer
        heeds lengths for an array without lengths, and if that layer gets other times than the input's.

        The model's `seed`, `num_steps` and `first_row` determine random numbers: until one of these changes, forward
        draws the same ones again.
        """
        self._check_input(input)
        self.bind_noise(input.shape)
        output, saved = self.bind_lengths(input), list[Any]()
        for number, layer in enumerate(self.layers):
            try:
                output, layer_saved = layer.forward(output)
            except ValueError as error:
                _name_layer(error, number, layer)
                raise
            saved.append(layer_saved)
        return output, saved

    def bind_noise(self, input_shape: Shape, step: int | None = None) -> None:
        """Give the layers the random numbers for a forward on an input of this shape, in the step `num_steps`, or in
        `step` if that is given.
        """
        if self._noise is not None and self._noise.is_needed:
            step = self.num_steps if step is None else step
            self._noise.bind(self, input_shape, self.dtype, seed=self.seed, step=step, first_row=self.first_row)

    def leave_input_as_it_is(self) -> None:
        """From here on, forward doesn't check its input, takes no lengths of it and draws no random numbers. This is
        for a copy whose input has been checked, and whose random numbers and lengths are there.
        """
        self._noise = self._lengths = None
        self._looks_at_input = False

    def backward(self, saved: list[Any], grad_output: Array) -> Array:
        """Overwrite every gradient and return grad_input. Training uses `backward_parameters`."""
        for layer, layer_saved in zip(reversed(self.layers), reversed(saved), strict=True):
            grad_output = layer.backward(layer_saved, grad_output)
        self._add_uses()
        return grad_output

    def _add_uses(self, filled: Callable[[int], None] | None = None) -> None:
        """Write the gradients of shared parameters, if there are any: then all gradients are there."""
        if self.ties.names:
            self.ties.add(vars(self.grad))
        if filled is not None:
            filled(-1)

    def backward_parameters(
        self, saved: list[Any], grad_output: Array, filled: Callable[[int], None] | None = None
    ) -> None:
        """Overwrite every gradient, and compute no more than that needs: the gradient travels back to the first
        layer that has parameters, and not through it. `filled` is called with the number of each layer once its
        gradients are there, and with -1 at the end, when the sums for shared parameters are there, too.
        """
        first = self._first
        numbers = range(len(self.layers) - 1, first, -1)
        for number, layer, layer_saved in zip(numbers, self.layers[:first:-1], saved[:first:-1], strict=True):
            grad_output = layer.backward(layer_saved, grad_output)
            if filled is not None:
                filled(number)
        for layer, layer_saved in zip(self.layers[first : first + 1], saved[first : first + 1], strict=True):
            layer.backward_parameters(layer_saved, grad_output)
        self._add_uses(filled)

    def __call__(self, input: Array | Padded) -> Array:
        """Inference: the output alone, each layer as it is in evaluation."""
        return self.infer(input)

    def infer(self, input: Array | Padded) -> Array:
        """What `model(input)` runs. Raises what forward does for an input that the model doesn't take."""
        self._check_input(input)
        output = self.bind_lengths(input)
        for number, layer in enumerate(self.layers):
            try:
                output = checked_output(layer, layer.infer(output))
            except ValueError as error:
                _name_layer(error, number, layer)
                raise
        return output

    @property
    def lengths_heeded_by(self) -> str:
        """The first layer that heeds the lengths of sequences, as "1 (PaddedLSTM)"; empty if none does."""
        return "" if self._lengths is None else self._lengths.heeded_by

    def bind_lengths(self, input: Array | Padded) -> Array:
        """The array of an input, whose lengths go to the layers that heed them."""
        lengths = self._lengths
        if not isinstance(input, Padded) and (lengths is None or not lengths.heeded_by):
            return input
        # One within another gets an array, unless it runs by itself.
        return (lengths or Lengths(self)).array_of(self, input)

    def kept_for_buffers(self, saved: list[Any]) -> list[Any]:
        """What `update_buffers` needs of `saved`, with None in the place of all else, which can then be freed."""
        return [layer_saved if i in self._with_buffers else None for i, layer_saved in enumerate(saved)]

    def update_buffers(self, saved: list[Any]) -> None:
        """Move the buffers of the layers that have some, in a training step, after backward."""
        for i in self._with_buffers:
            self.layers[i].update_buffers(saved[i])

    def check_dtype(self, input: Array | Padded) -> None:
        """Raise TypeError for an input of another dtype than the model's, or than int64 where the first layer takes
        indices.
        """
        expected = np.dtype(np.int64) if isinstance(self.domain, range) else self.dtype
        if input.dtype != expected:
            takes = f"its first layer takes {expected}" if expected != self.dtype else f"the model is {self.dtype}"
            raise TypeError(f"{takes}, its input {'is ' if expected != self.dtype else ''}{input.dtype}")

    def _check_input(self, input: Array | Padded) -> None:
        if not self._looks_at_input:
            return
        if type(input) is not np.ndarray:
            check_arrays(input=input)
        self.check_dtype(input)
        if isinstance(self.domain, range):  # a lookup doesn't notice a wrong index; a wrong float shows in the loss
            self.check_values(input)

    def children(self) -> dict[str, Layer]:
        """torch's names: "0", "1", ..."""
        return {str(index): layer for index, layer in enumerate(self.layers)}

    def parameter_shapes(self) -> dict[str, Shape]:
        """torch's names and order: "0.weight", "0.bias", "2.weight", ... A shared parameter is there once."""
        return {name: shape for name, shape in super().parameter_shapes().items() if name not in self.ties.first_of}

    def input_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        """Each layer's input is the output of the one before it."""
        return shapes_of_chain(self.children(), input_shape)

    def check_values(self, input: Array | Padded) -> None:
        """Raise ValueError for values that the first layer can't take, and where a layer needs lengths and the input
        has none, or where it doesn't get as many times as the input has.
        """
        if self._lengths is not None and self._lengths.heeded_by:
            self._lengths.check(self, input)
        for layer in self.layers[:1]:
            layer.check_values(input.array if isinstance(input, Padded) else input)

    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape after the last layer; ValueError where one doesn't fit the one before it."""
        for number, layer in enumerate(self.layers):
            try:
                input_shape = layer.output_shape(input_shape)
            except ValueError as error:
                _name_layer(error, number, layer)
                raise
        return input_shape

    def bind(self, param: Array, grad: Array, use_grads: Mapping[str, Array] | None = None) -> None:
        """Take two flat vectors as the arenas and give each layer its views of them. `use_grads` has the gradient of
        each use of a shared parameter; without it, new arrays are made.
        """
        shapes = self.parameter_shapes()
        params, grads = (vars(carve(vector, shapes)) for vector in (param, grad))
        memory.give_parameters(self, *self.ties.views(params, grads, use_grads))
        self.param, self.grad = SimpleNamespace(**params), SimpleNamespace(**grads)
        self.param_arena, self.grad_arena, self.dtype = param, grad, param.dtype
        self._noise, self._lengths = Noise(self), Lengths(self)
        for name, layer in descendants(self):
            if isinstance(layer, Sequential):
                layer._stand_inside(self, f"{name}.")

    def _stand_inside(self, outer: Sequential, prefix: str) -> None:
        """Leave memory and random numbers to the outermost Sequential, and view this one's part of its two vectors.
        With shared parameters inside, there is no such part.
        """
        self.dtype, self._noise, self._lengths = outer.dtype, None, None
        sizes = {name: size_of(shape) for name, shape in outer.parameter_shapes().items()}
        own = [name for name in sizes if name.startswith(prefix)]
        start = sum(sizes[name] for name in itertools.takewhile(lambda name: name not in own, sizes))
        part = slice(start, start + sum(sizes[name] for name in own))
        self.param_arena, self.grad_arena = outer.param_arena[part], outer.grad_arena[part]

    def reset_parameters(self, generator: np.random.Generator) -> None:
        """Draw all parameters anew: by the layers' defaults and the initializer, as `draw_parameters` says."""
        draw_parameters(self, self.ties.first_of, self.initializer, generator)

    def named_layers(self) -> Iterator[tuple[str, Layer]]:
        """The layers that are made of no others, by torch's names: "0", "1.0", "1.1"."""
        return ((name, layer) for name, layer in descendants(self) if not layer.children())

    def uses(self) -> dict[str, Array]:
        """Each parameter as each layer sees it: by torch's names, a shared one under each of its own."""
        own = vars(self.param)
        return {name: own[self.ties.first_of.get(name, name)] for name in super().parameter_shapes()}

    def state_dict(self, *, aliases: bool = True) -> dict[str, Array]:
        """The parameters and buffers by torch's names, as views: a copy is the caller's to make. A shared parameter is
        there under each of its names, as in torch, or without `aliases` under its first one.
        """
        own = self.uses() | vars(self.buffer)
        names = [
            f"{layer_name}.{name}"
            for layer_name, layer in self.named_layers()
            for name in (*layer.parameter_shapes(), *buffer_names(layer))
        ]
        return {name: own[name] for name in names if aliases or name not in self.ties.first_of}

    def load_state_dict(self, state_dict: Mapping[str, npt.ArrayLike]) -> None:
        """Copy parameters and buffers into the model: arrays or torch tensors, by torch's names. A shared parameter
        needs its first name alone. Before anything is changed, `check_state_dict` raises ValueError or TypeError for
        what doesn't fit.
        """
        own, values = self.state_dict(), {name: np.asarray(value) for name, value in state_dict.items()}
        check_state_dict(values, own, vars(self.buffer), self.ties.first_of)
        for name, value in values.items():
            own[name][...] = value


def _name_layer(error: ValueError, number: int, layer: Layer) -> None:
    """Where the text of an error begins with the class of a layer, as those about sizes do, say which layer it is: "1
    (Linear) takes ...", or "1.0 (Linear) takes ..." in a Sequential that stands in this one.
    """
    own, text = type(layer).__name__, str(error)
    is_named = re.match(r"[\d.]+ \(", text)
    if is_named and isinstance(layer, Sequential):
        error.args = (f"{number}.{text}",)
    elif text.startswith(f"{own} "):
        error.args = (f"{number} ({own}){text.removeprefix(own)}",)
    elif is_named or any(text.startswith(f"{type(inner).__name__} ") for _, inner in descendants(layer)):
        error.args = (f"{number} ({own}): {text}",)


def _dtype(dtype: str | np.dtype[Any]) -> np.dtype[Any]:
    name = str(np.dtype(dtype))
    if name not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, not {name}")
    return DTYPES[name]
