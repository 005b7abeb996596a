"""Why a reader's gradient is wrong: which change of the right formula gives the same numbers on all inputs."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from nn_manual.errors import is_from_outside, raise_if_nobodys_fault
from nn_manual.exercises.causes.agreement import is_array, same, tells
from nn_manual.exercises.causes.candidates import Candidate, Source, Text
from nn_manual.exercises.causes.change import TURNED
from nn_manual.exercises.causes.code_text import CodeText
from nn_manual.exercises.causes.common_mistakes import written_mistakes
from nn_manual.exercises.causes.formula_text import FormulaText, UpdateText
from nn_manual.exercises.causes.ignored_settings import IgnoredSettings
from nn_manual.exercises.causes.operation_text import OperationText
from nn_manual.exercises.causes.sentences import seen_without_formula, sentence
from nn_manual.exercises.causes.several_changes import exchanged, pairs, repeated
from nn_manual.exercises.files.statement import said_of_kinks
from nn_manual.exercises.kinds.exercise import Case, Exercise, Results
from nn_manual.ops import Operation
from nn_manual.optim import Optimizer

#: So many seconds are spent on the search: with all inputs and a second search, a check takes 3 s at most beyond its
#: imports.
SECONDS = 1.6
#: A second search takes at most this share of it.
SHARE_OF_SECOND = 0.2
#: At most so many changes that agree on one case are tried on all.
MOST_CONFIRMED = 60
#: So many pairs of changes of formulas are tried before the code is looked at.
FIRST_PAIRS = 2000
#: So many changes are made ready at once.
PREPARED = 300
#: What is said of a cause that holds elsewhere.
AT_TIES = "At ties it differs in another way, too."


def explain(
    exercise: Exercise, cases: Sequence[Case], expected: Sequence[Results], theirs: Sequence[Results], wrong: str
) -> str:
    """Why the tensor `wrong` differs, in sentences; empty where no cause is found.

    `expected` and `theirs` are what the package and the reader's code compute in each case. A cause is a change of the
    right formula which gives the reader's numbers in all cases in which the formula can be evaluated.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        search = Search(exercise, cases, expected, theirs, wrong)
        seen = seen_without_formula(exercise, cases, expected, theirs, wrong)
        if seen or not search.telling:
            return seen
        found = search.found()
        if found is not None:
            return sentence(exercise, found, wrong)
        if search.family(wrong):
            found = search.second(range(len(cases)), alone=True).found()
            return "" if found is None else sentence(exercise, found, wrong)
        away = [number for number, case in enumerate(cases) if not case.kind.startswith("tied")]
        if all(number in away for number in search.telling) or not said_of_kinks(exercise):
            return ""
        found = search.second(away).found()
        return "" if found is None else f"{sentence(exercise, found, wrong)} {AT_TIES}"


