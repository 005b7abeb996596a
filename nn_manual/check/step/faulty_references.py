"""What is wrong with a reference that raised something, or returned what isn't like our tensor, in words."""

from __future__ import annotations

import torch

from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.check.step.calls import LayerCalls
from nn_manual.check.step.places import place_of_error
from nn_manual.check.twin.layers import Counterpart
from nn_manual.errors import first_words_of


def of_raised(calls: LayerCalls, counterpart: Counterpart, error: BaseException) -> CannotCompare:
    """A layer's reference raised this error."""
    words = f"{first_words_of(error)}{place_of_error(calls.layer, error)}{counterpart.advice}"
    return CannotCompare(f"{calls.label}: {counterpart.name} raised {words}")


def of_unlike(output: object, ours: torch.Tensor, calls: LayerCalls, counterpart: Counterpart) -> CannotCompare:
    """A layer's reference returned this `output`, which isn't a tensor like ours."""
    words = f"{counterpart.name} returned {described(output)}, forward {described(ours)}{counterpart.advice}"
    return CannotCompare(f"{calls.label}: {words}")


def of_cut_off(calls: LayerCalls, counterpart: Counterpart, *, wrote: bool) -> CannotCompare:
    """A layer's reference `wrote` into its input, or else its output doesn't lead back to the input."""
    label, name = calls.label, counterpart.name
    if wrote:
        return CannotCompare(f"{label}: {name} writes into its input")
    return CannotCompare(
        f"{label}: {name} returned a tensor that autograd can't follow back to the input: "
        "it was detached, or made without torch"
    )


def described(value: object) -> str:
    """What it is, in words: a tensor's dtype and shape, or its type."""
    if isinstance(value, torch.Tensor):
        return f"a {str(value.dtype).removeprefix('torch.')} tensor of shape {tuple(value.shape)}"
    return f"{type(value).__name__}, not a torch tensor"
