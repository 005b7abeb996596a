"""The rows of what a function must not write into."""

from __future__ import annotations

from collections.abc import Iterator

from nn_manual.functions.battery.trial import Run, Trial, Wrong
from nn_manual.functions.watched_runs import HABITS
from nn_manual.functions.writing_line import writer_of


def writes(trial: Trial) -> Iterator[tuple[str, Run]]:
    """What the comparison of the values has seen: the function wrote into its inputs, into what forward saved, into the
    gradient of its output, or into what it returned before. All values were judged with what stood there before, so
    `skip` may accept the habit.
    """
    for habit in HABITS:
        yield habit, lambda habit=habit: _written(trial, habit)  # type: ignore[misc] # a default


def _written(trial: Trial, habit: str) -> None:
    if habit in trial.habits:
        raise Wrong(f"{trial.habits[habit]}{writer_of(trial.case, habit)}")
