"""References, run: what one of them raises, or returns that isn't what it must be, becomes CannotCompare."""

from __future__ import annotations

import torch

from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.check.step.calls import LayerCalls
from nn_manual.check.step.places import place_of_error
from nn_manual.check.twin.layers import Counterpart, Function
from nn_manual.check.twin.model import Twin
from nn_manual.errors import first_words_of, raise_if_nobodys_fault


def run_reference(
    function: Function, input: torch.Tensor, ours: torch.Tensor, calls: LayerCalls, counterpart: Counterpart
) -> torch.Tensor:
    """torch's output of a layer. Raises CannotCompare, naming the layer, where it isn't a tensor like `ours`."""
    label, version = calls.label, input._version
    try:
        output = function(input)
    except CannotCompare:  # of a child
        raise
    except BaseException as error:  # a user's own reference may raise anything
        raise_if_nobodys_fault(error)
        words = f"{first_words_of(error)}{place_of_error(calls.layer, error)}{counterpart.advice}"
        raise CannotCompare(f"{label}: {counterpart.name} raised {words}") from error
    if isinstance(output, torch.Tensor) and output.shape == ours.shape and output.dtype == ours.dtype:
        if input._version != version:
            raise CannotCompare(f"{label}: {counterpart.name} writes into its input")
        if input.requires_grad and not output.requires_grad:
            raise CannotCompare(
                f"{label}: {counterpart.name} returned a tensor that autograd can't follow back to the input: "
                "it was detached, or made without torch"
            )
        return output
    raise CannotCompare(
        f"{label}: {counterpart.name} returned {described(output)}, forward {described(ours)}{counterpart.advice}"
    )


def run_loss_reference(twin: Twin, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """torch's value of the loss. Raises CannotCompare where it isn't a scalar tensor."""
    try:
        loss = twin.loss_function(prediction, target)
    except BaseException as error:  # a user's own reference may raise anything
        raise_if_nobodys_fault(error)
        raise CannotCompare(f"loss: its reference raised {first_words_of(error)}") from error
    if not isinstance(loss, torch.Tensor) or loss.ndim:
        raise CannotCompare(f"loss: its reference returned {described(loss)}, it must return a scalar tensor")
    return loss


def described(value: object) -> str:
    """What it is, in words: a tensor's dtype and shape, or its type."""
    if isinstance(value, torch.Tensor):
        return f"a {str(value.dtype).removeprefix('torch.')} tensor of shape {tuple(value.shape)}"
    return f"{type(value).__name__}, not a torch tensor"
