"""The terms that values are made of: a value may be off by a few roundings of its terms, which may be far larger.

The claim of a step moves what lies between the layers. That shows how a value depends on its inputs, but not what is
lost on the way to it. The gradient of x / norm(x) hardly changes when x does, but it is a difference of terms that may
be a million times as large. In float32, torch's distance from float64 shows this. In float64 there is nothing more
exact to compare torch with. So there everything that torch computes is moved, inside of the layers and on the way back,
and the effects are measured. What float32 is compared with, torch's float64 values, is off by as much: where a gradient
is what is left of 1 - (1 - x), and x is below eps, torch has 0 in both dtypes.

A layer of ours may have other terms than torch's: a backward that uses the saved output has 1 + y where torch takes
exp(x). So our own arithmetic of a layer is moved, too, in float64.

A layer's terms, ours and torch's, count up to the largest number of the whole tensor and of what the layer made it
of: its input, grad_output, or for a parameter the products of both. So nothing excuses more than a few roundings of
what the layer got and made. Beyond that, moves are no measure: a probability of exactly 1 is moved, too, though nothing
was rounded, and the gradient of a score, which is exactly 0 there, becomes as large as the move, times a key.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import Pair
from nn_manual.check.compare.tolerances import MARGIN
from nn_manual.check.judge.claim import Values
from nn_manual.check.judge.in_float64 import double_of, in_float64
from nn_manual.check.judge.moved import Moved, effects_of
from nn_manual.check.judge.moved_arrays import moved_array
from nn_manual.check.judge.rounding import distance, eps_of
from nn_manual.check.judge.small_parts import SmallPart
from nn_manual.check.step.calls import LayerCalls
from nn_manual.check.step.proof import Proof, beside_torch, given_to_children
from nn_manual.check.step.recording import Recording
from nn_manual.check.twin.model import Twin
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.layers.base import Layer
from nn_manual.layers.composite import descendants


def within_terms(double: Twin, step: Proof, failed: Sequence[Pair], parts: Sequence[SmallPart] = ()) -> frozenset[str]:
    """The names of those of `failed` that lie within a few roundings of their terms from torch's float64 values, at our
    activations and gradients. `double` is torch's version of the model in float64, whose parameters are overwritten;
    `failed` are tensors of the step, or `parts` of some.
    """
    cuts = {part.pair.quantity.name: (part.tensor, part.key) for part in parts}
    truth, ran = _torchs_values(double, step), {calls.label: calls for calls in _that_ran(step)}

    def is_within(pair: Pair, terms: Values, dtype: np.dtype[Any] | None = None) -> bool:
        tensor, key = cuts.get(pair.quantity.name, (pair.quantity.name, ...))
        if tensor not in terms or pair.ours.dtype.kind != "f":
            return False
        largest = float(terms[tensor][key].max())
        if calls := ran.get(pair.quantity.layer):
            largest = min(largest, max(_largest_given(calls, tensor), _largest(truth[tensor])))
        return distance(pair.ours, truth[tensor][key]) <= MARGIN * eps_of(dtype or pair.ours.dtype) * largest

    # Measuring the terms takes many reruns. No terms, however large, excuse what is beyond the layer's own numbers.
    unlimited = {name: np.full(np.shape(values), np.inf) for name, values in truth.items()}
    failed = [pair for pair in failed if is_within(pair, unlimited)]
    if not failed:
        return frozenset()
    own = _own_terms(step, {pair.quantity.layer for pair in failed}, truth)
    found = frozenset(pair.quantity.name for pair in failed if is_within(pair, own))
    rest = [pair for pair in failed if pair.quantity.name not in found]
    if rest:
        torchs = effects_of(functools.partial(_torchs_values, double, step), truth)
        found |= {pair.quantity.name for pair in rest if is_within(pair, torchs, np.dtype(np.float64))}
    return found


def _torchs_values(double: Twin, step: Proof, size: float = 0, seed: int = 0) -> Values:
    """torch's values in float64, at our activations and gradients, with all that it computes moved."""
    if not size:
        np.copyto(double.param, step.param)
        return _values(beside_torch(double, step.recorded, step.plan, our_grads=True)[0])
    with Moved(size, seed, most_exponent=0):
        np.copyto(double.param, _through(torch.from_numpy(step.param).double()).numpy())
        return _values(beside_torch(double, step.recorded, step.plan, _through, _through, our_grads=True)[0])


