"""The report of check_function: the comparison of the values, and the rows of the battery."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from nn_manual.check.compare.comparison import Comparison
from nn_manual.check.judge.report import GradientReport
from nn_manual.check.judge.tensor_table import WRONG
from nn_manual.messages import notebook
from nn_manual.messages.text import WIDTH, counted, one_line, wrapped

#: The family of rows at the full size; and reasons for which a row is skipped: `skip` names it, or it met the same
#: error as the comparison of the values.
FULL_SIZE, AS_ASKED, AS_ABOVE = "full size", "as asked for", "the same error as above"
#: Another reason, for a pair and a class: in such rows autograd asks for some gradients alone, gives none for an
#: output, differentiates twice, or looks for changes of what was saved.
NOT_BY_AUTOGRAD = "autograd doesn't run it"

#: The family of rows of what a function writes into.
WRITES = "writes"
#: What is said of a function without a reference.
OF_ITSELF = "compared with differences of its own forward in float64: only that forward and backward fit was shown"

#: Notes that are equal but for these say the same; from so many on, the first one is shown alone.
NUMBER, NUM_ALIKE = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?"), 3


@dataclass(frozen=True)
class BatteryRow:
    """One row of the battery: its family, its variant within it, a verdict, "right", "WRONG" or "skipped", and why."""

    family: str
    variant: str
    verdict: str
    note: str = ""

    @property
    def name(self) -> str:
        """Family and variant. In `skip`, this name skips this row alone; the family's name skips all of its rows."""
        return f"{self.family} {self.variant}".rstrip()


class _Line(NamedTuple):
    """What is said of rows of one family with the same verdict: their variants, and their notes. Rows that met the same
    error as the values, and those that nobody wanted, have neither family nor verdict here.
    """

    family: str
    verdict: str
    variants: str
    notes: str

    @property
    def told(self) -> str:
        """What stands beside family and verdict."""
        return "; ".join(filter(None, (self.variants, self.notes)))

    @property
    def words(self) -> str:
        """The line without its family, for a terminal."""
        if self.verdict in ("right", ""):
            return self.told or self.verdict
        return f"{self.variants} {self.verdict}: {self.notes}".lstrip()


