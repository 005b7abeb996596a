"""Which steps are proven together: a group for each shape of the input, made at the first step of that shape."""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING

from nn_manual.arrays import Shape
from nn_manual.check.compare.worst import Differences, joined
from nn_manual.check.judge.step_check import StepCheck
from nn_manual.check.many_steps.one_layer import CannotStack, NoRoom
from nn_manual.check.many_steps.ring_memory import RingMemory
from nn_manual.check.many_steps.step_group import StepGroup

if TYPE_CHECKING:
    from nn_manual.check.whole_step.checker import GradientChecker


class StepGroups:
    """The groups of a GradientChecker's steps, in `memory` bytes; without any, each step is proven by itself."""

    def __init__(self, checker: GradientChecker, memory: int, threads: int | None) -> None:
        self._checker, self._threads = checker, threads
        self._memory = RingMemory(memory)
        #: By the shape of the input; None for those whose steps are proven one by one.
        self._by_shape: dict[Shape, StepGroup | None] = {}
        #: Why steps are proven one by one, where there is memory; and whether a layer is the reason.
        self.reason, self.is_of_layer = "", False
        self._has_compared = False

    @property
    def most(self) -> int:
        """How many steps are proven together at most: 1 where they are proven one by one, 0 before the first."""
        sizes = (group.ring.num_steps for group in self._by_shape.values() if group)
        return max(sizes, default=int(self._has_compared))

    def begin(self, num_steps: int) -> None:
        """Up to so many steps wait at once from now on; none waits now."""
        if self._memory.most is None or num_steps > self._memory.most:
            self._memory.most = num_steps
            self._forget()

    def _forget(self) -> None:
        """Let each shape have a first step again."""
        self._by_shape = {shape: group for shape, group in self._by_shape.items() if group is None}

    def of(self, input_shape: Shape) -> StepGroup | None:
        """The group of the steps on inputs of this shape; None where the next one is proven by itself."""
        return self._by_shape.get(input_shape)

    def compare_first(self, shape: Shape, count: int) -> StepCheck:
        """The check of the step that the checker has just recorded, on an input of this shape: the first of its shape,
        or one that is proven by itself. `count` were made of this shape since the epoch began. Raises what the
        checker's `compare` does.
        """
        checker, self._has_compared = self._checker, True
        if shape in self._by_shape or self.is_of_layer or not self._memory.limit:
            return checker.compare()
        zeros = copy.deepcopy(checker.judge.zeros)
        check = checker.compare()
        taken = self._memory.num_bytes
        try:
            group = StepGroup(checker, check.plan, self._memory, self._threads)
            if self._memory.num_bytes > taken:  # the other groups have the old bytes
                self._forget()
            row = count % group.ring.num_steps
            found = self._found_of_first(group, check, row)
        except CannotStack as problem:
            self.give_up(problem, shape)
            return check
        self._by_shape[shape] = group if found else None
        if found is None:
            return check
        # The judge takes it for one of many, and knows what it knew before.
        alone, checker.judge.zeros = checker.judge.zeros, zeros
        accepted = checker.accept(check.plan, shape, found, functools.partial(group.largest_grad_output, row))
        if accepted is None:
            checker.judge.zeros = alone
            return check
        return StepCheck(check.plan, accepted, check.not_judged)

    def _found_of_first(self, group: StepGroup, check: StepCheck, row: int) -> Differences | None:
        """What a batched proof finds of the step that the checker has just compared, or None where the step has another
        form than the plan.
        """
        if not group.keep_first(self._checker, row):
            return None
        absolute, scale = (of_steps[0] for of_steps in group.found(row, row + 1))
        rest = slice(len(absolute), None)
        excused = check.rounding.intersection(check.plan.tensors[rest])
        return joined(Differences(absolute, scale), Differences(check.absolute[rest], check.scale[rest], excused))

    def give_up(self, problem: CannotStack, shape: Shape) -> None:
        """Prove each step on inputs of this shape by itself from now on; where a layer is the reason, each of any
        shape.
        """
        self.reason, self.is_of_layer = str(problem), not isinstance(problem, NoRoom)
        self._by_shape = {} if self.is_of_layer else {**self._by_shape, shape: None}