def _through(tensor: torch.Tensor) -> torch.Tensor:
    """The same values as the result of an operation: so they are moved."""
    return tensor * 1.0 if tensor.is_floating_point() else tensor


def _values(pairs: Iterable[Pair]) -> Values:
    return {pair.quantity.name: pair.reference.numpy() for pair in pairs}


def _own_terms(step: Proof, labels: set[str], truth: Values) -> dict[str, Array]:
    """The terms of what the layers of these labels compute, from our own arithmetic in float64. A layer that doesn't
    run in float64 has none.
    """
    terms: dict[str, Array] = {}
    ran = [calls for calls in _that_ran(step) if calls.label in labels]
    if not ran:
        return terms
    model = in_float64(step.recorded.model, step.param, step.recorded.buffers_before)
    layers, again = dict(descendants(model)), Recording(model, step.recorded.loss.loss)
    for calls in ran:
        run = functools.partial(_own_values, calls, layers[calls.item.name], again)
        try:
            with np.errstate(all="ignore"):
                found = effects_of(run, run(0, 0))
        except BaseException as error:  # anyone's formula may raise anything in float64, or on arrays of another class
            raise_if_nobodys_fault(error)
            continue
        terms |= {name: found[name] for name in found.keys() & truth.keys()}
    return terms


def _that_ran(step: Proof) -> list[LayerCalls]:
    return [calls for calls in step.recorded.layers if calls.grad_output is not None]


def _largest_given(calls: LayerCalls, tensor: str) -> float:
    """The largest number of what the layer makes this tensor of: its input, or grad_output. A parameter's gradient is
    made of products of both, unless the input is indices.
    """
    assert calls.input is not None  # it ran
    assert calls.grad_output is not None
    if tensor.endswith((".output", ".input")):
        return _largest(calls.input)
    is_product = not tensor.endswith(".grad_input") and calls.input.dtype.kind == "f"
    return _largest(calls.grad_output) * (max(1.0, _largest(calls.input)) if is_product else 1.0)


def _largest(array: Array) -> float:
    return float(np.abs(array).max())


def _own_values(calls: LayerCalls, layer: Layer, again: Recording, size: float, seed: int) -> Values:
    """The layer's output and gradients, and what a composite gives its children, by their names in the plan, with all
    that it computes moved. `again` watches the layer.
    """
    generator = np.random.default_rng(seed)

    def taken(array: Array | None) -> Array:
        assert array is not None  # as above
        if array.dtype.kind != "f":
            return array
        double = array.astype(np.float64)
        return moved_array(double, size, generator) if size else double

    _take_noise(layer, calls.layer)
    with again:
        output, saved = layer.forward(taken(calls.input))
        values: dict[str, Any] = {"output": np.array(output)}
        grad_input = layer.backward(saved, taken(calls.grad_output))
    values |= {f"grad_{name}": grad for name, grad in vars(layer.grad).items()}
    if calls.grad_input is not None:
        values["grad_input"] = grad_input
    named = {f"{calls.item.name}.{name}": array for name, array in values.items()}
    given = given_to_children(calls.item, {each.item.name: each for each in again.layers})
    named |= {name: source() for name, source in given.items()}
    return {name: np.array(array) for name, array in named.items() if array is not None}


def _take_noise(layer: Layer, other: Layer) -> None:
    """Give a copy of a layer, and its children, the random numbers of the layer itself, in float64."""
    for own, its in zip([layer, *_inner(layer)], [other, *_inner(other)], strict=True):
        if hasattr(its, "noise"):
            own.noise = SimpleNamespace(**{name: double_of(array) for name, array in vars(its.noise).items()})


def _inner(layer: Layer) -> list[Layer]:
    return [inner for _, inner in descendants(layer)]
