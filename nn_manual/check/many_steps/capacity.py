"""How many steps can be proven together, found by one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nn_manual.check.judge.report import comparing
from nn_manual.check.many_steps.one_layer import CannotStack
from nn_manual.check.many_steps.ring_memory import RingMemory, proven_alone
from nn_manual.check.many_steps.step_group import StepGroup
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.proof import ours_of
from nn_manual.check.step.structure import check_structure

if TYPE_CHECKING:
    from nn_manual.check.whole_step.checker import GradientChecker


class Capacity(NamedTuple):
    """The most steps that are proven together, and the bytes that each of them takes. `reason` says why, where it is
    one: the bytes are then those of a step that is proven by itself.
    """

    num_steps: int
    of_each: int
    reason: str


def capacity(checker: GradientChecker, memory: int) -> Capacity:
    """How many steps like the one that `checker` has recorded can be proven together, in so many bytes of memory.
    Whether that step is right isn't asked. Raises GradientMismatch where something else ran than the model's layers.
    """
    with comparing():
        plan = checker.plan()
        check_structure(checker.recorded, plan)
    try:
        together = RingMemory(memory)
        together.most = 1
        group = StepGroup(checker, plan, together)
        if group.keep_first(checker):
            group.found(0, 1)
    except CannotStack as problem:
        return Capacity(1, _taken_alone(checker, plan), str(problem))
    return Capacity(group.ring.num_steps, group.ring.num_bytes, "")


def _taken_alone(checker: GradientChecker, plan: Plan) -> int:
    """The bytes that a step takes at the peak of its proof, with what torch needs to start from and to update it."""
    ours = ours_of(plan, checker.recorded)
    tensors = sum(ours[quantity.name].nbytes for quantity in (*plan.forward, *plan.backward))
    assert checker.optimizer is not None  # a trainer's checker has one
    vectors = sum(vector.nbytes for vector in checker.optimizer.vectors.values())
    return proven_alone(tensors, checker.model.param_arena.nbytes, vectors)
