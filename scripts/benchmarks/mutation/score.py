"""The mutation score: how many mistakes the check catches, and how many it blames on the right tensor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from benchmarks.mutation.executed import Executed
from benchmarks.mutation.mutants import Mutant
from benchmarks.mutation.subjects import Subject, Trial
from benchmarks.mutation.survivors import SURVIVORS
from nn_manual.arrays import DTYPES
from nn_manual.check.judge.report import GradientReport
from nn_manual.errors import NotFiniteError


class Verdict(NamedTuple):
    """What one trial said of a mutant: the first tensor that it called wrong, and whether the mistake made that one
    wrong.
    """

    words: str
    is_right: bool


@dataclass
class Score:
    """What became of the mutants of one class.

    Caught mutants failed in at least one trial. `misnamed` are caught mutants for which a trial blamed something else,
    with its words. `raised` are mutants that stopped with an error of their own before there was anything to compare.
    `survivors` passed and are proven to compute the same; `missed` passed without such a proof; `wrongly_proven` failed
    in spite of a proof.
    """

    owner: str
    num_caught: int = 0
    raised: list[Mutant] = field(default_factory=list)
    survivors: list[Mutant] = field(default_factory=list)
    missed: list[Mutant] = field(default_factory=list)
    misnamed: list[tuple[Mutant, str]] = field(default_factory=list)
    wrongly_proven: list[Mutant] = field(default_factory=list)

    @property
    def num_mutants(self) -> int:
        """All that ran."""
        return self.num_caught + len(self.survivors) + len(self.missed)

    @property
    def passed(self) -> bool:
        """Whether every mutant that is not proven to compute the same was caught and named right."""
        return not (self.missed or self.misnamed or self.wrongly_proven)

    def add(self, mutant: Mutant, subject: Subject, executed: Executed | None, *, only_first: bool) -> None:
        """Put a mutant through the trials of its class, in both dtypes, and count it."""
        results = []
        for dtype in DTYPES:
            for result in _results(mutant, subject, dtype, executed, backwards=only_first and dtype == "float64"):
                results.append(result)
                if only_first and isinstance(result, Verdict):
                    break
        verdicts = [result for result in results if isinstance(result, Verdict)]
        proven = (f"{self.owner}.{mutant.method}", mutant.line, mutant.mutated) in SURVIVORS
        if verdicts:
            self.num_caught += 1
            wrong = [found.words for found in verdicts if not found.is_right]
            if wrong:
                self.misnamed.append((mutant, wrong[0]))
            if proven:
                self.wrongly_proven.append(mutant)
        elif any(isinstance(result, Exception) for result in results):
            self.raised.append(mutant)
        else:
            (self.survivors if proven else self.missed).append(mutant)


def score(
    subject: Subject, mutants: Iterable[Mutant], executed: Executed | None = None, *, only_first: bool = False
) -> Score:
    """Put mutants of one class through its trials, with `executed` without those that don't run the mistake. With
    `only_first`, a mutant needs no more of a dtype once it has failed there: in float32 the class alone comes first, in
    float64 the class in a net.
    """
    result = Score(subject.owner.__name__)
    # A mistake may overflow or divide by zero; only what the check says counts.
    with np.errstate(all="ignore"):
        for mutant in mutants:
            result.add(mutant, subject, executed, only_first=only_first)
    return result


def _results(
    mutant: Mutant, subject: Subject, dtype: str, executed: Executed | None, *, backwards: bool
) -> Iterator[Verdict | Exception | None]:
    """What each trial says, up to the first that can't be made: parameters may begin as a method says."""
    try:
        trials: Iterable[tuple[int, Trial]] = enumerate(subject.trials(mutant.changed, dtype))
        for number, trial in reversed([*trials]) if backwards else trials:
            if executed is None or executed.runs(mutant, dtype, number):
                yield verdict(mutant, trial)
    except Exception as error:  # whatever the mutant raises
        yield error


def verdict(mutant: Mutant, trial: Trial) -> Verdict | Exception | None:
    """What a trial says: a verdict; or the mutant's own error, if it raised one for which the check has no words; or
    None if it passed.
    """
    try:
        failure = next((case.failure for case in trial.cases if case.failure is not None), None)
    except NotFiniteError as error:
        words = str(error)
        named = any(f"{trial.prefix}{tensor} of {trial.label} " in words for tensor in mutant.tensors)
        # The next step finds what an unchecked step has done to a parameter.
        return Verdict(words, named or (trial.label == "optimizer" and words.endswith("before the step")))
    except Exception as error:  # whatever the mutant raises
        notes = getattr(error, "__notes__", [])
        return Verdict(notes[0], f"raised by {mutant.owner.__name__}." in notes[0]) if notes else error
    return None if failure is None else _of_report(failure, mutant, trial)


def _of_report(failure: GradientReport, mutant: Mutant, trial: Trial) -> Verdict:
    if failure.problem is not None:
        return Verdict(failure.problem, failure.problem.startswith(trial.label))
    first = failure.failures[0]
    names = {f"{trial.prefix}{tensor}" for tensor in mutant.tensors} | (mutant.tensors & {"loss"})
    is_right = first.layer == trial.label and any(first.name.startswith(name) for name in names)
    return Verdict(f"{first.layer}: {first.name}", is_right)
