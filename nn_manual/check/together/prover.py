"""Checked steps, kept as they are made and proven together."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.check.comparison import CannotCompare, Differences, joined, within
from nn_manual.check.step.recording import Recording
from nn_manual.check.step.structure import check_structure
from nn_manual.check.step.threads import threads_for
from nn_manual.check.together.group import Group
from nn_manual.check.together.past import Past
from nn_manual.check.together.stacked import CannotStack
from nn_manual.check.verdict.report import GradientReport, StepCheck
from nn_manual.errors import GradientMismatch, NotFiniteError

if TYPE_CHECKING:
    from nn_manual.check.checker import GradientChecker

#: Makes a step of training again, on an input and a target.
Again = Callable[[Array, Array], object]


class Prover:
    """Proves the steps of a GradientChecker, many at a time, later than they are made.

        with prover.recording(input):
            ... the step ...
        check = prover.compare()       # proven now, or when `flush` is called or the ring is full

    The first step of each shape is compared at once, by the checker alone, which finds what a batched proof takes for
    granted; then it waits, too. A step that differs together is compared again by the checker, from what was kept of
    it: so its verdict never depends on the steps beside it. `again` makes a step anew from what it started from.
    `memory`, in bytes, is that of all steps that wait; without any, each step is proven at once.
    """

    def __init__(self, checker: GradientChecker, again: Again, memory: int = 0) -> None:
        self.checker, self._again = checker, again
        self._memory = np.empty(memory, np.uint8)  # of pages that nobody writes to there is no cost
        self._groups: dict[Shape, Group] = {}
        self._group: Group | None = None
        #: The checks of these steps, and of large models what was found of clipping and of the update.
        self._waiting: list[tuple[StepCheck, Differences | None]] = []
        #: The numbers of the steps that aren't proven yet; always this very list.
        self.numbers: list[int] = []
        #: Why steps are proven one by one, where they are.
        self.reason = ""

    @property
    def num_waiting(self) -> int:
        """How many steps aren't proven yet."""
        return len(self._waiting)

    @contextmanager
    def recording(self, input: Array) -> Iterator[Recording]:
        """The context in which the step on `input` must run."""
        group = self._groups.get(input.shape)
        if group is not self._group:
            self.flush()
            self._group = group
        if group is None:
            with self.checker.recording() as recorded:
                yield recorded
        else:
            i = len(self._waiting)
            group.ring.start(i)
            try:
                with self.checker.watching() as recorded:
                    yield recorded
            except Exception:
                self._flush_before(group, i)
                raise

    def compare(self) -> StepCheck:
        """The check of the step just made, which may be proven later. Raises what the checker's `compare` does, for
        this step or one that waits.
        """
        if self._group is None:
            return self._first_of_group(self.checker.compare())
        group, recorded, i = self._group, self.checker.recorded, len(self._waiting)
        try:
            if not group.glance.shows_nothing():
                check_structure(recorded, group.plan)
        except CannotCompare as problem:
            self._flush_before(group, i)
            raise GradientMismatch(GradientReport((), problem=str(problem))) from None
        if not group.ring.end(i, recorded):  # it has another form than the first: the checker says what is wrong
            self._flush_before(group, i)
            return self.checker.compare()
        try:
            updated = None if group.proves_updates else self._update_of(group, i)
        except (GradientMismatch, NotFiniteError):
            self._flush_before(group, i)
            return self.checker.compare()
        check = StepCheck(group.plan)
        self._waiting.append((check, updated))
        self.numbers.append(self.checker.model.num_steps)
        if len(self._waiting) == group.ring.num_steps:
            self.flush()
        return check

    def _update_of(self, group: Group, i: int) -> Differences:
        """What the checker finds of clipping and of the update in the step just made, the `i`-th."""
        update, before = self.checker.update, group.ring.before
        assert update is not None
        start, update.start = update.start, before.map(lambda rows: rows[i])
        update.num_steps = group.ring.num_updates[i]
        try:
            with threads_for(group.plan.num_products):
                return self.checker.compare_update(group.plan)
        finally:
            update.start = start

    def _flush_before(self, group: Group, i: int) -> None:
        """Prove the steps before the `i`-th, which is the checker's to judge: what is wrong in them comes first."""
        self.flush()
        Past(self.checker, group.ring).anchor(i)

    def flush(self) -> None:
        """Prove the steps that wait, in their order. Raises what the checker's `compare` does, for the first of them
        that is wrong: the model, the optimizer and the checker are then as they were after that step.
        """
        waiting, group = self._waiting, self._group
        if not waiting:
            return
        assert group is not None  # where the steps wait
        self._waiting = []
        self.numbers.clear()
        try:
            absolute, scale = group.found(len(waiting))
        except CannotStack as problem:
            self.reason = str(problem)
            self._groups, self._group = {}, None
            for i, (check, _) in enumerate(waiting):
                self._prove_alone(group, i, check)
            return
        tolerances = group.plan.tolerances[: absolute.shape[1]]
        passed = np.all(within(absolute, scale, tolerances), axis=1)
        for i, (check, updated) in enumerate(waiting):
            found = Differences(absolute[i], scale[i])
            self._conclude(group, i, check, joined(found, updated) if updated else found, passes=passed[i])

    def _conclude(self, group: Group, i: int, check: StepCheck, found: Differences, *, passes: bool) -> None:
        """The checker decides where a difference doesn't pass, and where it knows of zeros."""
        shape = group.ring.given("input").shape[1:]
        if passes and shape not in self.checker.judge.zeros:
            self.checker.note_compared(found)
            check.prove(found)
            return
        accepted = self.checker.accept(group.plan, shape, found, functools.partial(group.largest_grad_output, i))
        if accepted is None:
            self._prove_alone(group, i, check)
        else:
            check.prove(accepted)

    def _prove_alone(self, group: Group, i: int, check: StepCheck) -> None:
        """Let the checker compare the `i`-th step, made again."""
        past = Past(self.checker, group.ring)
        with past.rewound(i) as (input, target):
            try:
                with self.checker.recording():
                    self._again(input, target)
                past.overwrite(i)
                again = self.checker.compare()
                check.prove(again.found, again.not_judged)
            except GradientMismatch as mismatch:
                mismatch.batch = input, target
                raise

    def _first_of_group(self, check: StepCheck) -> StepCheck:
        """Get ready for more steps like the one that the checker has just compared, and let it wait with them, if they
        can wait: what is said of a step then is the same in a run that went on from a checkpoint, where another step is
        the first one.
        """
        checker = self.checker
        input, update = checker.recorded.first.input, checker.update
        assert input is not None  # the step was compared
        assert update is not None  # a trainer's checker has an optimizer
        if input.shape in self._groups or self.reason or not self._memory.size:
            return check
        try:
            group = Group(checker, check.plan, self._memory)
        except CannotStack as problem:
            self.reason = str(problem)
            return check
        group.ring.start_from(0, update.start, update.num_steps)
        group.ring.end(0, checker.recorded)
        self._groups[input.shape] = self._group = group
        waiting = StepCheck(check.plan)
        self._waiting.append((waiting, None if group.proves_updates else _of_update(check)))
        return waiting


def _of_update(check: StepCheck) -> Differences:
    """What was found of clipping and of the update."""
    start = len(check.plan.forward) + len(check.plan.backward)
    rounding = check.rounding.intersection(check.tensors[start:])
    return Differences(check.absolute[start:], check.scale[start:], rounding)