class Search:
    """The search for a change that explains one wrong tensor. `telling` are the cases in which it is wrong, the best
    to begin with first.
    """

    def __init__(
        self,
        exercise: Exercise,
        cases: Sequence[Case],
        expected: Sequence[Results],
        theirs: Sequence[Results],
        wrong: str,
    ) -> None:
        self.exercise, self.cases, self.wrong, self._alone = exercise, cases, wrong, False
        self.expected, self.theirs = expected, theirs
        both = ((number, own.get(wrong)) for number, own in enumerate(theirs) if wrong in expected[number])
        self.given = [number for number, array in both if is_array(array)]
        differing = [number for number in self.given if tells(theirs[number][wrong], expected[number][wrong])]
        self.telling = sorted(differing, key=self._unclear)
        self._until = time.perf_counter() + SECONDS

    def _unclear(self, number: int) -> tuple[bool, bool, bool]:
        array = self.theirs[number][self.wrong]
        return not np.isfinite(array).all(), "random" not in self.cases[number].kind, array.size < 3

    def second(self, numbers: Sequence[int], alone: bool = False) -> Search:
        """A shorter search in some of the cases; `alone` for what explains this tensor, and not those of its family."""
        cases = [self.cases[number] for number in numbers]
        expected, theirs = ([each[number] for number in numbers] for each in (self.expected, self.theirs))
        other = Search(self.exercise, cases, expected, theirs, self.wrong)
        other._alone, other._until = alone, time.perf_counter() + SHARE_OF_SECOND * SECONDS
        return other

    def found(self) -> Candidate | None:
        """The change with the simplest words; None where there is none."""
        rest: list[tuple[Text, list[int], Iterator[Candidate]]] = []
        for text in (text for text in self._texts() if text.units):
            usable = self._usable(text)
            if not usable:
                continue
            singles = self.singles(text, usable[0])
            simplest = [each for each in singles if each.rank < 2 * TURNED]
            found = self._best(text, usable, self._in_parts(text, simplest))
            if found is None and not rest:
                found = self._of_settings()
            if found is None:
                found = self._best(text, usable, self._in_parts(text, singles[len(simplest) :]))
            if found is None and isinstance(text, CodeText) and not isinstance(text, OperationText):
                found = self._of_settings_beside(text, usable, simplest)
            two = pairs(singles)
            if found is None and isinstance(text, FormulaText):
                # The likeliest pairs of formulas come before all changes of the code, which take longer.
                found = self._best(text, usable, itertools.islice(two, FIRST_PAIRS))
            if found is not None:
                return found
            rest.append((text, usable, two))
        for text, usable, two in rest:
            text.prepare([])
            found = self._best(text, usable, two)
            if found is not None:
                return found
        return None

    def _of_settings(self) -> Candidate | None:
        """A setting that the reader's code ignores, which has few words and takes little time."""
        if not isinstance(self.exercise.owner, type):
            return None
        settings = IgnoredSettings(self.exercise, self.cases)
        order = [*self.telling, *(number for number in self.given if number not in self.telling)]
        return self._best(settings, order, settings.candidates(order[:1]))

    def _of_settings_beside(
        self, text: CodeText, usable: Sequence[int], simplest: Sequence[Candidate]
    ) -> Candidate | None:
        """A setting that is ignored, and a simple change."""
        settings = IgnoredSettings(self.exercise, self.cases, text)
        beside = [each for each in simplest if not text.of_forward(each)]
        text.prepare(beside)
        ignored = list(settings.candidates(self.telling))
        return self._best(settings, usable, (one.beside(setting) for one in beside for setting in ignored))

    def _texts(self) -> Iterator[Text]:
        own = self.exercise.owner
        if isinstance(own, type) and issubclass(own, Optimizer):
            arrays = [array for number in self.telling for array in self.theirs[number].values() if is_array(array)]
            finite = all(np.isfinite(array).all() for array in arrays)
            for without_decay in (True,) if finite else (True, False):
                yield UpdateText(self.exercise, self.cases, without_decay)
        else:
            yield FormulaText(self.exercise, self.cases)
        if isinstance(own, type):
            yield CodeText(self.exercise, self.cases)
        elif isinstance(own, Operation):
            yield OperationText(self.exercise, self.cases)

    def _usable(self, text: Text) -> list[int]:
        """The cases, telling ones first, in which the unchanged text gives what is expected."""
        order = [*self.telling, *(number for number in self.given if number not in self.telling)]
        usable = []
        for number in order:
            try:
                results = text.run({}, number)
            except Exception as error:  # a formula that takes other settings
                raise_if_nobodys_fault(error)
                continue
            names = self._names(number)
            if all(name in results and same(results[name], self.expected[number][name]) for name in names):
                usable.append(number)
        usable.sort(key=lambda number: number not in self.telling)
        # From formulas that hold in a few cases alone, a change may seem to be the cause that isn't.
        return usable if usable and usable[0] in self.telling and 2 * len(usable) > len(self.given) else []

    def _names(self, number: int) -> list[str]:
        """What must agree: the tensor; of an optimizer's step, whatever follows from it, too; of one of many operands,
        the others' unless it is sought `alone`.
        """
        if " after step " in self.wrong:
            return [name for name in self.expected[number] if " after step " in name]
        family = "" if self._alone else self.family(self.wrong)
        others = (name for name in self.theirs[number] if family and name.startswith(family) and name != self.wrong)
        return [self.wrong, *others]

    @staticmethod
    def family(name: str) -> str:
        """What the gradients of all operands are called: "grad_inputs["; empty where each has a name of its own."""
        return f"{name.partition('[')[0]}[" if "[" in name else ""

    def singles(self, text: Text, number: int) -> list[Candidate]:
        """The single changes that lead to the tensor, the likeliest first."""
        leading = text.leads_to(self.wrong)
        every = (each for each in text.candidates(number) if each.edits[0][0] in leading)
        single = [each._replace(rank=self._rank(text, each)) for each in every]
        found = [*written_mistakes(self.exercise, text), *repeated(single, text), *exchanged(single, text), *single]
        return sorted((each for each in found if text.shows(each, number)), key=lambda each: each.rank)

    def _rank(self, text: Text, single: Candidate) -> int:
        """The simplest change first, and of these the one in the line that the reader wrote."""
        elsewhere = 0 if single.name in (self.wrong, "", "return") else 1
        return 2 * single.rank + (5 if text.of_forward(single) else elsewhere)

    def _best(self, text: Source, usable: Sequence[int], candidates: Iterator[Candidate]) -> Candidate | None:
        tried = 0
        for candidate in candidates:
            if self.is_over() or tried > MOST_CONFIRMED:
                return None
            if self._agrees(text, candidate, usable[0]):
                tried += 1
                if all(self._agrees(text, candidate, number) for number in usable[1:]):
                    return candidate
        return None

    def is_over(self) -> bool:
        """Whether the time of the search is."""
        return time.perf_counter() > self._until

    def _in_parts(self, text: Text, candidates: Sequence[Candidate]) -> Iterator[Candidate]:
        for start in range(0, len(candidates), PREPARED):
            part = candidates[start : start + PREPARED]
            text.prepare(part)
            yield from part

    def _agrees(self, text: Source, candidate: Candidate, number: int) -> bool:
        try:
            results = text.results(candidate, number)
        except Exception as error:  # a change that can't be computed, or takes all memory, isn't the reader's
            if is_from_outside(error):
                raise
            return False
        own = self.theirs[number]
        if "answer" in results and np.shape(results["answer"]) != np.shape(self.expected[number]["answer"]):
            return False  # what the reader's forward has is right
        if not same(results.get(self.wrong), own[self.wrong]):
            return False
        return all(same(results.get(name), own.get(name)) for name in self._names(number))
