"""How many steps can be proven together, found by one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from nn_manual.check.judge.report import comparing
from nn_manual.check.many_steps.one_layer import CannotStack
from nn_manual.check.many_steps.step_group import StepGroup
from nn_manual.check.step.structure import check_structure

if TYPE_CHECKING:
    from nn_manual.check.whole_step.checker import GradientChecker


class Capacity(NamedTuple):
    """The most steps that are proven together, and the bytes that they take. `reason` says why, where it is one."""

    num_steps: int
    num_bytes: int
    reason: str


def capacity(checker: GradientChecker, memory: int) -> Capacity:
    """How many steps like the one that `checker` has recorded can be proven together, in so many bytes of memory.
    Whether that step is right isn't asked. Raises GradientMismatch where something else ran than the model's layers.
    """
    with comparing():
        plan = checker.plan()
        check_structure(checker.recorded, plan)
    try:
        group = StepGroup(checker, plan, np.empty(memory, np.uint8))
        if group.keep_first(checker):
            group.found(0, 1)
    except CannotStack as problem:
        return Capacity(1, 0, str(problem))
    return Capacity(group.ring.num_steps, group.ring.num_steps * group.ring.num_bytes, "")
