"""Whether a recorded step is a Sequential's: each layer ran once, on what its neighbour made."""

from __future__ import annotations

from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.check.step.calls import LayerCalls
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.recording import Recording
from nn_manual.check.step.tree import Item
from nn_manual.defaults import defines
from nn_manual.errors import raise_if_nobodys_fault, words_of

#: Arrays whose operators mean something else: a layer that gets one goes wrong, or raises.
OTHER_OPERATORS = (np.matrix, np.ma.MaskedArray)


def check_structure(recording: Recording, plan: Plan) -> None:
    """Raise CannotCompare for a layer that raised, that didn't run once forward and once backward, for one that was
    given another array than its neighbour made (then the layer isn't wrong, but what holds it is), for a result that is
    no array or has the wrong shape or dtype, and for a layer whose buffers weren't moved once, by what its forward
    saved.

    The calls are checked in the order in which they were made, and the first problem is reported. So a step that ended
    early is not blamed for what it never reached.
    """
    structure = _Structure(recording, plan)
    structure.check_forward()
    if not recording.loss.refused:
        structure.check_backward()
        structure.check_updates()


class _Structure:
    """The calls of a step, by the names of the layers."""

    def __init__(self, recording: Recording, plan: Plan) -> None:
        self.plan, self.loss, self.has_buffers = plan, recording.loss, bool(recording.buffers)
        self.calls = {calls.item.name: calls for calls in recording.layers}
        failed = [calls for calls in recording.layers if calls.failure]
        #: Whether a layer failed in forward, or in backward: then what its composite would have run next never ran.
        self._failed_forward = any(calls.output is None for calls in failed)
        self._failed_backward = any(calls.output is not None and not calls.num_updates for calls in failed)

    def check_forward(self) -> None:
        """From the first layer to the loss."""
        last = self._forward_of(self.plan.chain, "Sequential")
        if self.loss.prediction is None and self.loss.refused:  # it refused the target before it ran
            return
        if self.loss.prediction is None:
            raise CannotCompare("the step never ran the loss")
        if not _same(self.loss.prediction, last.output):
            raise CannotCompare(f"Sequential returned another array than the output of its last layer, {last.label}")

    def _forward_of(self, chain: list[Item], owner: str) -> LayerCalls:
        """Check a chain that stands in `owner`, which must answer for what the first layer gets. Returns the last
        layer's calls.
        """
        calls: LayerCalls | None = None
        for item in chain:
            previous, calls = calls, self.calls[item.name]
            if calls.num_forwards != 1:
                raise CannotCompare(f"{owner} ran {calls.label} forward {_times(calls.num_forwards)} instead of once")
            if previous is not None and not _same(calls.input, previous.output):
                words = "another array than the output of the layer before it"
                raise CannotCompare(f"Sequential gave {calls.label} {words}")
            if not isinstance(calls.input, np.ndarray):
                raise CannotCompare(f"{owner} gave {calls.label} {type(calls.input).__name__}, not an array")
            if calls.output is None:  # what a composite can't take doesn't fit its layers either
                self._check_fit(calls, owner if previous is None else "Sequential")
            for children in filter(None, item.children.values()):
                if self._failed_forward and not self.calls[children[0].name].num_forwards:
                    continue  # in whatever order the composite runs its layers
                self._forward_of(children, calls.label)
            if calls.failure and calls.output is None:
                raise CannotCompare(f"{calls.label}: {calls.failure}")
            _check_output(calls, self.plan.dtype)
        assert calls is not None  # no chain is empty
        return calls

    @staticmethod
    def _check_fit(calls: LayerCalls, owner: str) -> None:
        """Of a layer that raised: raise ValueError, as it did, where the layers of a Sequential or the model's input
        don't fit each other, and CannotCompare where a composite gave it something else than its shapes allow.
        """
        assert calls.input is not None
        try:
            calls.layer.output_shape(calls.input.shape)
        except ValueError as misfit:
            if owner == "Sequential":
                raise
            raise CannotCompare(f"{owner} gave {calls.label} an input that doesn't fit: {misfit}") from misfit

    def check_backward(self) -> None:
        """From the loss to the first layer whose backward runs."""
        loss = self.loss
        if loss.failure:
            raise CannotCompare(f"loss: {loss.failure}")
        value, dtype = loss.value, self.plan.dtype
        if isinstance(value, np.ndarray | np.floating) and value.dtype != dtype:  # a number of Python's has none
            raise CannotCompare(f"loss: forward's value is {value.dtype}, it must be {dtype}, as the prediction")
        if loss.grad_prediction is None:
            raise CannotCompare("loss: backward never ran, or returned None")
        assert loss.prediction is not None
        if wrong := _wrong("grad_prediction", loss.grad_prediction, loss.prediction.shape, self.plan.dtype):
            raise CannotCompare(f"loss: {wrong}")
        first = self.plan.first
        self._backward_of(self.plan.chain[first:], "Sequential", self.plan.first_grad_input - first)

    def _backward_of(self, chain: list[Item], owner: str, first_grad_input: int = 0) -> None:
        """Check a chain that stands in `owner`, from its last layer on."""
        grad, source = (self.loss.grad_prediction, "the loss") if owner == "Sequential" else (None, owner)
        for i, item in reversed(list(enumerate(chain))):
            calls = self.calls[item.name]
            label = calls.label
            if grad is not None and calls.grad_output is not None and not _same(calls.grad_output, grad):
                raise CannotCompare(f"Sequential gave {label} another gradient than {source} returned")
            if calls.grad_output is not None and calls.saved_again is not calls.saved:
                raise CannotCompare(f"{owner} gave {label} back another `saved` than its forward had returned")
            assert calls.output is not None
            unfit = _wrong("the gradient", calls.grad_output, calls.output.shape, self.plan.dtype)
            if unfit and calls.grad_output is not None:
                raise CannotCompare(f"{owner} passed to {label} what can't be its grad_output: {unfit}")
            for name, children in reversed(item.children.items()):
                start, child_grad_input = self.plan.starts[name]
                if self._failed_backward and children and self.calls[children[-1].name].grad_output is None:
                    continue  # as in forward
                if calls.grad_output is not None:
                    self._backward_of(children[start:], label, child_grad_input - start)
            if calls.failure and not calls.num_updates:
                raise CannotCompare(f"{label}: {calls.failure}")
            if calls.num_backwards != 1:
                raise CannotCompare(f"{owner} ran {label} backward {_times(calls.num_backwards)} instead of once")
            if item.name in self.plan.integer_inputs:
                if calls.grad_input is not None:
                    words = f"an index has no gradient: return None, not {type(calls.grad_input).__name__}"
                    raise calls.fault("backward", f"its input is of integers, and {words}")
            elif i >= first_grad_input:
                assert calls.input is not None
                if wrong := _wrong("grad_input", calls.grad_input, calls.input.shape, self.plan.dtype):
                    raise calls.fault("backward", wrong)
            grad, source = calls.grad_input, label

    def check_updates(self) -> None:
        """Of the layers that have buffers. Where one raised, the rest never got there."""
        whole = not any(calls.failure for calls in self.calls.values())
        if self.has_buffers or not whole:
            self._updates_of(self.plan.chain, "the step", whole=whole)

    def _updates_of(self, chain: list[Item], owner: str, *, whole: bool) -> None:
        for calls in (self.calls[item.name] for item in chain):
            if calls.num_updates and calls.saved_for_update is not calls.saved:
                words = "update_buffers another `saved` than its forward had returned"
                raise CannotCompare(f"{owner} gave {calls.label} {words}")
            if whole and calls.has_buffers and calls.num_updates != 1:
                words = f"{calls.label} update_buffers {_times(calls.num_updates)} instead of once"
                raise CannotCompare(f"{owner} ran {words}")
            for children in calls.item.children.values():
                self._updates_of(children, calls.label, whole=whole)
            if calls.failure:
                raise CannotCompare(f"{calls.label}: {calls.failure}")


