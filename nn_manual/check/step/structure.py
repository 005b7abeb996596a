"""Whether a recorded step is a Sequential's: each layer ran once, on what its neighbour made."""

from __future__ import annotations

from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.check.comparison import CannotCompare
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.recording import LayerCalls, LossCalls, Recording
from nn_manual.layers.base import Layer

#: Arrays whose operators mean something else: what gets one of them goes wrong, or raises.
OTHER_OPERATORS = (np.matrix, np.ma.MaskedArray)


def check_structure(recording: Recording, plan: Plan) -> None:
    """Raise CannotCompare for a layer that raised, that didn't run once forward and once backward, for one that was
    given another array than its neighbour made (then the Sequential is wrong, not the layer), and for what is no
    array or has the wrong shape or dtype.

    The calls are checked in the order in which they were made, and the first problem is reported. So a step that ended
    early is not blamed for what it never reached.
    """
    _check_forward(recording.layers, recording.loss, plan)
    if not recording.loss.refused:
        _check_backward(recording.layers, recording.loss, plan)


def check_output_shapes(recording: Recording) -> None:
    """Raise CannotCompare for a layer whose output isn't shaped as its `output_shape` says: a plan of the step would
    believe it, and blame the layer after it.
    """
    for calls in recording.layers:
        if isinstance(calls.input, np.ndarray) and isinstance(calls.output, np.ndarray):
            _check_output(calls, calls.output.dtype)


def _check_forward(layers: list[LayerCalls], loss: LossCalls, plan: Plan) -> None:
    previous: LayerCalls | None = None
    for calls in layers:
        label = calls.label
        if calls.num_forwards != 1:
            raise CannotCompare(f"Sequential ran {label} forward {_times(calls.num_forwards)} instead of once")
        if previous is not None and not _same(calls.input, previous.output):
            raise CannotCompare(f"Sequential gave {label} another array than the output of the layer before it")
        if calls.failure and calls.output is None:
            raise CannotCompare(f"{label}: {calls.failure}")
        _check_output(calls, plan.dtype)
        previous = calls
    assert previous is not None  # the checker takes no model without layers
    if loss.prediction is None and loss.refused:  # it refused the target before it ran
        return
    if loss.prediction is None:
        raise CannotCompare("the step never ran the loss")
    if not _same(loss.prediction, previous.output):
        raise CannotCompare(f"Sequential returned another array than the output of its last layer, {previous.label}")


def _check_backward(layers: list[LayerCalls], loss: LossCalls, plan: Plan) -> None:
    if loss.failure:
        raise CannotCompare(f"loss: {loss.failure}")
    if loss.grad_prediction is None:
        raise CannotCompare("loss: backward never ran, or returned None")
    assert loss.prediction is not None
    if wrong := _wrong("grad_prediction", loss.grad_prediction, loss.prediction.shape, plan.dtype):
        raise CannotCompare(f"loss: {wrong}")
    grad: Array | None = loss.grad_prediction
    for i in reversed(range(plan.first, len(layers))):
        calls = layers[i]
        label = calls.label
        if calls.grad_output is not None and not _same(calls.grad_output, grad):
            raise CannotCompare(f"Sequential gave {label} another gradient than {_source(layers, i)} returned")
        if calls.grad_output is not None and calls.saved_again is not calls.saved:
            raise CannotCompare(f"Sequential gave {label} back another `saved` than its forward had returned")
        if calls.failure:
            raise CannotCompare(f"{label}: {calls.failure}")
        if calls.num_backwards != 1:
            raise CannotCompare(f"Sequential ran {label} backward {_times(calls.num_backwards)} instead of once")
        if i >= plan.first_grad_input:
            assert calls.input is not None
            if wrong := _wrong("grad_input", calls.grad_input, calls.input.shape, plan.dtype):
                raise calls.fault("backward", wrong)
            grad = calls.grad_input


def _source(layers: list[LayerCalls], i: int) -> str:
    return layers[i + 1].label if i + 1 < len(layers) else "the loss"


def _same(received: Array | None, made: Array | None) -> bool:
    return received is made or (received is not None and made is not None and np.array_equal(received, made))


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
    except Exception as error:  # a user's own may raise anything; the package's own fit, or forward had raised
        raise calls.fault("output_shape", f"output_shape raised {type(error).__name__}: {error}") from error
    if wrong := _wrong("the output", calls.output, shape, dtype):
        if replaced := calls.replaced():  # by an array of another dtype or shape
            raise calls.fault("reset_parameters", replaced)
        inherits = type(calls.layer).output_shape is Layer.output_shape
        if inherits and isinstance(calls.output, np.ndarray) and calls.output.shape != shape:
            wrong = (
                f"forward made {calls.output.shape} of {shape}, and {type(calls.layer).__name__} has the default "
                "output_shape, which says that the shape stays as it is: override output_shape"
            )
        raise calls.fault("forward", wrong)


def _times(number: int) -> str:
    return "never" if number == 0 else f"{number} times"