@dataclass(frozen=True, repr=False)
class FunctionReport(GradientReport):
    """A GradientReport about a function's values on its inputs, and the `rows` of the battery. `habits` has a sentence
    for each thing that it wrote into, and must not write into: by "inputs", "saved", "grad_output" or "returned".
    `kinks` has one for each gradient that is another than the reference's, and as right as that, at a kink.
    `inputs_there` has the inputs' values where the first failure is worst. `not_judged` has a sentence for each tensor
    that can't be judged, or not everywhere.
    """

    rows: tuple[BatteryRow, ...] = ()
    habits: Mapping[str, str] = field(default_factory=dict)
    kinks: Mapping[str, str] = field(default_factory=dict)
    inputs_there: str = ""
    not_judged: tuple[str, ...] = ()

    @property
    def failures(self) -> tuple[Comparison, ...]:
        """The comparisons beyond the tolerance for which neither rounding nor a kink is an excuse."""
        return tuple(comparison for comparison in super().failures if comparison.name not in self.kinks)

    @property
    def wrong(self) -> tuple[BatteryRow, ...]:
        """The rows that the function failed."""
        return tuple(row for row in self.rows if row.verdict == WRONG)

    @property
    def skipped(self) -> tuple[BatteryRow, ...]:
        """The rows that say nothing about the function, each with the reason."""
        return tuple(row for row in self.rows if row.verdict == "skipped")

    @property
    def passed(self) -> bool:
        """Whether all values agree, none of them is vacuous, no row is wrong, and the full size was tried or skipped by
        `skip`.
        """
        return super().passed and not self.wrong and not self._untried

    @property
    def _untried(self) -> list[str]:
        """Why the full size couldn't be tried."""
        return [row.note for row in self.skipped if row.family == FULL_SIZE and row.note != AS_ASKED]

    def in_words(self) -> str:
        """The first difference, in one line."""
        first = self.failures[0]
        index = f"[{', '.join(map(str, first.index))}]" if first.index else ""
        short, exact = ([f"{value:{form}}" for value in (first.ours, first.reference)] for form in (".6g", ".17g"))
        ours, reference = exact if short[0] == short[1] else short
        words = "the reference has" if first.origin == "torch has" else first.origin
        both = f"{ours}, {words} {reference}"
        values, diagnosis = f"{first.name}{index} is {both}", self.diagnosis.removesuffix(f"; worst {both}")
        there = self.inputs_there and f"there {self.inputs_there}"
        return "; ".join(filter(None, (values, there, "" if diagnosis == both else diagnosis)))

    def _headline(self) -> str:
        if self.problem is None and self.failures and not math.isfinite(self.failures[0].scale):
            first = self.failures[0]
            return f"gradient check failed: the reference is not finite in {first.name}, unlike {first.layer}"
        if self.wrong and super().passed:
            # Other rows follow from what is written into.
            first_row = next((row for row in self.wrong if row.family == WRITES), self.wrong[0])
            return f"gradient check failed: the values agree, {first_row.name} is wrong"
        if self._untried and super().passed:
            return f"gradient check failed: the values agree, not tried at the full size: {self._untried[0]}"
        headline = super()._headline()
        if self.passed and self.rows and len(self.skipped) == len(self.rows):
            headline += "; every row was skipped"
        return headline.replace("equal torch's", "fit its own forward") if OF_ITSELF in self.sources else headline

    def __str__(self) -> str:
        if not self.rows:
            return super().__str__()
        width = max(len(row.family) for row in self.rows)
        lines = [super().__str__(), "", *_indented("", self._numbers())]
        for line in self._lines():
            lines += _indented(f"{line.family:{width}}  " if line.family else "", line.words)
        return "\n".join(lines)

    def _beside(self) -> list[str]:
        return wrapped(f"there {self.inputs_there}") if self.inputs_there else []

    def _rows(self) -> list[tuple[str, ...]]:
        return [(*row[:-1], "kink") if row[0] in self.kinks else row for row in super()._rows()]

    def _parts(self) -> list[str]:
        parts = super()._parts()
        if self.rows:
            cells = ((line.family, line.verdict, line.told) for line in self._lines())
            rows = [notebook.Row(each, each[1] == WRONG) for each in cells]
            parts += [notebook.words(self._numbers()), notebook.table(("family", "", "rows"), rows, "<<<")]
        return parts

    def _numbers(self) -> str:
        """How many rows are right, wrong and skipped."""
        num_right = len(self.rows) - len(self.wrong) - len(self.skipped)
        others = ((len(self.wrong), "wrong"), (len(self.skipped), "skipped"))
        numbers = [f"{counted(num_right, 'row')} right", *(f"{count} {word}" for count, word in others if count)]
        known = list(dict.fromkeys(failure.name.partition(",")[0] for failure in self.failures))
        return ", ".join(numbers) + (f"; without {', '.join(known)}, wrong above" if known else "")

    def _lines(self) -> Iterator[_Line]:
        """What is said of the rows: first of those that are right, by family, then of what is skipped and wrong."""
        for family in dict.fromkeys(row.family for row in self.rows):
            right = [row for row in self.rows if row.family == family and row.verdict == "right"]
            if right:
                notes = "; ".join(row.note for row in right if row.note)
                words = _listed([row.variant or "right" for row in right])
                yield _Line(family, "right", "" if words == "right" else words, notes)
        same = [row for row in self.rows if row.note == AS_ABOVE]
        if same:
            where = ", ".join(dict.fromkeys(row.family for row in same))
            yield _Line("", "", "", f"{AS_ABOVE} in {counted(len(same), 'row')}: {where}")
        for reason in (AS_ASKED, NOT_BY_AUTOGRAD):
            left_out = [row for row in self.rows if row.note == reason]
            if left_out:
                others = {row.family for row in self.rows if row.note != reason}
                names = (f"{row.family} {row.variant}" if row.family in others else row.family for row in left_out)
                where = ", ".join(dict.fromkeys(name.rstrip() for name in names))
                yield _Line("", "", "", f"{counted(len(left_out), 'row')} skipped, {reason}: {where}")
        for verdict in ("skipped", WRONG):
            by_note: dict[tuple[str, str], list[str]] = {}
            for row in self.rows:
                if row.verdict == verdict and row.note not in (AS_ABOVE, AS_ASKED, NOT_BY_AUTOGRAD):
                    by_note.setdefault((row.family, row.note), []).append(row.variant)
            for family, note, variants in _shortened(by_note):
                yield _Line(family, verdict, _listed(variants), note)


def _shortened(by_note: Mapping[tuple[str, str], list[str]]) -> Iterator[tuple[str, str, list[str]]]:
    """Family, note and variants. Where the notes of a family differ in their numbers alone, the first says all; from
    NUM_ALIKE on, one line names the variants of the others: a mistake at odd lengths is wrong in twenty sizes.
    """
    alike: dict[tuple[str, str], list[tuple[str, list[str]]]] = {}
    for (family, note), variants in by_note.items():
        alike.setdefault((family, NUMBER.sub("#", note)), []).append((note, variants))
    for (family, _), notes in alike.items():
        num_whole = 1 if len(notes) >= NUM_ALIKE else len(notes)
        for note, variants in notes[:num_whole]:
            yield family, note, variants
        others = [variant for _, variants in notes[num_whole:] for variant in variants]
        if others:
            yield family, "the same, with other numbers", others


def _listed(variants: list[str]) -> str:
    """The variants, with commas between them. Two words that a variant shares with the one before it are left out:
    "float16 kinds tied, zero"; and so is the name of a dimension: "N=1, 2, 3".
    """
    sized = [re.fullmatch(r"(.*\b\w+=)(\d+)", variant) for variant in variants]
    if len(variants) > 1 and all(sized):
        before = [None, *(match[1] for match in sized if match)]
        both = zip(before, (match for match in sized if match), strict=False)
        return ", ".join(match[2] if match[1] == name else match[0] for name, match in both)
    words = [variant.split(" ", 2) for variant in variants]
    told = [[], *words]
    return ", ".join(
        own[2] if len(own) == len(before) == 3 and own[:2] == before[:2] else " ".join(own)
        for before, own in zip(told, words, strict=False)
    )


def _indented(start: str, text: str) -> list[str]:
    wrapper = textwrap.TextWrapper(WIDTH, start, " " * len(start), break_long_words=False, break_on_hyphens=False)
    return [one_line(line) for line in wrapper.wrap(text)]
