"""Layers as exercises: the reader writes backward, or of an activation its derivative."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from nn_manual.arrays import Array, Padded
from nn_manual.check.catalogue.input_kinds import draw
from nn_manual.check.catalogue.inputs import (
    AT_JUMPS,
    inputs_of_other_shapes,
    layer_inputs,
    move_constants,
    with_lengths,
)
from nn_manual.check.catalogue.labels import label
from nn_manual.exercises.kinds.exercise import Case, Exercise, NotASolution, Reached, Results, is_no_array, keeping
from nn_manual.exercises.kinds.formula_words import words_of_layer
from nn_manual.exercises.kinds.frozen import freeze
from nn_manual.exercises.kinds.untouched import Untouched
from nn_manual.exercises.kinds.words import written_gradient
from nn_manual.layers import Layer
from nn_manual.layers.activations import Activation
from nn_manual.messages.text import listed
from nn_manual.model import Sequential

SEED = 0
#: How the catalogue writes a shape.
_OTHER_SHAPE = re.compile(r", shape [\dx]+$")


class LayerExercise(Exercise):
    """`owner` is a class of layers."""

    has_way_back: ClassVar[bool] = True
    methods: ClassVar[tuple[str, ...]] = ("derivative", "one_way_backward", "backward")
    given: ClassVar[tuple[str, ...]] = ("forward",)
    room: ClassVar[str] = "layers"

    def cases(self) -> list[Case]:
        """Each example on each kind of input, and on random ones of other sizes."""
        found = []
        for index, (layer, shape) in enumerate(self.owner.examples()):
            model = Sequential(self.owner.examples()[index][0], seed=SEED, dtype="float64")
            generator = np.random.default_rng([SEED, index])
            inputs = [*layer_inputs(model.layers[0], shape, "float64", generator)]
            inputs += inputs_of_other_shapes(model.layers[0], shape, "float64", SEED)
            inputs.sort(key=lambda drawn: drawn[0] == AT_JUMPS)  # the others are numbered alike with and without it
            for number, (kind, array) in enumerate(inputs):
                words = _OTHER_SHAPE.sub(f", shape {array.shape}", kind)
                found.append(self._case(index, layer, (words, number), with_lengths(model, array, generator)))
        return found

    def _case(self, index: int, layer: Layer, kind: tuple[str, int], input: Array | Padded) -> Case:
        words, number = kind
        model = self._model(self.owner, index, number)
        generator = np.random.default_rng([SEED, index, number, 2])  # [0, 1, 0] would be the inputs' [0, 1]
        grad_output = draw("random", model.output_shape(input.shape), "float64", generator)
        drawn: dict[str, Any] = {"index": index, "number": number, "input": input, "grad_output": grad_output}
        run = functools.partial(self._run, **drawn)
        array = input.array if isinstance(input, Padded) else input
        known = {"input": array, "grad_output": grad_output, **_parameters(model)}
        known = words_of_layer(layer, input) | known
        return Case(label(layer), words, run, known, layer, prepare=functools.partial(self._prepare, **drawn))

    def _model(self, own: type[Layer], index: int, number: int) -> Sequential:
        """The layer of a class with parameters of its own for each case: one kept from the last case shows."""
        model = Sequential(own.examples()[index][0], seed=SEED, dtype="float64")
        generator = np.random.default_rng([SEED, index, number, 1])
        model.num_steps = number
        model.reset_parameters(generator)
        move_constants(model, generator)
        return model

    def _run(self, own: type[Layer], index: int, number: int, input: Array | Padded, grad_output: Array) -> Results:
        return self._prepare(own, index, number, input, grad_output)(True)

    def _prepare(
        self, own: type[Layer], index: int, number: int, input: Array | Padded, grad_output: Array
    ) -> Callable[[bool], Results]:
        model = self._model(own, index, number)
        layer = model.layers[0]
        grads = dict(vars(layer.grad))
        kept: list[tuple[Array, Any]] = []
        parameters = model.param_arena.copy()
        untouched = Untouched(layer)

        def run(forward: bool) -> Results:
            model.param_arena[...] = parameters  # a wrong method may have written there
            model.grad_arena[...] = np.nan  # what is never written, or added to what was there, shows
            if forward:
                kept[:] = [model.forward(freeze(input))]
            output, saved = kept[0]
            results = {"output": output.copy()}
            try:
                with keeping(results):
                    grad_input = layer.backward(freeze(saved)[0], freeze(grad_output.copy()))
                    untouched.refuse_changes()
            except NotImplementedError:
                return results
            except Reached as reached:
                if not is_no_array(reached.error, Activation.backward):
                    raise
                no_array: Any = reached.error.obj
                return results | {"grad_input": no_array}
            for name, grad in grads.items():
                if vars(layer.grad)[name] is not grad:
                    own = written_gradient(f"grad_{name}")
                    raise NotASolution(f"{own} = ... makes another array: write {own}[...] = ...")
            if not isinstance(model.domain, range):
                results["grad_input"] = grad_input
            return results | {f"grad_{name}": grad for name, grad in grads.items()}

        return run

    def wanted(self) -> str:
        """For example "Write self.grad.weight and self.grad.bias, return grad_input."."""
        if self.taken_out == ("one_way_backward",):
            return "Write into `grads` the gradients of `parameters`, in their order, return grad_input."
        if "forward" in self.taken_out:
            first = "Return `output, saved` from forward."
            return f"{first} From derivative, return the derivative of each output with respect to its input."
        if self.taken_out == ("derivative",):
            return self.asked_of("derivative")
        layers = [layer for layer, _ in self.owner.examples()]
        own = dict.fromkeys(name for layer in layers for name in layer.parameter_shapes())
        names = [written_gradient(f"grad_{name}") for name in own]
        is_lookup = isinstance(layers[0].domain, range)
        returned = "return None: an index has no gradient" if is_lookup else "return grad_input"
        if not names or layers[0].children():
            return f"{returned[0].upper()}{returned[1:]}."
        return f"Write {listed(names)}, {returned}."

    def asked_of(self, method: str) -> str:
        """The same of one method."""
        if method == "forward":
            return "Return `output, saved`: what derivative needs is saved."
        if method == "derivative":
            return "Return the derivative of each output with respect to its input, shaped as the input."
        return self.wanted()


def _parameters(model: Sequential) -> dict[str, Array]:
    return {name.partition(".")[2]: parameter.copy() for name, parameter in vars(model.param).items()}
