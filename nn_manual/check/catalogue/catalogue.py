"""The catalogue: every layer, loss, optimizer and schedule against torch, over inputs that are known to hide bugs.

An upstream gradient of ones hides most wrong backward passes, random inputs hide those at ties and kinks, and losses
near zero those of an eps. So each component meets each kind of input with each kind of upstream gradient.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nn_manual.arrays import DTYPES
from nn_manual.check.catalogue.cases import CaseResult
from nn_manual.check.catalogue.subjects import subjects_of
from nn_manual.check.judge.report import GradientReport
from nn_manual.defaults import is_of_package
from nn_manual.errors import DataError, NoReference, notes_of, raise_if_nobodys_fault, text_of, words_of
from nn_manual.layers import Layer
from nn_manual.losses import Loss
from nn_manual.messages.users_lines import place_in
from nn_manual.optim import Optimizer, Scheduler
from nn_manual.registry import components

#: Characters of a component with its settings, for which a row of 80 columns has room. More go on in the next line.
WIDEST = 38
#: What the problem of an entry says that has nothing to be compared with.
NOT_CHECKED = "can't be checked"


@dataclass(frozen=True)
class Entry:
    """What the catalogue found about one component in one dtype: its cases, up to the first that failed."""

    component: str
    dtype: str
    num_cases: int
    num_tensors: int
    worst: float
    failure: GradientReport | None
    last_case: str


@dataclass(frozen=True)
class CatalogueReport:
    """All entries. str() is a table with a row for each, 80 columns wide, and the first failure's report."""

    entries: tuple[Entry, ...]

    @property
    def passed(self) -> bool:
        """Whether every component agrees with torch in every case."""
        return all(entry.failure is None for entry in self.entries)

    def __str__(self) -> str:
        names = [textwrap.wrap(entry.component, WIDEST, subsequent_indent="  ") for entry in self.entries]
        width = max(len(line) for name in names for line in name)
        lines = [f"{'':{width}} dtype    cases  tensors     worst"]
        for entry, (*beginning, end) in zip(self.entries, names, strict=True):
            verdict = "ok" if entry.failure is None else "WRONG"
            counts = f"{entry.dtype} {entry.num_cases:6,} {entry.num_tensors:8,}"
            lines += [*beginning, f"{end:{width}} {counts}  {entry.worst:9.2%}  {verdict}"]
        lines += ["", "worst: the largest error, in percent of what is allowed"]
        num_tensors = sum(entry.num_tensors for entry in self.entries)
        num_wrong = sum(entry.failure is not None for entry in self.entries)
        lines += [f"{num_tensors:,} tensors compared with torch's, {num_wrong} of {len(self.entries)} rows wrong"]
        for entry in self.entries:
            if entry.failure is not None:
                lines += ["", f"{entry.component}, {entry.dtype}, {entry.last_case}:", str(entry.failure)]
                break
        return "\n".join(lines)


def catalogue(seed: int = 0) -> CatalogueReport:
    """Check every public layer, loss and optimizer, in float32 and float64, and every schedule, which has no dtype."""
    kinds = Layer, Loss, Optimizer, Scheduler
    return check_classes([own for kind in kinds for own in components(kind).values()], seed)


def check_classes(classes: Iterable[type[Any]], seed: int = 0) -> CatalogueReport:
    """Check the examples of these classes of components, each in its dtypes."""
    entries = [each for own in classes for each in _entries_of(own, seed)]
    return CatalogueReport(tuple(sorted(entries, key=lambda entry: entry.component)))


def _entries_of(own: type[Any], seed: int) -> Iterator[Entry]:
    try:
        subjects = [subject for dtype in DTYPES for subject in subjects_of(own, dtype, seed)]
    except BaseException as error:  # examples of the user's own may raise anything
        raise_if_nobodys_fault(error)
        words = f"{own.__name__}.examples raised {words_of(error)}{_place_in(own, error)}"
        yield _wrong(own.__name__, "float32", words)
        return
    for component, dtype, cases in subjects:
        yield row(component, dtype, cases, own)


def entry(component: str, dtype: str, cases: Iterable[CaseResult]) -> Entry:
    """Run the cases of a component up to the first that fails."""
    done = []
    for case in cases:
        done.append(case)
        if case.failure is not None:
            break
    failure = done[-1].failure
    # A zero input proves nothing about a weight's gradient, and is no failure. A tensor that no input proves is one.
    unproven = set(done[0].vacuous).intersection(*(case.vacuous for case in done))
    if failure is None and unproven:
        failure = GradientReport((), vacuous=tuple(sorted(unproven)))
    num_tensors, worst = sum(case.num_tensors for case in done), max(case.worst for case in done)
    return Entry(component, dtype, len(done), num_tensors, worst, failure, done[-1].description)


def row(component: str, dtype: str, cases: Iterable[CaseResult], own: type = object) -> Entry:
    """What `entry` returns. A component that raises has failed, and the others are checked all the same. Its class,
    `own`, says where the user's code lies.
    """
    try:
        return entry(component, dtype, cases)
    except (NoReference, DataError) as error:
        return _wrong(component, dtype, f"{component} {NOT_CHECKED}: {text_of(error)}")
    except BaseException as error:  # a component may raise anything
        raise_if_nobodys_fault(error)
        notes = "".join(f"; {note}" for note in notes_of(error))
        return _wrong(component, dtype, f"{component} raised {words_of(error)}{_place_in(own, error)}{notes}")


def _wrong(component: str, dtype: str, problem: str) -> Entry:
    return Entry(component, dtype, 1, 0, 0.0, GradientReport((), problem=problem), "the case that raised")


def _place_in(own: type[Any], error: BaseException) -> str:
    """` (file:line)` of the last line in the folder of a user's own class that ran before the error, or nothing."""
    file = getattr(sys.modules.get(own.__module__), "__file__", None)
    if file is None or is_of_package(own):
        return ""
    return place_in(Path(file).parent, error)
