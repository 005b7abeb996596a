"""Every dtype, and the full size once in each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nn_manual.check.functions.battery.trial import Dtype, Run, Trial, Wrong, in_words
from nn_manual.check.functions.case import Case
from nn_manual.check.functions.judge import judge


def dtype(trial: Trial) -> Iterator[tuple[str, Run]]:
    """The other dtypes. 16 bits are judged by the distance to a reference in float64, against the reference's own."""
    for name in trial.dtypes[1:]:
        yield _called(name), lambda name=name: _agree(trial.like_case(name))  # type: ignore[misc] # a default


def full_size(trial: Trial) -> Iterator[tuple[str, Run]]:
    """The sizes that were asked for, where the other rows ran on smaller ones."""
    if not trial.is_whole:
        for name in trial.dtypes:
            yield _called(name), lambda name=name: _agree_in_full(trial, name)  # type: ignore[misc] # a default


def _called(name: Dtype | None) -> str:
    return "" if name is None else name if isinstance(name, str) else ", ".join(name)


def _agree_in_full(trial: Trial, name: Dtype | None) -> None:
    """With one upstream gradient, and without copies of what the function might write into: at the full size there may
    be no memory for them.
    """
    case = trial.at(trial.full_sizes, name)
    _agree(replace(case, watched=False, upstreams=case.upstreams[:1]))


def _agree(case: Case) -> None:
    report = judge(case)
    if not report.agrees:
        raise Wrong(in_words(report))
