"""How layers and the loss behave, beside the values that they return.

A layer writes into nothing that it was given, keeps nothing from one run to the next, and gives the same output for the
same input. One that breaks these rules makes other layers look wrong, or is right only sometimes. It takes copies and
several runs to find out. So `check_gradients` does it, and training only after a step has gone wrong.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.check.conduct.children import ChildrenWatched
from nn_manual.check.conduct.layer_copy import LayerCopy
from nn_manual.check.conduct.loss import check_loss
from nn_manual.check.conduct.states import NOT_DETERMINISTIC, check_draw_noise, check_infer, check_update_buffers
from nn_manual.check.conduct.unchanged import Unchanged, arrays_in
from nn_manual.check.step.calls import LayerCalls
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.recording import Recording
from nn_manual.defaults import defines
from nn_manual.layers import Layer


@np.errstate(all="ignore")  # of these values the step has warned; in other places, padding may count and overflow
def check_conduct(recording: Recording, plan: Plan) -> None:
    """Run a copy of each recorded layer several times, from the model's input on. Raises CannotCompare, naming the
    layer and the method, where one

    - raises, though it ran before;
    - replaces an array of `param`, `grad`, `buffer` or `noise`, or writes into one that it may only read: its input,
      its output, grad_output, what it saved; in a composite, what its layers saved and the gradients that they wrote;
    - differs from one run to the next;
    - returns what it overwrites when it runs again, or keeps on itself what must travel in `saved`;
    - writes other gradients in backward_parameters than in backward;
    - draws noise that its generator doesn't determine, or evaluates by what a training step left behind;
    - has a kink_distance that isn't an array of the input's shape.

    Then the loss, by the rules of `check_loss`.
    """
    input = recording.first.input  # a copy: nobody has written into it
    assert input is not None  # check_structure has seen it
    in_chain = {item.name for item in plan.chain}
    tolerances = {quantity.name: quantity.tolerance for quantity in plan.forward}
    with recording.noise_of_step():
        for calls in recording.layers:
            tolerance = tolerances[f"{calls.item.name}.output"]
            if calls.item.name in in_chain:
                # What the layer before returned, and not what was recorded: that may have been written into since.
                input = _LayerRuns(calls, input, tolerance).check()
            else:  # a composite's child; children come first, so that none of them is taken for the composite
                assert calls.input is not None
                _LayerRuns(calls, calls.input, tolerance).check()
    check_loss(recording.loss, input)  # on what the last layer has returned


class _Example(NamedTuple):
    """What a layer is run on."""

    input: Array
    grad_output: Array


class _LayerRuns:
    """Runs a copy of a layer on two examples: `input`, and the same numbers in other places. These give other results,
    and the layer takes them, too. The gradients of the outputs are random: where the terms of a sum cancel, two right
    ways to add them could differ.
    """

    def __init__(self, calls: LayerCalls, input: Array, tolerance: float) -> None:
        assert calls.output is not None
        self.calls, self.copy = calls, LayerCopy(calls, tolerance)
        draw = np.random.default_rng(0).standard_normal
        self.examples = [
            _Example(values, draw(calls.output.shape).astype(calls.output.dtype))
            for values in (input.copy(), np.roll(input, 1))
        ]

    def check(self) -> Array:
        """Returns the layer's output for `input`."""
        example, other = self.examples
        check_draw_noise(self.copy)
        output, saved, grads = self._first_run(example)
        check_update_buffers(self.copy, saved)

        returned = Unchanged(self.calls.label, {"the grad_input": grads["grad_input"]} if "grad_input" in grads else {})
        grads_of_other = self._forward_and_backward(other)
        self.copy.check_kept("forward", "run again on other values, it overwrote")
        self.copy.check_kept("backward", "run again on other values, it overwrote", returned)

        again, _ = self.copy.run("forward", example.input)
        if not self.copy.same(output, again):
            raise self.calls.fault("forward", f"forward {NOT_DETERMINISTIC}, output differs")
        # Before, it followed another example: a layer that lags by a run or two then saved something else.
        for _ in range(3):
            _, saved_of_other = self.copy.run("forward", other.input)
        _, saved = self.copy.run("forward", example.input)
        self._check_backward_between(grads_of_other, saved_of_other)
        if defines(type(self.copy.layer), "backward_parameters"):
            self._check_backward_parameters(grads, saved)
        check_infer(self.copy, example.input, other.input)
        if defines(self.copy.layer, "kink_distance"):  # the diagnosis of a wrong gradient relies on it
            self._check_kink_distance(example.input)
        return output

    def _first_run(self, example: _Example) -> tuple[Array, Any, dict[str, Array]]:
        """The output of forward, what it saved, and what backward computes: whatever they write into shows."""
        self.copy.kept.add({"its input": example.input, "grad_output": example.grad_output})
        output: Array
        with ChildrenWatched(self.calls.item.name, self.copy.layer) as children:
            output, saved = self.copy.run("forward", example.input)
            self.copy.check_written("forward", children.kept)
            places = {f"what forward saved{place}": array for place, array in arrays_in(saved)}
            self.copy.kept.add({"its output": output, **places})
            grads = self._backward(saved, example)
            self.copy.check_written("backward", children.kept)
        if replaced := self.calls.replaced():
            raise self.calls.fault("reset_parameters", replaced)
        return output, saved, grads

    def _forward_and_backward(self, example: _Example) -> dict[str, Array]:
        _, saved = self.copy.run("forward", example.input)
        return self._backward(saved, example)

    def _backward(self, saved: Any, example: _Example) -> dict[str, Array]:
        """Everything that backward computes; the parameters' gradients are copied out of the layer."""
        self._clear_grads()
        grad_input = self.copy.run("backward", saved, example.grad_output)
        of_input = {} if grad_input is None else {"grad_input": grad_input}  # None: an index has no gradient
        return {**of_input, **self._copied_grads()}

    def _clear_grads(self) -> None:
        for grad in vars(self.copy.layer.grad).values():
            grad.fill(np.nan)  # what isn't written, or added to, shows

    def _copied_grads(self) -> dict[str, Array]:
        return {f"grad_{name}": grad.copy() for name, grad in vars(self.copy.layer.grad).items()}

    def _check_backward_between(self, alone: dict[str, Array], saved: Any) -> None:
        """Run the backward of the other example, whose forward ran between two others, and compare it with what it gave
        alone. A layer that keeps its last input, its first, or a stack or a queue of them, gives something else here,
        or raises.
        """
        other = self.examples[1]
        try:
            with self.copy.noise_of_nobody():
                different = self.copy.different(alone, self._backward(saved, other))
        except CannotCompare:  # alone, it didn't raise
            different = "grad_input"
        if different:
            if again := self.copy.different(alone, self._forward_and_backward(other)):
                raise self.calls.fault("backward", f"backward {NOT_DETERMINISTIC}, {again} differs")
            text = f"backward uses what another forward left behind, {different} differs after several forwards:"
            raise self.calls.fault("backward", f"{text} what backward needs must travel in `saved`")

    def _check_backward_parameters(self, grads: dict[str, Array], saved: Any) -> None:
        """Compare it with backward. Training runs it for the first layer with parameters."""
        self._clear_grads()
        self.copy.run("backward_parameters", saved, self.examples[0].grad_output)
        self.copy.check_written("backward_parameters")
        written = self._copied_grads()
        if different := self.copy.different({name: grads[name] for name in written}, written):
            text = f"backward_parameters and backward write different values into {different.replace('_', '.', 1)}"
            raise self.calls.fault("backward_parameters", text + _inherited(type(self.copy.layer)))

    def _check_kink_distance(self, input: Array) -> None:
        distance = self.copy.run("kink_distance", input)
        if not (isinstance(distance, np.ndarray) and distance.shape == input.shape):
            described = f"shape {distance.shape}" if isinstance(distance, np.ndarray) else type(distance).__name__
            text = f"kink_distance returned {described}, it must return an array of the input's shape {input.shape}"
            raise self.calls.fault("kink_distance", text)
        self.copy.check_written("kink_distance")


def _inherited(layer_class: type[Layer]) -> str:
    """Where backward_parameters comes from, if the class has another backward than the base that defines it."""
    of_parameters, of_all = (
        next(base for base in layer_class.__mro__ if name in vars(base)) for name in ("backward_parameters", "backward")
    )
    if of_parameters is of_all or not issubclass(of_all, of_parameters):
        return ""
    return f": {of_all.__name__} has its own backward, and backward_parameters from {of_parameters.__name__}"
