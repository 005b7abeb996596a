"""Each tensor of a reader's code beside the right one: which are wrong, the first of them, and on which inputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from nn_manual.exercises.causes.finding import cause_of, cause_of_failure
from nn_manual.exercises.running.answer import Answer, Failure
from nn_manual.exercises.running.autograd import ASKS
from nn_manual.exercises.running.memory import no_number
from nn_manual.exercises.running.reference import Reference
from nn_manual.exercises.verdicts.differences import (
    agrees,
    has_no_number,
    looks_like,
    not_asked,
    of_others,
    of_ties,
    two_numbers,
    worst,
)
from nn_manual.exercises.verdicts.kinds_of_input import Sayings, where_wrong
from nn_manual.exercises.verdicts.rows import MISSING, NEVER, PARTLY, RIGHT, UNKNOWN, WRONG, Row
from nn_manual.exercises.verdicts.verdict import Verdict
from nn_manual.layers import Layer

#: Between the name of a row of an optimizer and the number of the step of a tensor.
STEP = " after step "


def judge(reference: Reference, answer: Answer, file: str, missing: Sequence[str] = ()) -> Verdict:
    """The verdict on an answer. `missing` are the functions of the file that aren't written yet."""
    title, num_inputs = reference.title, len(reference.inputs)
    notes = [_placed(note, file) for note in answer.notes]
    if answer.problem is not None:
        rows = [Row(name, UNKNOWN) for name in _groups(reference.names)]
        return Verdict(file, title, num_inputs, rows, [_placed(answer.problem, file)], notes)
    if len(answer.results) != num_inputs:
        return Verdict(file, title, num_inputs, [], [f"{file}: {title} {of_others(reference, answer)}"], notes)
    compared = _Compared(reference, answer)
    rows = [compared.row(name) for name in _groups(reference.names)]
    wrong = next((name for name in reference.names if compared.is_wrong(name)), None)
    failed = next((i for i, each in enumerate(answer.results) if isinstance(each, Failure)), None)
    case = failed or 0
    explanation: list[str] = []
    if wrong is not None:
        case = compared.shown(wrong)
        explanation = compared.of_tensor(wrong)
    if failed is not None:
        explanation += compared.of_failure(failed, file, explained=wrong is None)
    if failed is None and not compared.missing():  # else they might have been called behind the error, or what is open
        is_right = all(row.state == RIGHT for row in rows)
        for name, words in _of_unused(reference, answer, file).items():
            (explanation if is_right and name in reference.taken_out else notes).append(words)
    asks_autograd = any(note.words == ASKS for note in answer.notes)
    missing = missing or compared.missing()
    return Verdict(file, title, num_inputs, rows, explanation, notes, missing, None, asks_autograd, case)


def _placed(failure: Failure, file: str) -> str:
    return f"{file}:{failure.line}: {failure.words}" if failure.line else f"{file}: {failure.words}"


def _of_unused(reference: Reference, answer: Answer, file: str) -> dict[str, str]:
    """About each method that is never called: no number tells whether it is right."""
    told = {}
    for name, line in answer.unused.items():
        remedy = ": leave out the method of yours that takes its place" if name in reference.taken_out else ""
        told[name] = _placed(Failure(f"{name} is never called, and isn't checked{remedy}", line), file)
    return told


def _groups(names: Sequence[str]) -> list[str]:
    """The names without the numbers of steps: of an optimizer, the tensors of all steps are one row."""
    return list(dict.fromkeys(name.partition(STEP)[0] for name in names))


