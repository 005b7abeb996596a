"""What evaluation runs, beside torch's modules in eval(): only where it differs from a training step's forward."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from nn_manual.check.compare.comparison import CannotCompare, Pair, Quantity
from nn_manual.check.step.places import place_of_error
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.recording import Recording
from nn_manual.check.step.tree import Item, walk
from nn_manual.check.twin.layers import evaluation_function
from nn_manual.check.twin.model import as_tensor, reference_settings
from nn_manual.check.twin.modules import CannotStandIn
from nn_manual.defaults import defines
from nn_manual.errors import raise_if_nobodys_fault, words_of
from nn_manual.layers.with_lengths import LENGTHS
from nn_manual.layers.with_noise import LayerWithNoise


class Evaluated(NamedTuple):
    """The output of `infer` beside torch's, the function that made torch's, and the input."""

    pair: Pair
    function: Callable[[torch.Tensor], torch.Tensor]
    input: torch.Tensor


def evaluations(recorded: Recording, plan: Plan) -> Iterator[Evaluated]:
    """The output of `infer`, on the recorded input, of each layer that defines it, and of each composite in which one
    does. Raises CannotCompare, naming the layer, for an infer that raises, and where torch has nothing to compare it
    with.
    """
    of_outputs = {quantity.name: quantity for quantity in plan.forward}
    for calls in recorded.layers:
        if any(defines(type(item.layer), "infer") for item in walk([calls.item])):
            assert calls.input is not None
            quantity = replace(of_outputs[f"{calls.item.name}.output"], name=f"{calls.item.name}.infer")
            # Before our infer runs, which may write into its input and its buffers.
            lengths = {LENGTHS: torch.tensor(calls.noise[LENGTHS])} if LENGTHS in calls.noise else {}
            function = functools.partial(_torchs(calls.item), **lengths)
            input = as_tensor(calls.input.copy())
            with recorded.noise_of_step():
                ours = _run(calls.item, "infer", calls.layer.infer, calls.input)
                theirs = _run(calls.item, "its reference", function, input)
            yield Evaluated(_pair(quantity, ours, theirs), function, input)


def _run(item: Item, what: str, function: Callable[[Any], Any], input: Any) -> Any:
    try:
        with reference_settings(), torch.no_grad():
            return function(input)
    except CannotCompare:
        raise
    except BaseException as error:  # a user's own code may raise anything
        raise_if_nobodys_fault(error)
        words = f"{what} raised {words_of(error)}{place_of_error(item.layer, error)}"
        raise CannotCompare(f"{item.label}: in evaluation, {words}") from error


def _pair(quantity: Quantity, ours: Any, theirs: Any) -> Pair:
    if not (isinstance(ours, np.ndarray) and isinstance(theirs, torch.Tensor) and ours.shape == tuple(theirs.shape)):
        returned, wanted = (tuple(v.shape) if hasattr(v, "shape") else type(v).__name__ for v in (ours, theirs))
        raise CannotCompare(f"{quantity.layer}: infer returned {returned}, torch's in evaluation {wanted}")
    return Pair(quantity, ours, theirs.detach())


def _torchs(item: Item) -> Callable[..., Any]:
    """torch's version of a layer in evaluation; of a composite, its `infer_reference` or else its `reference`, with our
    own children: they are compared themselves.
    """
    if not item.children:
        try:
            return evaluation_function(item.layer)
        except CannotStandIn as misfit:
            raise CannotCompare(f"{item.label}: {misfit}") from misfit
    children = [_as_torchs(child.infer) for child in item.layer.children().values()]
    if defines(item.layer, "infer_reference"):
        return functools.partial(_run_on, item.layer.infer_reference, children)
    if isinstance(item.layer, LayerWithNoise):
        words = "it draws random numbers: infer_reference(self, input, *children) says what evaluation computes"
        raise CannotCompare(f"{item.label}: {words}")
    return functools.partial(_run_on, item.layer.reference, children)


def _run_on(
    reference: Callable[..., Any], children: list[Callable[..., Any]], input: torch.Tensor, **lengths: torch.Tensor
) -> Any:
    return reference(input, *children, **lengths)


def _as_torchs(infer: Callable[[Any], Any]) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda input: torch.from_numpy(np.array(infer(input.numpy())))
