"""Schedules as exercises: the reader writes lr, momentum where the schedule moves it, and observe where it has one."""

from __future__ import annotations

import copy
import functools
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np

from nn_manual.check.catalogue.labels import label
from nn_manual.exercises.kinds.exercise import Case, Exercise, Results
from nn_manual.exercises.kinds.untouched import Untouched
from nn_manual.optim import Scheduler

SEED = 0
#: After so many epochs or steps at most: the longest of the examples changes there.
MOST_COUNTS = 700


class ScheduleExercise(Exercise):
    """`owner` is a class of schedules."""

    methods: ClassVar[tuple[str, ...]] = ("lr",)
    room: ClassVar[str] = "optim"

    def cases(self) -> list[Case]:
        """Each example, to its end and on."""
        found = []
        for index, schedule in enumerate(self.owner.examples()):
            run = functools.partial(self._run, index=index)
            found.append(Case(label(schedule), "one count after the other", run, {}, schedule))
        return found

    def _run(self, own: type[Scheduler], index: int) -> Results:
        schedule = copy.deepcopy(own.examples()[index])
        untouched = Untouched(schedule)
        num_counts = int(min(2 * schedule.duration + 20, schedule.last_count + 1, MOST_COUNTS))
        generator, lrs, momenta = np.random.default_rng(SEED), [], []
        for count in range(num_counts):
            with suppress(NotImplementedError):
                lrs.append(schedule.lr(0.1, count))
            with suppress(NotImplementedError):
                if schedule.moves_momentum:
                    momenta.append(schedule.momentum(0.9, count))
            # Multiples of powers of 2: some lie on a threshold, some just below.
            loss = generator.integers(1, 9) / 8 * 0.5 ** (count // 10) * (1 - 1e-9 * generator.integers(2))
            schedule.observe(loss)
        untouched.refuse_changes()
        return {name: _array(values) for name, values in (("lr", lrs), ("momentum", momenta)) if values}

    def wanted(self) -> str:
        """What the methods return."""
        if "momentum" in self.taken_out:
            return "Return the learning rate from lr, and the momentum from momentum, after so many epochs or steps."
        if "observe" in self.taken_out:
            return "Return the learning rate from lr, by what observe has noted of the validation losses."
        return self.asked_of("lr")

    def asked_of(self, method: str) -> str:
        """What a method returns, or notes."""
        if method == "observe":
            return "Note what lr needs of the validation loss."
        return f"Return the {'learning rate' if method == 'lr' else 'momentum'} after so many epochs or steps."


def _array(values: list[Any]) -> Any:
    """The numbers; or the first thing that a method has returned and is none: NumPy reads numbers in texts, too. Of an
    array, a row with it.
    """
    others = [value for value in values if not _is_number(value)]
    if not others:
        return np.array(values, np.float64)
    return others[0][np.newaxis] if isinstance(others[0], np.ndarray) else others[0]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) or (isinstance(value, np.ndarray) and value.ndim == 0)