class _Compared:
    """Each tensor of each case beside the right one."""

    def __init__(self, reference: Reference, answer: Answer) -> None:
        self._reference = reference
        self._theirs = [each.reached if isinstance(each, Failure) else each for each in answer.results]
        self._results = answer.results

    def _cases_wrong(self, name: str) -> list[int]:
        """The cases in which a tensor is there, and wrong."""
        pairs = enumerate(zip(self._theirs, self._reference.expected, strict=True))
        there = ((i, theirs[name], right[name]) for i, (theirs, right) in pairs if name in theirs and name in right)
        return [i for i, theirs, right in there if not agrees(theirs, right)]

    def is_wrong(self, name: str) -> bool:
        """Whether a tensor is wrong in any case."""
        return bool(self._cases_wrong(name))

    def _names(self, group: str) -> list[str]:
        """The tensors of a row."""
        return [name for name in self._reference.names if name.partition(STEP)[0] == group]

    def _wrong_in_any(self, names: Sequence[str]) -> set[int]:
        """The cases in which one of these tensors is wrong."""
        return {case for name in names for case in self._cases_wrong(name)}

    def row(self, group: str) -> Row:
        """The row of a tensor, or of a tensor after each of several steps."""
        names = self._names(group)
        wrong = self._wrong_in_any(names)
        expected = enumerate(self._reference.expected)
        asked = [case for case, right in expected if any(name in right for name in names)]
        failed = [case for case in asked if any(map(partial(self._is_lost, case), names))]
        fails = bool(failed) and all(self._failing(case) in names for case in failed)
        counts = len(asked), len(wrong), len(failed), fails
        if wrong:
            is_never = all(has_no_number(self._theirs[case].get(name)) for case in wrong for name in names)
            return Row(group, NEVER if is_never else WRONG, *counts)
        if any(map(self._lacks, names)):
            return Row(group, MISSING)
        return Row(group, RIGHT if not failed else PARTLY if len(failed) < len(asked) else UNKNOWN, *counts)

    def _is_lost(self, case: int, name: str) -> bool:
        """Whether the code has failed before a tensor was there."""
        is_asked = name in self._reference.expected[case]
        return is_asked and isinstance(self._results[case], Failure) and name not in self._theirs[case]

    def _failing(self, case: int) -> str:
        """The tensor whose code has failed; empty where one piece of code gives several that weren't there."""
        lost = [name for name in self._reference.expected[case] if self._is_lost(case, name)]
        is_one_function = isinstance(self._reference.owner, type) and issubclass(self._reference.owner, Layer)
        return lost[0] if len(lost) == 1 or (lost and not is_one_function) else ""

    def _lacks(self, name: str) -> bool:
        pairs = zip(self._results, self._reference.expected, strict=True)
        return any(name in right and not isinstance(theirs, Failure) and name not in theirs for theirs, right in pairs)

    def missing(self) -> list[str]:
        """The tensors that nothing has computed."""
        return [name for name in self._reference.names if self._lacks(name)]

    def of_failure(self, case: int, file: str, explained: bool) -> list[str]:
        """About the first error that the code has raised, with its cause where nothing else is wrong."""
        failures = [i for i, each in enumerate(self._results) if isinstance(each, Failure)]
        failure = self._results[case]
        assert isinstance(failure, Failure)
        cause = cause_of_failure(self._reference, self._results) if explained else ""
        setting, kind = self._reference.inputs[case]
        name = self._failing(case)
        lines = [_placed(failure, file), *([cause] if cause else [])]
        lines.append(f"It was {f'in {name}, ' if name else ''}on {setting}, {kind}.")
        every = [*range(len(self._results))]
        say = Sayings("It fails", "It runs")
        return [*lines, where_wrong(self._reference.inputs, failures, every, say, self._reference.owner)]

    def of_tensor(self, name: str) -> list[str]:
        """About a wrong tensor: the cause, or else what the difference looks like; the place, and on which inputs."""
        wrong, case = self._cases_wrong(name), self.shown(name)
        theirs, right = self._theirs[case][name], np.asarray(self._reference.expected[case][name])
        if what := not_asked(self._reference.owner, theirs, right, [self._theirs[i][name] for i in wrong]):
            return [f"{name} is {what}", self._where(name)]
        if all(has_no_number(self._theirs[i][name]) for i in wrong):
            return [no_number(self._reference.owner, name), self._where(name)]
        cause = cause_of(self._reference, self._theirs, name)
        looks = looks_like(theirs, right, ((self._theirs[i][name], self._reference.expected[i][name]) for i in wrong))
        looks = looks.partition(": the gradient was not")[0] if STEP in name else looks
        of_kinks = of_ties(self._reference, wrong)
        if of_kinks is not None:
            looks = "it differs at ties or kinks only"
        is_wrong = f"{name} {'are' if name.startswith('parameters') else 'is'} wrong"
        lines = [f"{is_wrong}. {cause}" if cause else f"{is_wrong}: {looks}."]
        lines += [f"The docstring says of ties and kinks: {of_kinks}"] if of_kinks else []
        setting, kind = self._reference.inputs[case]
        if theirs.shape == right.shape:
            index = worst(theirs, right)
            at = f" at {index}" if index else ""
            both = two_numbers(float(theirs[index]), float(right[index]))
            lines.append(f"On {setting}, {kind}{at}: yours is {both[0]}, right is {both[1]}")
        else:
            lines.append(f"On {setting}, {kind}: yours has shape {theirs.shape}, right is {right.shape}")
        return [*lines, self._where(name)]

    def shown(self, name: str) -> int:
        """The case that shows best what is wrong with a tensor."""
        return min(self._cases_wrong(name), key=lambda i: self._rank(i, name))

    def _rank(self, case: int, name: str) -> int:
        """How well a case shows what is wrong: a wrong shape first, then random numbers, which are easily read."""
        theirs, right = self._theirs[case][name], np.asarray(self._reference.expected[case][name])
        if isinstance(theirs, str) or theirs.shape != right.shape:
            return 0
        is_random = self._reference.inputs[case][1].startswith("random")
        return 1 if is_random and right.any() else 2

    def _where(self, name: str) -> str:
        """On which inputs the row of a tensor is wrong."""
        names = self._names(name.partition(STEP)[0])
        wrong = self._wrong_in_any(names)
        wanted = [[one for one in names if one in right] for right in self._reference.expected]
        reached = [all(one in theirs for one in own) for own, theirs in zip(wanted, self._theirs, strict=True)]
        asked = [i for i, own in enumerate(wanted) if i in wrong or (own and reached[i])]
        is_whole = not any(self._is_lost(i, one) for i in range(len(self._theirs)) for one in names)
        every = "every input" if is_whole else "every input that it reached"
        return where_wrong(self._reference.inputs, wrong, asked, Sayings(every=every), self._reference.owner)
