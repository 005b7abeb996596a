"""A recorded step beside torch's: each tensor under its name in the plan, with what torch has in its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from nn_manual.arrays import Array, Shape
from nn_manual.check.compare.comparison import CannotCompare, Pair
from nn_manual.check.step.calls import LayerCalls
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.recording import Recording
from nn_manual.check.step.reference import Move, differentiate
from nn_manual.check.step.structure import check_structure
from nn_manual.check.step.tree import Item
from nn_manual.check.twin.by_differences import Finding
from nn_manual.check.twin.model import Twin, reference_settings
from nn_manual.errors import raise_if_nobodys_fault, words_of


class Proof(NamedTuple):
    """A step and all that its verdict needs.

    `plan` says what had to be computed, `recorded` what was, from the parameters `param`. `pairs` are the tensors to
    compare, in the plan's order. `findings` says what differences found about gradients, by name.
    """

    plan: Plan
    recorded: Recording
    param: Array
    pairs: list[Pair]
    findings: Mapping[str, Finding]

    @property
    def input_shape(self) -> Shape:
        """That of the model's input."""
        assert self.recorded.first.input is not None  # the step has a plan
        return self.recorded.first.input.shape


def prove(twin: Twin, recorded: Recording, plan: Plan, *, own_memory: bool = False) -> Proof:
    """The recorded step beside torch's, which starts at the twin's parameters. `own_memory` says that torch computes in
    memory of its own throughout, which takes longer: what still shares ours would be compared with itself.

    Raises CannotCompare where the step isn't whole, where a tensor is empty, which would agree with anything, where
    shapes differ, and for a tensor that shares its reference's memory.
    """
    check_structure(recorded, plan)
    pairs, findings = beside_torch(twin, recorded, plan, torch.clone if own_memory else None)
    if own_memory:
        _check_memory(pairs)
    return Proof(plan, recorded, twin.param, pairs, findings)


def beside_torch(
    twin: Twin,
    recorded: Recording,
    plan: Plan,
    move: Move | None = None,
    move_grad: Move | None = None,
    *,
    our_grads: bool = False,
) -> tuple[list[Pair], dict[str, Finding]]:
    """Every tensor of forward and backward, exactly once, in the plan's order, with torch's. torch computes in the
    dtype of the twin, at our activations, and with `our_grads` at our gradients, too. Values go through `move` first,
    gradients through `move_grad`. The second result says what differences found about gradients, by name. Raises
    CannotCompare, as `prove` does for a step that is whole.
    """
    with reference_settings():
        reference = differentiate(twin, recorded, plan, twin.param.dtype, move, move_grad, our_grads=our_grads)
    ours = sources_of(plan, recorded)
    result = []
    for quantity in (*plan.forward, *plan.backward):
        array, theirs = ours[quantity.name](), reference.values[quantity.name]
        if array.shape != theirs.shape:
            raise CannotCompare(
                f"{quantity.layer}: {quantity.name} has shape {array.shape}, torch's has {tuple(theirs.shape)}"
            )
        if not array.size:
            raise CannotCompare(f"{quantity.layer}: {quantity.name} is empty, shape {array.shape}: nothing to compare")
        result.append(Pair(quantity, array, theirs))
    return result, reference.findings


def _check_memory(pairs: list[Pair]) -> None:
    for quantity, ours, reference, _ in pairs:
        if np.may_share_memory(ours, reference.numpy()):
            raise CannotCompare(f"{quantity.layer}: {quantity.name} is compared with itself: torch's shares its memory")


def ours_of(plan: Plan, recorded: Recording) -> dict[str, Any]:
    """What the step computed, by the names in the plan; more than the plan asks for."""
    return {name: source() for name, source in sources_of(plan, recorded).items()}


def sources_of(plan: Plan, recorded: Recording) -> dict[str, Callable[[], Any]]:
    """Where to find what the last recorded step computed, by the names in the plan."""
    sources: dict[str, Callable[[], Any]] = {
        "loss": lambda: np.asarray(recorded.loss.value),
        "loss.grad_prediction": partial(getattr, recorded.loss, "grad_prediction"),
    }
    calls = {calls.item.name: calls for calls in recorded.layers}
    for item in plan.items:
        of_layer = calls[item.name]
        for name in ("output", "grad_input"):
            sources[f"{item.name}.{name}"] = partial(getattr, of_layer, name)
        for name in of_layer.grads:
            sources[f"{item.name}.grad_{name}"] = partial(_grad_of, of_layer, name)
        sources |= given_to_children(item, calls)
    for name, buffer in recorded.buffers.items():
        sources[name] = partial(buffer.astype, plan.dtype, copy=False)
    for name, (first, *_) in plan.sums.items():
        sources[name] = partial(recorded.grads.__getitem__, first)
    if plan.target_grad:
        sources["loss.grad_target"] = partial(_grad_target, recorded)
    return sources


def given_to_children(item: Item, calls: Mapping[str, LayerCalls]) -> dict[str, Callable[[], Any]]:
    """Where to find what a composite has given its children, by the names in the plan. `calls` are those of all layers,
    by their names.
    """
    sources: dict[str, Callable[[], Any]] = {}
    for name, children in item.children.items():
        if children:
            sources[f"{name}.input"] = partial(getattr, calls[children[0].name], "input")
            sources[f"{name}.grad_output"] = partial(getattr, calls[children[-1].name], "grad_output")
    return sources


def _grad_of(calls: LayerCalls, name: str) -> Array:
    return calls.grads[name]


def _grad_target(recorded: Recording) -> Array:
    try:
        return recorded.loss.grad_target()
    except BaseException as error:  # a user's own loss may raise anything
        raise_if_nobodys_fault(error)
        raise CannotCompare(f"loss: backward_target raised {words_of(error)}") from error
