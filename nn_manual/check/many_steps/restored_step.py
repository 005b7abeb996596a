"""A step that has passed, made present again: model, optimizer and checker as they were when it began."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from nn_manual.arrays import Array
from nn_manual.check.many_steps.ring import Ring
from nn_manual.check.step.proof import ours_of
from nn_manual.check.twin.optimizers import State, state_of
from nn_manual.errors import GradientMismatch, NotFiniteError

if TYPE_CHECKING:
    from nn_manual.check.whole_step.checker import GradientChecker

#: Makes a step of training again, on an input and a target.
Again: TypeAlias = Callable[[Array, Array], object]


class Past:
    """Goes back to steps that are kept in a ring."""

    def __init__(self, checker: GradientChecker, ring: Ring) -> None:
        assert checker.optimizer is not None  # a trainer's checker has one
        self.checker, self.model, self.optimizer, self.ring = checker, checker.model, checker.optimizer, ring

    @contextmanager
    def made_again(self, i: int, again: Again, end: State | None) -> Iterator[None]:
        """The context in which the checker has recorded the `i`-th step, which `again` makes: see `rewound`, and
        `overwrite` for `end`.
        """
        with self.rewound(i) as (input, target):
            try:
                with self.checker.recording():
                    again(input, target)
                self.overwrite(i, end)
                yield
            except GradientMismatch as mismatch:
                mismatch.batch = input, target
                raise

    @contextmanager
    def rewound(self, i: int) -> Iterator[tuple[Array, Array]]:
        """The context in which the `i`-th step is about to be made, on the input and target that it gives. It ends
        where it began, unless the step is wrong: then everything stays as it was after that step.
        """
        model, optimizer, ring = self.model, self.optimizer, self.ring
        buffers = {name: buffer.copy() for name, buffer in vars(model.buffer).items()}
        arrays = [model.param_arena, model.grad_arena, *model.ties.use_grads.values(), *optimizer.vectors.values()]
        present = [array.copy() for array in arrays]
        numbers = model.num_steps, optimizer.num_steps, [member.lr for member in optimizer.members]
        before = {name: ring.given_before(name)[i] for name in buffers}
        recorded = self.checker.recorded
        noisy = [calls.layer for calls in recorded.layers if hasattr(calls.layer, "noise")]
        noise = [layer.noise for layer in noisy]  # a step binds new ones
        calls = [vars(each) for each in (*recorded.layers, recorded.loss, recorded)]
        kept = [values.copy() for values in calls]
        self.present = state_of(optimizer).map(np.copy)
        self._go_to(before, ring.numbers[i], ring.num_updates[i], ring.lrs[i])
        for vector, rows in zip(state_of(optimizer).all, ring.before.all, strict=True):
            vector[...] = rows[i]
        is_wrong = False
        try:
            yield ring.given("input")[i].copy(), ring.given("target")[i].copy()
        except (GradientMismatch, NotFiniteError):
            is_wrong = True
            raise
        finally:
            if not is_wrong:
                for array, values in zip(arrays, present, strict=True):
                    array[...] = values
                self._go_to(buffers, *numbers)
                for layer, namespace in zip(noisy, noise, strict=True):
                    layer.noise = namespace
                for attributes, before_it in zip(calls, kept, strict=True):
                    attributes.update(before_it)

    def _go_to(self, buffers: dict[str, Array], number: int, num_updates: int, lrs: Sequence[float]) -> None:
        own = vars(self.model.buffer)
        for name, values in buffers.items():
            own[name][...] = values
        self.model.num_steps, self.optimizer.num_steps = number, num_updates
        for member, lr in zip(self.optimizer.members, lrs, strict=True):
            member.lr = lr

    def overwrite(self, i: int, end: State | None) -> None:
        """Put what the `i`-th step computed then in the place of what it has computed now. A step that depends on
        nothing else computes the same; but what is judged is what was computed then. `end` is where its update ended,
        if the ring doesn't say it and other steps were made since.
        """
        ring, recorded, own = self.ring, self.checker.recorded, vars(self.model.buffer)
        now = ours_of(ring.plan, recorded)
        for name, then in ring.tensors.items():
            if name == "loss":
                recorded.loss.value = then[i]
            elif name in own:
                own[name][...] = then[i]
            elif now[name].flags.writeable:
                now[name][...] = then[i]
            else:
                self._replace(now[name], then[i].copy())
        if ring.after is not None and ring.grad is not None:
            self.model.grad_arena[...] = ring.grad[i]
            end = ring.after.map(lambda rows: rows[i])
        for vector, values in zip(state_of(self.optimizer).all, (end or self.present).all, strict=True):
            vector[...] = values

    def _replace(self, array: Array, other: Array) -> None:
        """Let the recorded calls have received and returned another array: this one can't be written to."""
        for calls in (*self.checker.recorded.layers, self.checker.recorded.loss):
            for name, value in vars(calls).items():
                if value is array:
                    setattr(calls, name, other)
