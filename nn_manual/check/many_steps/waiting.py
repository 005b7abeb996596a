"""Steps of one group that wait for their proof, in rows of its ring that follow each other."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from nn_manual.check.compare.worst import Differences, joined, within
from nn_manual.check.judge.report import GradientReport, mismatch_of
from nn_manual.check.judge.step_check import StepCheck
from nn_manual.check.many_steps.one_layer import CannotStack
from nn_manual.check.many_steps.step_group import StepGroup

if TYPE_CHECKING:
    from nn_manual.check.whole_step.checker import GradientChecker


class Waiting:
    """Takes steps in, and concludes what a batched proof finds of each. The checker compares those that differ, one by
    one.
    """

    def __init__(self, checker: GradientChecker) -> None:
        self.checker = checker
        #: The numbers of the steps; always this very list.
        self.numbers: list[int] = []
        #: Their checks; and for large models, what was found of clipping and of the update.
        self._checks: list[tuple[StepCheck, Differences | None]] = []
        #: The row of the first of them.
        self._first_row = 0
        #: How many groups were proven.
        self._num_proofs = 0

    def add(self, row: int, checks: Sequence[StepCheck], numbers: Sequence[int], updated: Differences | None) -> None:
        """Steps that are kept in the rows from this one on."""
        if not self._checks:
            self._first_row = row
        self._checks += [(check, updated) for check in checks]
        self.numbers += numbers

    def drop(self) -> None:
        """Forget them: what they made is given up."""
        self._checks = []
        self.numbers.clear()

    def prove(self, group: StepGroup) -> None:
        """Prove them, in their order. Raises what the checker's `compare` does for the first that is wrong; CannotStack
        where each had to be proven by itself.
        """
        if not self._checks:
            return
        first = self._first_row
        last = first + len(self._checks) - 1
        try:
            absolute, scale = group.found(first, last + 1)
            passed = np.all(within(absolute, scale, group.plan.tolerances[: absolute.shape[1]]), axis=1)
            wrong = self.look_again(group, last)
        except CannotStack:
            self._prove_each_alone(group)
            raise
        if wrong is not None:
            self._prove_each_alone(group)  # what is wrong before it comes first
            with group.past.restored(last):
                raise mismatch_of(wrong)
        for i in self._unproven():
            found = Differences(absolute[i - first], scale[i - first])
            self._conclude(group, i, found, passes=passed[i - first])
        self._num_proofs += 1
        self.drop()

    def _unproven(self) -> list[int]:
        """The rows of the steps that aren't proven: a proof that was interrupted has proven the others."""
        return [i for i, (check, _) in enumerate(self._checks, self._first_row) if not check.proven]

    def look_again(self, group: StepGroup, i: int) -> GradientReport | None:
        """Let the checker see the `i`-th step if that is due. Returns its report where it finds a mistake, of which the
        batched proof knows nothing. Raises CannotStack where it can't compare.
        """
        if self._num_proofs & (self._num_proofs + 1):
            return None
        with group.past.restored(i):
            report = self.checker.look_closely()
        if report.problem is not None:
            raise CannotStack(report.problem)
        return None if report.agrees else report

    def _prove_each_alone(self, group: StepGroup) -> None:
        """Let the checker compare the steps that wait, in their order."""
        for i in self._unproven():
            self.prove_alone(group, i)

    def _conclude(self, group: StepGroup, i: int, found: Differences, *, passes: bool) -> None:
        """The checker decides where a difference doesn't pass, and where it knows of zeros."""
        check, updated = self._checks[i - self._first_row]
        found = joined(found, updated) if updated else found
        shape = group.ring.given("input").shape[1:]
        update = self.checker.update
        assert update is not None  # a trainer's checker has one
        accepted: Differences | None = found
        if passes and shape not in self.checker.judge.zeros:
            self.checker.add_evidence(found)
        else:
            largest = functools.partial(group.largest_grad_output, i)
            accepted = self.checker.accept(group.plan, shape, found, largest)
        if accepted is None:
            self.prove_alone(group, i)
            return
        if group.proves_updates:
            if update.is_due:
                with group.past.restored(i):
                    update.compare_in_float64(group.plan.update, group.update_inputs(i))
            update.count()
        check.prove(accepted)

    def prove_alone(self, group: StepGroup, i: int) -> None:
        """Let the checker compare the `i`-th step, but clipping and the update only if they weren't when it was made.
        """
        check, updated = self._checks[i - self._first_row]
        with group.past.restored(i):
            again = self.checker.compare(updated)
            check.prove(again.found, again.not_judged)