def _same(received: Array | None, made: Array | None) -> bool:
    if received is made:
        return True
    return received is not None and made is not None and np.array_equal(received, made, equal_nan=True)


def _wrong(what: str, array: object, shape: Shape, dtype: np.dtype[Any]) -> str:
    """What is wrong with what a method returned: nothing with an array of this shape and dtype."""
    if not isinstance(array, np.ndarray) or isinstance(array, OTHER_OPERATORS):
        return f"{what} is {'None' if array is None else type(array).__name__}, not an array"
    if array.shape != shape:
        return f"{what} has shape {array.shape}, it must have {shape}"
    if array.dtype != dtype:
        return f"{what} is {array.dtype}, it must be {dtype}"
    return ""


def _check_output(calls: LayerCalls, dtype: np.dtype[Any]) -> None:
    assert calls.input is not None
    try:
        shape = calls.layer.output_shape(calls.input.shape)
    except BaseException as error:  # a user's own may raise anything; the package's own fit, or forward had raised
        raise_if_nobodys_fault(error)
        raise calls.fault("output_shape", f"output_shape raised {words_of(error)}") from error
    if wrong := _wrong("the output", calls.output, shape, dtype):
        if replaced := calls.replaced():  # by an array of another dtype or shape
            raise calls.fault("reset_parameters", replaced)
        inherits = not defines(type(calls.layer), "output_shape")
        if inherits and isinstance(calls.output, np.ndarray) and calls.output.shape != shape:
            wrong = (
                f"forward made {calls.output.shape} of {shape}, and {type(calls.layer).__name__} has the default "
                "output_shape, which says that the shape stays as it is: override output_shape"
            )
        raise calls.fault("forward", wrong)


def _times(number: int) -> str:
    return "never" if number == 0 else f"{number} times"
