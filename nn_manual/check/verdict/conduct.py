"""How a layer behaves, beside the values that it returns: it writes into nothing that it was given, keeps nothing
from one run to the next, and gives the same output for the same input.

A layer that breaks these rules makes other layers look wrong, or is right only sometimes. It takes copies and several
runs to find out. So `check_gradients` does it, and training only after a step has gone wrong.
"""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array, flat
from nn_manual.check.comparison import CannotCompare
from nn_manual.check.step.calls import LayerCalls
from nn_manual.check.step.places import place_of_error
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.recording import Recording
from nn_manual.check.verdict.kept import Kept, arrays_in
from nn_manual.layers.base import Layer

_NONE = SimpleNamespace()

NOT_DETERMINISTIC = "is not deterministic: run twice on the same"


def check_conduct(recording: Recording, plan: Plan, input: Array | None) -> None:
    """Run a copy of each recorded layer several times, from the model's `input` on. Raises CannotCompare, naming the
    layer and the method, where one

    - raises, though it ran before;
    - replaces an array of `self.param` or `self.grad`, or writes into its parameters, its input, its output,
      grad_output or what it saved;
    - differs from one run to the next;
    - returns what it overwrites when it runs again, or keeps on itself what must travel in `saved`;
    - writes other gradients in backward_parameters than in backward;
    - has a kink_distance that isn't an array of the input's shape.
    """
    assert input is not None  # check_structure has seen it
    in_chain = {item.name for item in plan.chain}
    tolerances = {quantity.name: quantity.tolerance for quantity in plan.forward}
    for calls in recording.layers:
        tolerance = tolerances[f"{calls.item.name}.output"]
        if calls.item.name in in_chain:
            # What the layer before returned, and not what was recorded: that may have been written into since.
            input = _LayerRuns(calls, input, tolerance).check()
        else:  # a composite's child; children come first, so that none of them is taken for the composite
            assert calls.input is not None
            _LayerRuns(calls, calls.input, tolerance).check()


class _Example(NamedTuple):
    """What a layer is run on."""

    input: Array
    grad_output: Array


