"""Our arrays beside torch's, each under its name in the plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.plan import Plan, Quantity
from nn_manual.check.recording import Recording
from nn_manual.check.reference import Reference
from nn_manual.check.structure import CannotCompare
from nn_manual.model import Sequential


class Pair(NamedTuple):
    """One tensor of the step and what torch has in its place."""

    quantity: Quantity
    ours: Array
    reference: torch.Tensor


def pairs(plan: Plan, model: Sequential, recorded: Recording, reference: Reference) -> list[Pair]:
    """Every tensor of forward and backward, exactly once, in the plan's order. CannotCompare where shapes differ."""
    both = [*_forward(recorded, reference), *_backward(plan, model, recorded, reference)]
    result = []
    for quantity, (ours, theirs) in zip([*plan.forward, *plan.backward], both, strict=True):
        if ours.shape != theirs.shape:
            raise CannotCompare(
                f"{quantity.layer}: {quantity.name} has shape {ours.shape}, torch's has {tuple(theirs.shape)}"
            )
        result.append(Pair(quantity, ours, theirs))
    return result


Both = tuple[Array, torch.Tensor]


def _forward(recorded: Recording, reference: Reference) -> Iterator[Both]:
    for calls, output in zip(recorded.layers, reference.outputs, strict=True):
        assert calls.output is not None
        yield calls.output, output
    yield np.asarray(recorded.loss.value), reference.loss


def _backward(plan: Plan, model: Sequential, recorded: Recording, reference: Reference) -> Iterator[Both]:
    assert recorded.loss.grad_prediction is not None
    yield recorded.loss.grad_prediction, reference.boundaries[-1]
    if reference.target is not None:
        yield recorded.loss.grad_target(), reference.target
    grads = vars(model.grad)
    for i in reversed(range(len(recorded.layers))):
        for name in plan.parameters[i]:
            yield grads[name], reference.parameters[name]
        if i >= plan.first_grad_input:
            grad_input = recorded.layers[i].grad_input
            assert grad_input is not None
            yield grad_input, reference.boundaries[i - plan.first_grad_input]
