"""Checked steps, kept as they are made and proven together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nn_manual.arrays import Array, Shape
from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.check.compare.worst import Differences
from nn_manual.check.judge.report import mismatch_for
from nn_manual.check.judge.step_check import StepCheck
from nn_manual.check.many_steps.one_layer import CannotStack
from nn_manual.check.many_steps.ring import Copy
from nn_manual.check.many_steps.step_group import StepGroup
from nn_manual.check.many_steps.step_groups import StepGroups
from nn_manual.check.many_steps.waiting import Waiting
from nn_manual.check.step.recording import Recording
from nn_manual.check.step.structure import check_structure
from nn_manual.check.twin.model import threads_for
from nn_manual.check.twin.optimizers import state_of
from nn_manual.errors import GradientMismatch, NotFiniteError
from nn_manual.step.watch import Watch

if TYPE_CHECKING:
    from nn_manual.check.whole_step.checker import GradientChecker


class Prover:
    """Proves the steps of a GradientChecker, many at a time, later than they are made.

        with prover.recording(input):
            ... the step ...
        check = prover.compare()       # proven now, or when `flush` is called or the ring is full

    The first step of each shape is proven at once, by the checker alone: it finds what a batched proof takes for
    granted. Its figures are those of a batched proof all the same: which step comes first depends on where a run was
    interrupted. Where a batched proof finds a difference in a step, the checker compares that step again, from what was
    kept of it: so its verdict never depends on the steps beside it. What torch.vmap makes of a function isn't taken on
    trust: in the 1st, 2nd, 4th, 8th, ... batched proof the checker looks at the last step, too, though nothing differs,
    and at small parts of its tensors at their own scales. What is wrong there is raised like any mismatch. All steps
    that wait take up to `memory` bytes; without any, each step is proven at once. On how many threads a group is proven
    is `threads`, or else found by timing the first ones.
    """

    #: The layers and the loss are watched from outside.
    watch = Watch()

    def __init__(self, checker: GradientChecker, memory: int, threads: int | None = None) -> None:
        self.checker = checker
        self.groups = StepGroups(checker, memory, threads)
        self._group: StepGroup | None = None
        self._waiting = Waiting(checker)
        #: The numbers of the steps that aren't proven yet; always this very list.
        self.numbers = self._waiting.numbers
        #: The shape of the last step, and how many of this shape there were since `begin`: that many rows are taken.
        self._shape: Shape | None = None
        self._count = 0

    def room(self, input_shape: Shape) -> int:
        """How many steps on inputs of this shape may run next unwatched, in the way of the one that is recorded. After
        them one must be recorded.
        """
        group = self._group
        if group is None or group is not self.groups.of(input_shape) or self._shape != input_shape:
            return 0
        ring = group.ring
        return ring.num_steps - 1 - self._count % ring.num_steps if group.proves_updates else 0

    def copies(self) -> tuple[list[Copy], list[Copy]]:
        """What must be copied before and after each of these steps."""
        assert self._group is not None  # there is room
        assert self.checker.update is not None  # a trainer's checker has one
        self.checker.update.check_unchanged()
        return self._group.ring.copies(self._count % self._group.ring.num_steps, self.checker.recorded)

    def keep(self, given: Mapping[str, Array], losses: Array) -> list[StepCheck]:
        """The checks of steps that have just run unwatched, and of which `copies` were made. `given` is by name what
        they were given, (steps, ...), and more.
        """
        assert self._group is not None  # there was room
        group, count = self._group, len(losses)
        i = self._count % group.ring.num_steps
        group.ring.keep(i, given, losses)
        self._count += count
        checks = [StepCheck(group.plan) for _ in losses]
        self._waiting.add(i, checks, group.ring.numbers[i : i + count], None)
        return checks

    def begin(self, count: int, num_steps: int) -> None:
        """Begin an epoch after `count` of the `num_steps` steps in it that are checked. The last bit that torch finds
        of a step may depend on its row in the ring. So its place in the epoch decides the row, in a run that goes on,
        too.
        """
        self.flush()
        self.groups.begin(num_steps)
        self._shape, self._group, self._count = None, None, count

    @contextmanager
    def recording(self, input: Array) -> Iterator[Recording]:
        """The context in which the step on `input` must run."""
        group = self.groups.of(input.shape)
        if group is not self._group:
            self.flush()
            self._group = group
        if self._shape is not None and self._shape != input.shape:
            self._count = 0
        self._shape = input.shape
        if group is None:
            with self.checker.recording() as recorded:
                yield recorded
        else:
            i = self._count % group.ring.num_steps
            assert self.checker.update is not None  # a trainer's checker has one
            self.checker.update.check_unchanged()
            group.ring.start(i, state_of(group.optimizer), group.optimizer.num_steps)
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
            assert self._shape is not None  # of the input that was recorded
            check = self.groups.compare_first(self._shape, self._count)
            self._count += 1
            return check
        group, recorded, i = self._group, self.checker.recorded, self._count % self._group.ring.num_steps
        try:
            if not group.glance.shows_nothing():
                check_structure(recorded, group.plan)
        except CannotCompare as problem:
            self._flush_before(group, i)
            raise mismatch_for(str(problem)) from None
        if not group.ring.end(i, recorded):  # it has another form than the first: the checker says what is wrong
            self._flush_before(group, i)
            return self.checker.compare()
        try:
            updated = None if group.proves_updates else self._update_of(group, i)
        except (GradientMismatch, NotFiniteError):
            self._flush_before(group, i)
            self.checker.compare()  # what is wrong before the update comes first
            raise
        check = StepCheck(group.plan)
        self._count += 1
        self._waiting.add(i, [check], [self.checker.model.num_steps], updated)
        if i == group.ring.num_steps - 1:
            self.flush()
        return check

    def skip(self) -> None:
        """The step just made has no loss and nothing to compare. Its row stays empty. Raises what the checker's `skip`
        does, and first what it finds of the steps that wait.
        """
        try:
            self.checker.skip()
        finally:
            self.flush()  # the rows of steps that wait follow each other
        self._count += 1

    def _update_of(self, group: StepGroup, i: int) -> Differences:
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

    def _flush_before(self, group: StepGroup, i: int) -> None:
        """Prove the steps before the `i`-th. That one has just been made, and the checker will judge it, from where it
        started: what is wrong in a step before it comes first.
        """
        update, num_updates = self.checker.update, group.ring.num_updates[i]
        assert update is not None  # a trainer's checker has one
        start = group.ring.before.map(lambda rows: rows[i].copy())  # a proof pads the ring from here on
        self.flush()
        update.num_steps = num_updates
        for vector, values in zip(update.start.all, start.all, strict=True):
            vector[...] = values

    def drop(self) -> None:
        """Forget the steps that wait: what they made is given up."""
        self._waiting.drop()

    def flush(self) -> None:
        """Prove the steps that wait, in their order. Raises what the checker's `compare` does, for the first of them
        that is wrong: the model, the optimizer and the checker are then as they were after that step.
        """
        if not self.numbers:
            return
        group = self._group
        assert group is not None  # where the steps wait
        try:
            self._waiting.prove(group)
        except CannotStack as problem:
            self.drop()
            self.groups.give_up(problem, group.ring.given("input").shape[1:])
            self._group = None
        except Exception:  # what comes after a wrong step is never proven; after an interruption all is
            self.drop()
            raise
