"""What a check found, and how it is reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from nn_manual.check.compare.comparison import CannotCompare, Comparison, Pair, compare
from nn_manual.check.judge.tensor_table import cells_of, in_notebook, in_terminal, worst_place
from nn_manual.errors import GradientMismatch
from nn_manual.messages import notebook
from nn_manual.messages.text import one_line, wrapped

#: What stands above the comparisons that prove nothing.
VACUOUS = "vacuous, a wrong formula would have agreed, too:"


@dataclass(frozen=True)
class GradientReport:
    """Every tensor that was compared, in the order in which a mistake would spread, or why nothing could be.

    A part of a tensor that is wrong at its own scale is listed after the tensors. `problem` says why a step can't be
    compared at all (a layer that was never run, a shape that doesn't fit): its first line begins with the layer or part
    that is to blame. `rounding` holds the names of tensors that are beyond the tolerance by rounding alone: the judge
    found their formulas right. `vacuous` has a sentence for each comparison that agrees and proves nothing; `diagnosis`
    says what the first failure looks like; `sources` has a sentence for each layer that is compared with something else
    than torch's, and `without_reference` names those whose forward is compared with nothing else. `not_finite` says
    which tensor isn't finite though its formula is right: the step is too large; or which can't be judged, because its
    reference isn't finite. str() is the table, 80 columns wide.
    """

    comparisons: tuple[Comparison, ...]
    problem: str | None = None
    rounding: frozenset[str] = frozenset()
    vacuous: tuple[str, ...] = ()
    diagnosis: str = ""
    sources: tuple[str, ...] = ()
    not_finite: str | None = None
    without_reference: tuple[str, ...] = ()

    @property
    def failures(self) -> tuple[Comparison, ...]:
        """The comparisons beyond the tolerance for which rounding is no excuse; the first is where it began."""
        return tuple(c for c in self.comparisons if not c.passed and c.name not in self.rounding)

    @property
    def agrees(self) -> bool:
        """Whether everything could be compared and equals torch's."""
        return self.problem is None and not self.failures

    @property
    def passed(self) -> bool:
        """Whether everything agrees, and would not have done so with a wrong formula."""
        return self.agrees and not self.vacuous

    @property
    def worst(self) -> Comparison | None:
        """The comparison nearest to its tolerance, or furthest beyond it."""
        return max(self.comparisons, key=_severity_of, default=None)

    def __repr__(self) -> str:
        """What it says, in short: the whole is str()."""
        return f"<{type(self).__name__}: {one_line(self._headline())}>"

    def __str__(self) -> str:
        lines = [*wrapped(self._headline()), ""]
        if self.comparisons:
            lines += in_terminal(self._rows())
        for failure in self.failures[:1]:
            lines += ["", *worst_place(failure), *self._beside()]
        lines += [line for text in self.diagnosis.splitlines() for line in wrapped(text)]
        if self.sources:
            lines += ["", *(line for text in self.sources for line in wrapped(text))]
        if self.vacuous:
            lines += ["", VACUOUS]
            lines += [line for text in self.vacuous for line in wrapped(text)]
        return "\n".join(map(one_line, lines)).rstrip()

    def _headline(self) -> str:
        if self.problem is not None:
            return f"gradient check failed: {self.problem}"
        if self.not_finite is not None:
            return f"gradient check failed: {self.not_finite}"
        if self.failures:
            first = self.failures[0]
            return f"gradient check failed: wrong first in {first.layer}: {first.name}"
        if self.vacuous:
            return f"gradient check failed: it proves nothing about {self.vacuous[0]}"
        # What is beyond its tolerance by rounding would frighten a reader here: its row says what it is.
        worst = max((c for c in self.comparisons if c.name not in self.rounding), key=_severity_of, default=None)
        words = f"{len(self.comparisons)} tensors equal torch's"
        if self.without_reference:
            has, its = ("has", "its") if len(self.without_reference) == 1 else ("have", "their")
            words = f"{len(self.comparisons)} tensors agree; {' and '.join(self.without_reference)} {has} no "
            words += f"reference: {its} gradients are proven, {its} forward isn't"
        return words + (f"; worst {worst.relative:.1e} of the norm in {worst.name}" if worst else "")

    def _beside(self) -> list[str]:
        """What is said right below the worst place."""
        return []

    def _rows(self) -> list[tuple[str, ...]]:
        """Behind the first wrong tensor none is called rounding: it may be made of what is wrong."""
        failures = self.failures
        num_before = self.comparisons.index(failures[0]) if failures else len(self.comparisons)
        excused = (index < num_before and c.name in self.rounding for index, c in enumerate(self.comparisons))
        return [cells_of(c, is_rounding=each) for c, each in zip(self.comparisons, excused, strict=True)]

    def _repr_html_(self) -> str:
        """The same in a notebook."""
        return notebook.page(*self._parts())

    def _parts(self) -> list[str]:
        """What a notebook shows, from the verdict on."""
        parts = [notebook.verdict(self._headline(), is_wrong=not self.passed)]
        if self.comparisons:
            parts.append(in_notebook(self._rows()))
        parts += [notebook.lines([*worst_place(failure), *self._beside()]) for failure in self.failures[:1]]
        parts += map(notebook.words, (*self.diagnosis.splitlines(), *self.sources))
        if self.vacuous:
            parts += map(notebook.words, (VACUOUS, *self.vacuous))
        return parts


def report_of(pairs: Iterable[Pair], rounding: frozenset[str] = frozenset(), diagnosis: str = "") -> GradientReport:
    """The report on these pairs alone."""
    return GradientReport(tuple(compare(*pair) for pair in pairs), rounding=rounding, diagnosis=diagnosis)


def in_float64_instead(report: GradientReport, in_double: Sequence[Pair], wrong: Sequence[Pair]) -> GradientReport:
    """The report on the pairs of float64, in which the formulas of those that are `wrong` are wrong."""
    right = {pair.quantity.name for pair in in_double} - {pair.quantity.name for pair in wrong}
    return replace(report, comparisons=tuple(compare(*pair) for pair in in_double), rounding=frozenset(right))


def mismatch_of(report: GradientReport) -> GradientMismatch:
    """What to raise for a step with a wrong value, or one that can't be compared. No other place makes this error."""
    return GradientMismatch(report)


def mismatch_for(problem: str) -> GradientMismatch:
    """What to raise for a step that can't be compared, and why."""
    return mismatch_of(GradientReport((), problem=problem))


@contextmanager
def comparing() -> Iterator[None]:
    """The context in which a step is compared: what can't be compared is a GradientMismatch."""
    try:
        yield
    except CannotCompare as problem:
        raise mismatch_for(str(problem)) from None


def _severity_of(comparison: Comparison) -> float:
    return comparison.severity
