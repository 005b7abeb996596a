"""A recorded step beside torch's: each tensor under its name in the plan, with what torch has in its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.comparison import CannotCompare, Pair
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.recording import Recording
from nn_manual.check.step.reference import Move, Reference, differentiate
from nn_manual.check.step.structure import check_structure
from nn_manual.check.twin.differences import Finding
from nn_manual.check.twin.model import Twin


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
    twin: Twin, recorded: Recording, plan: Plan, move: Move | None = None, move_grad: Move | None = None
) -> tuple[list[Pair], dict[str, Finding]]:
    """Every tensor of forward and backward, exactly once, in the plan's order, with torch's. torch computes in the
    dtype of the twin. Values go through `move` before, gradients through `move_grad`. The second result says what
    differences found about gradients, by name. Raises CannotCompare, as `prove` does for a step that is whole.
    """
    reference = differentiate(twin, recorded, plan, twin.param.dtype, move, move_grad)
    both = [*_forward(recorded, reference), *_backward(plan, recorded, reference)]
    result = []
    for quantity, (ours, theirs) in zip([*plan.forward, *plan.backward], both, strict=True):
        if ours.shape != theirs.shape:
            raise CannotCompare(
                f"{quantity.layer}: {quantity.name} has shape {ours.shape}, torch's has {tuple(theirs.shape)}"
            )
        if not ours.size:
            raise CannotCompare(f"{quantity.layer}: {quantity.name} is empty, shape {ours.shape}: nothing to compare")
        result.append(Pair(quantity, ours, theirs))
    return result, reference.findings


def _check_memory(pairs: list[Pair]) -> None:
    for quantity, ours, reference in pairs:
        if np.may_share_memory(ours, reference.numpy()):
            raise CannotCompare(f"{quantity.layer}: {quantity.name} is compared with itself: torch's shares its memory")


Both = tuple[Array, torch.Tensor]


def _forward(recorded: Recording, reference: Reference) -> Iterator[Both]:
    for calls, output in zip(recorded.layers, reference.outputs, strict=True):
        assert calls.output is not None
        yield calls.output, output
    yield np.asarray(recorded.loss.value), reference.loss


def _backward(plan: Plan, recorded: Recording, reference: Reference) -> Iterator[Both]:
    assert recorded.loss.grad_prediction is not None
    yield recorded.loss.grad_prediction, reference.boundaries[-1]
    if reference.target is not None:
        yield _grad_target(recorded), reference.target
    for i in reversed(range(len(recorded.layers))):
        calls = recorded.layers[i]
        for name, grad in zip(plan.parameters[i], calls.grads.values(), strict=True):
            yield grad, reference.parameters[name]
        if i >= plan.first_grad_input:
            assert calls.grad_input is not None
            yield calls.grad_input, reference.boundaries[i - plan.first_grad_input]


def _grad_target(recorded: Recording) -> Array:
    try:
        return recorded.loss.grad_target()
    except Exception as error:  # a user's own loss may raise anything
        raise CannotCompare(f"loss: backward_target raised {type(error).__name__}: {error}") from error