class _LayerRuns:
    """Runs a copy of a layer on two examples: `input`, and the same numbers in other places. They give other results,
    and are nothing that the layer wouldn't take. The gradients of the outputs are random: in a sum whose terms cancel
    two right ways to add could differ.
    """

    def __init__(self, calls: LayerCalls, input: Array, tolerance: float) -> None:
        assert calls.output is not None
        self.calls, self.tolerance = calls, tolerance
        try:
            self.layer = copy.deepcopy(calls.layer)
        except Exception as error:  # a layer may hold anything
            text = f"{calls.label} can't be copied, which the check needs: {type(error).__name__}: {error}"
            raise CannotCompare(text) from error
        if calls.item.children:  # its children's views were copied one by one
            self.layer.bind(*(flat(vars(views)) for views in (self.layer.param, self.layer.grad)))
            self.layer.take_buffers(vars(self.layer.buffer))
        draw = np.random.default_rng(0).standard_normal
        self.examples = [
            _Example(values, draw(calls.output.shape).astype(calls.output.dtype))
            for values in (input.copy(), np.roll(input, 1))
        ]

    def check(self) -> Array:
        """Returns the layer's output for `input`."""
        example, other = self.examples
        owned = {f"param.{name}": array for name, array in vars(self.layer.param).items()}
        for kind in ("buffer", "noise"):
            owned |= {f"{kind}.{name}": array for name, array in vars(getattr(self.layer, kind, _NONE)).items()}
        kept = Kept(self.calls.label, owned)
        owned |= {f"grad.{name}": array for name, array in vars(self.layer.grad).items()}
        kept.add({"its input": example.input, "grad_output": example.grad_output})

        output: Array
        output, saved = self._run("forward", example.input)
        self._check_replaced("forward", owned)
        self._check_kept(kept, "forward", "forward wrote into")
        kept.add({"its output": output, **{f"what forward saved{place}": array for place, array in arrays_in(saved)}})
        grads = self._backward(saved, example)
        self._check_replaced("backward", owned)
        self._check_kept(kept, "backward", "backward wrote into")
        if replaced := self.calls.replaced():
            raise self.calls.fault("reset_parameters", replaced)

        returned = Kept(self.calls.label, {"the grad_input": grads["grad_input"]} if "grad_input" in grads else {})
        grads_of_other = self._forward_and_backward(other)
        self._check_kept(kept, "forward", "run again on other values, it overwrote")
        self._check_kept(returned, "backward", "run again on other values, it overwrote")

        again, _ = self._run("forward", example.input)
        if not self._same(output, again):
            raise self.calls.fault("forward", f"forward {NOT_DETERMINISTIC}, output differs")
        _, saved_of_other = self._run("forward", other.input)
        _, saved = self._run("forward", example.input)
        self._check_backward_between(grads_of_other, saved_of_other)
        if type(self.layer).backward_parameters is not Layer.backward_parameters:
            self._check_backward_parameters(grads, saved)
            self._check_kept(kept, "backward_parameters", "backward_parameters wrote into")
        if hasattr(self.layer, "kink_distance"):  # the diagnosis of a wrong gradient relies on it
            self._check_kink_distance(example.input)
            self._check_kept(kept, "kink_distance", "kink_distance wrote into")
        return output

    def _run(self, method: str, *arguments: Any) -> Any:
        try:
            return getattr(self.layer, method)(*arguments)
        except (Exception, SystemExit) as error:  # a layer that ran once may raise anything the second time
            text = f"{self.calls.label}: on a copy of the layer, {method} raised {type(error).__name__}: {error}"
            raise CannotCompare(text + place_of_error(self.layer, error)) from error

    def _forward_and_backward(self, example: _Example) -> dict[str, Array]:
        _, saved = self._run("forward", example.input)
        return self._backward(saved, example)

    def _backward(self, saved: Any, example: _Example) -> dict[str, Array]:
        """Everything that backward computes; the parameters' gradients are copied out of the layer."""
        self._clear_grads()
        grad_input = self._run("backward", saved, example.grad_output)
        of_input = {} if grad_input is None else {"grad_input": grad_input}  # None: an index has no gradient
        return {**of_input, **self._copied_grads()}

    def _clear_grads(self) -> None:
        for grad in vars(self.layer.grad).values():
            grad.fill(np.nan)  # what isn't written, or added to, shows

    def _copied_grads(self) -> dict[str, Array]:
        return {f"grad_{name}": grad.copy() for name, grad in vars(self.layer.grad).items()}

    def _check_replaced(self, method: str, owned: dict[str, Array]) -> None:
        now = {kind: vars(getattr(self.layer, kind, _NONE)) for kind in ("param", "grad", "buffer", "noise")}
        for what, array in owned.items():
            kind, _, name = what.partition(".")
            if now[kind].get(name) is not array:
                write = f"write into it, {what}[...] = ..." if kind == "grad" else "it may only be read"
                raise self.calls.fault(method, f"{method} replaced {what}: {write}")

    def _check_kept(self, kept: Kept, method: str, deed: str) -> None:
        if changed := kept.changed():
            raise self.calls.fault(method, f"{deed} {changed}")

    def _check_backward_between(self, alone: dict[str, Array], saved: Any) -> None:
        """Run the backward of the other example, whose forward ran before one forward and after another, and compare
        with what it gave alone. A layer that keeps its last input, its first, or a stack or a queue of them, gives
        something else here, or raises.
        """
        other = self.examples[1]
        try:
            different = self._different(alone, self._backward(saved, other))
        except CannotCompare:  # alone, it didn't raise
            different = "grad_input"
        if different:
            if again := self._different(alone, self._forward_and_backward(other)):
                raise self.calls.fault("backward", f"backward {NOT_DETERMINISTIC}, {again} differs")
            text = f"backward uses what another forward left behind, {different} differs after several forwards:"
            raise self.calls.fault("backward", f"{text} what backward needs must travel in `saved`")

    def _check_backward_parameters(self, grads: dict[str, Array], saved: Any) -> None:
        """Compare it with backward. Training runs it for the first layer with parameters."""
        self._clear_grads()
        self._run("backward_parameters", saved, self.examples[0].grad_output)
        written = self._copied_grads()
        if different := self._different({name: grads[name] for name in written}, written):
            text = f"backward_parameters and backward write different values into {different.replace('_', '.', 1)}"
            raise self.calls.fault("backward_parameters", text)

    def _check_kink_distance(self, input: Array) -> None:
        distance = self._run("kink_distance", input)
        if not (isinstance(distance, np.ndarray) and distance.shape == input.shape):
            described = f"shape {distance.shape}" if isinstance(distance, np.ndarray) else type(distance).__name__
            text = f"kink_distance returned {described}, it must return an array of the input's shape {input.shape}"
            raise self.calls.fault("kink_distance", text)

    def _different(self, first: dict[str, Array], again: dict[str, Array]) -> str:
        """The name of the first array that differs, or nothing."""
        return next((name for name, array in first.items() if not self._same(array, again[name])), "")

    def _same(self, array: Array, again: Array) -> bool:
        """Whether they are equal up to rounding: a threaded sum may add up in another order."""
        allowed = self.tolerance * np.abs(array[np.isfinite(array)]).max(initial=0)
        same_shape = np.shape(array) == np.shape(again)
        return same_shape and np.allclose(array, again, rtol=0, atol=allowed, equal_nan=True)
