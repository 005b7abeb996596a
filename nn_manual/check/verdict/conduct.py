"""How a layer behaves, beside the values that it returns: it writes into nothing that it was handed, keeps nothing that
it returned, and gives the same for the same.

A layer that doesn't makes other layers look wrong, or is right at every second call. It costs copies and several runs
to find out, so it is asked once, and where a step has gone wrong already.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.comparison import CannotCompare
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.recording import LayerCalls, Recording
from nn_manual.layers.base import Layer

#: What may hold values: a function has tensors where a layer has arrays.
Kind: TypeAlias = Array | torch.Tensor


def check_conduct(recording: Recording, plan: Plan) -> None:
    """Run copies of each recorded layer again on what it was given. Raises CannotCompare, naming the layer, where one
    raises, writes into its input, into grad_output or into what it saved, replaces an array of `self.grad`, returns
    what it overwrites when it runs again, or differs from one run to the next.
    """
    for calls, quantity in zip(recording.layers, plan.forward, strict=False):  # the last is the loss
        try:
            _check_layer(calls, quantity.tolerance)
        except CannotCompare:
            raise
        except Exception as error:  # a layer that ran once may raise anything the second time
            raise CannotCompare(f"{calls.label}: run again, it raised {type(error).__name__}: {error}") from error


def _check_layer(calls: LayerCalls, tolerance: float) -> None:
    for name, view in calls.views.items():
        if not np.may_share_memory(view, vars(calls.layer.grad)[name]):
            raise CannotCompare(f"{calls.label}: backward replaced grad.{name}: write into it, grad.{name}[...] = ...")
    assert calls.input is not None
    assert calls.output is not None
    layer, input = copy.deepcopy(calls.layer), calls.input.copy()
    # Layers before the first with parameters get no gradient in training: zeros will do, the values don't matter here.
    grad_output = np.zeros_like(calls.output) if calls.grad_output is None else calls.grad_output.copy()

    kept = Kept(calls.label, {"its input": input, "grad_output": grad_output})
    output, saved = layer.forward(input)
    kept.check("forward wrote into")
    kept.add({"its output": output, **{f"what forward saved{place}": array for place, array in arrays_in(saved)}})
    grads = _run_backward(layer, saved, grad_output)
    kept.check("backward wrote into")

    again, _ = copy.deepcopy(calls.layer).forward(input)
    _check_same(f"{calls.label}: forward", {"output": output}, {"output": again}, tolerance)
    _check_same(f"{calls.label}: backward", grads, _run_backward(layer, saved, grad_output), tolerance)

    # The same numbers in other places: other results, and nothing that the layer wouldn't take.
    kept.add({"the grad_input": grads["grad_input"]})
    layer.backward(layer.forward(np.roll(input, 1))[1], np.roll(grad_output, 1))
    kept.check("run again on other values, it overwrote")


def _run_backward(layer: Layer, saved: Any, grad_output: Array) -> dict[str, Array]:
    """Everything that backward computes; the parameters' gradients are copied out of the layer."""
    grad_input = layer.backward(saved, grad_output)
    return {"grad_input": grad_input, **{f"grad_{name}": grad.copy() for name, grad in vars(layer.grad).items()}}


class Kept:
    """Arrays and tensors that must stay as they are while a layer or a function works."""

    def __init__(self, label: str, arrays: Mapping[str, Kind]) -> None:
        self.label = label
        self._kept: list[tuple[str, Kind, Kind]] = []
        self.add(arrays)

    def add(self, arrays: Mapping[str, Kind]) -> None:
        """Remember the values of arrays, each under what it is called."""
        self._kept += [(what, array, copy.deepcopy(array)) for what, array in arrays.items()]

    def check(self, deed: str) -> None:
        """Raise CannotCompare for the first that is no longer what it was."""
        for what, array, before in self._kept:
            if not _equal(array, before):
                raise CannotCompare(f"{self.label}: {deed} {what}")


def _check_same(method: str, first: dict[str, Array], again: dict[str, Array], tolerance: float) -> None:
    """Compare two runs on one input. A threaded sum may add up in another order: rounding is no difference."""
    for name, array in first.items():
        allowed = tolerance * np.abs(array[np.isfinite(array)]).max(initial=0)
        if not np.allclose(array, again[name], rtol=0, atol=allowed, equal_nan=True):
            raise CannotCompare(f"{method} is not deterministic: run twice on the same, {name} differs")


def _equal(array: Kind, before: Kind) -> bool:
    if isinstance(array, torch.Tensor):
        return torch.allclose(array, torch.as_tensor(before), rtol=0, atol=0, equal_nan=True)
    return np.array_equal(array, before, equal_nan=True)


def arrays_in(saved: Any, place: str = "") -> Iterator[tuple[str, Kind]]:
    """Every array and tensor in what a forward saved, and where it is in it."""
    if isinstance(saved, np.ndarray):
        yield place, saved
    elif isinstance(saved, torch.Tensor):
        yield place, saved.detach()
    elif isinstance(saved, (tuple, list)):
        for index, item in enumerate(saved):
            yield from arrays_in(item, f"{place}[{index}]")
    elif isinstance(saved, dict):
        for key, item in saved.items():
            yield from arrays_in(item, f"{place}[{key!r}]")
