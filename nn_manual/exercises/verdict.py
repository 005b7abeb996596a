"""What a reader's code computed beside what is right: each tensor, the first wrong one, and on which inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from nn_manual.exercises.answer import Answer, Failure
from nn_manual.exercises.causes import cause_of
from nn_manual.exercises.differences import agrees, has_no_number, looks_like, of_others, two_numbers, worst
from nn_manual.exercises.kinds_of_input import where_wrong
from nn_manual.exercises.memory import no_number
from nn_manual.exercises.reference import Reference
from nn_manual.exercises.statement import OUTPUTS
from nn_manual.messages import notebook
from nn_manual.messages.text import counted, one_line, wrapped
from nn_manual.plotting.jacobians import Jacobians, draw_jacobians
from nn_manual.plotting.saving import rendered

RIGHT, PARTLY, WRONG = "right", "right where it was reached", "WRONG"
MISSING, NEVER, UNKNOWN = "not written yet", "not a number", "not reached"


@dataclass(frozen=True)
class Row:
    """A tensor: its name, whether it is right, and on how many of the inputs that have it it isn't."""

    name: str
    state: str
    num_wrong: int = 0
    num_asked: int = 0

    @property
    def words(self) -> str:
        """The state for a reader."""
        if self.state != WRONG:
            return self.state
        count = "all" if self.num_wrong == self.num_asked else f"{self.num_wrong} of"
        return f"{WRONG} on {count} {counted(self.num_asked, 'input')}"


@dataclass(frozen=True)
class Verdict:
    """How a file's solution of an exercise does: `str()` is a screen for a terminal, a notebook shows a table.

    `explanation` has the lines about the first wrong tensor, or about what ended the code; `notes` are told beside it.
    `jacobians`, of the first wrong gradient, are a notebook's picture.
    """

    file: str
    title: str
    num_inputs: int
    rows: Sequence[Row]
    explanation: Sequence[str]
    notes: Sequence[str] = ()
    missing: Sequence[str] = ()
    jacobians: Jacobians | None = None

    @property
    def passed(self) -> bool:
        """Whether everything is right."""
        return bool(self.rows) and not self.explanation and all(row.state == RIGHT for row in self.rows)

    @property
    def asked(self) -> Sequence[Row]:
        """The rows that the reader's code answers for: without what forward gives, unless there is nothing else."""
        return [row for row in self.rows if row.name not in OUTPUTS] or self.rows

    def __bool__(self) -> bool:
        """Whether everything is right."""
        return self.passed

    @property
    def first_wrong(self) -> str:
        """The name of the first wrong gradient; empty where none is wrong."""
        return next((row.name for row in self.rows if row.state == WRONG and row.name.startswith("grad_")), "")

    @property
    def first_words(self) -> str:
        """The verdict in one line."""
        if self.passed:
            return f"right: {counted(len(self.rows), 'tensor')} on {counted(self.num_inputs, 'input')}"
        if self.explanation:
            return self.explanation[0]
        return f"not written yet: {', '.join(self.missing)}"

    def __str__(self) -> str:
        lines = [f"{self.title} in {one_line(self.file)}, {counted(self.num_inputs, 'input')}"]
        width = max((len(row.name) for row in self.rows), default=0)
        lines += [f"  {row.name:<{width}}  {row.words}" for row in self.rows]
        said = self.explanation or ["Everything is right." if self.passed else f"{self.first_words}."]
        return "\n".join([*lines, *(part for text in [*said, *self.notes] for part in wrapped(one_line(text)))])

    def _repr_html_(self) -> str:
        rows = (notebook.Row((row.name, row.words), row.state != RIGHT) for row in self.rows)
        said = map(notebook.words, [*self.explanation[1:], *self.notes])
        head = notebook.verdict(f"{self.title}: {self.first_words}", is_wrong=not self.passed)
        return notebook.page(head, notebook.table(("tensor", ""), rows, "<<"), *said, *self._picture())

    def _picture(self) -> Iterator[str]:
        if self.jacobians is not None:
            png = rendered(partial(draw_jacobians, self.jacobians), ".png")
            yield notebook.picture(png, f"the Jacobian of {self.first_wrong}, yours and the true one")


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
    explanation = [] if wrong is None else compared.of_tensor(wrong)
    if failed is not None:
        explanation += compared.of_failure(failed, file)
    return Verdict(file, title, num_inputs, rows, explanation, notes, missing or compared.missing())


def _placed(failure: Failure, file: str) -> str:
    return f"{file}:{failure.line}: {failure.words}" if failure.line else f"{file}: {failure.words}"


def _groups(names: Sequence[str]) -> list[str]:
    """The names without the numbers of steps: of an optimizer, the tensors of all steps are one row."""
    return list(dict.fromkeys(name.partition(" after step ")[0] for name in names))


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

    def row(self, group: str) -> Row:
        """The row of a tensor, or of a tensor after each of several steps."""
        names = [name for name in self._reference.names if name.partition(" after step ")[0] == group]
        wrong = {case for name in names for case in self._cases_wrong(name)}
        if wrong:
            asked = sum(any(name in right for name in names) for right in self._reference.expected)
            is_never = all(has_no_number(self._theirs[case].get(name)) for case in wrong for name in names)
            return Row(group, NEVER if is_never else WRONG, len(wrong), asked)
        if any(map(self._lacks, names)):
            return Row(group, MISSING)
        pairs = zip(self._theirs, self._reference.expected, strict=True)
        there = [name in theirs for theirs, right in pairs for name in names if name in right]
        return Row(group, RIGHT if all(there) else PARTLY if any(there) else UNKNOWN)

    def _lacks(self, name: str) -> bool:
        pairs = zip(self._results, self._reference.expected, strict=True)
        return any(name in right and not isinstance(theirs, Failure) and name not in theirs for theirs, right in pairs)

    def missing(self) -> list[str]:
        """The tensors that nothing has computed."""
        return [name for name in self._reference.names if self._lacks(name)]

    def of_failure(self, case: int, file: str) -> list[str]:
        """About the first error that the code has raised."""
        failures = [i for i, each in enumerate(self._results) if isinstance(each, Failure)]
        failure = self._results[case]
        assert isinstance(failure, Failure)
        lines = [_placed(failure, file), f"It was on {', '.join(self._reference.inputs[case])}."]
        every = [*range(len(self._results))]
        return [*lines, where_wrong(self._reference.inputs, failures, every, "It fails", "it runs")]

    def of_tensor(self, name: str) -> list[str]:
        """About a wrong tensor: the cause, or else what the difference looks like; the place, and on which inputs."""
        wrong = self._cases_wrong(name)
        case = min(wrong, key=lambda i: self._rank(i, name))
        theirs, right = self._theirs[case][name], np.asarray(self._reference.expected[case][name])
        if isinstance(theirs, str):
            missing = " Is a return missing?" if theirs == "None" else ""
            said = f"{name} is {theirs}, and not an array of numbers.{missing}"
            return [said, self._where(name, wrong)]
        if all(has_no_number(self._theirs[i][name]) for i in wrong):
            return [no_number(self._reference.owner, name), self._where(name, wrong)]
        cause = cause_of(self._reference, self._theirs, name)
        looks = looks_like(theirs, right, ((self._theirs[i][name], self._reference.expected[i][name]) for i in wrong))
        looks = looks.partition(": the gradient was not")[0] if " after step " in name else looks
        if all(self._reference.inputs[i][1].startswith("tied") for i in wrong):
            looks = "it differs at ties or kinks only"
        lines = [f"{name} is wrong. {cause}" if cause else f"{name} is wrong: {looks}."]
        setting, kind = self._reference.inputs[case]
        if theirs.shape == right.shape:
            index = worst(theirs, right)
            at = f" at {index}" if index else ""
            both = two_numbers(float(theirs[index]), float(right[index]))
            lines.append(f"On {setting}, {kind}{at}: yours is {both[0]}, right is {both[1]}")
        else:
            lines.append(f"On {setting}, {kind}: yours has shape {theirs.shape}, right is {right.shape}")
        return [*lines, self._where(name, wrong)]

    def _rank(self, case: int, name: str) -> int:
        """How well a case shows what is wrong: a wrong shape first, then random numbers, which are easily read."""
        theirs, right = self._theirs[case][name], np.asarray(self._reference.expected[case][name])
        if isinstance(theirs, str) or theirs.shape != right.shape:
            return 0
        is_random = self._reference.inputs[case][1].startswith("random")
        return 1 if is_random and right.any() else 2

    def _where(self, name: str, wrong: Sequence[int]) -> str:
        asked = [i for i, right in enumerate(self._reference.expected) if name in right and name in self._theirs[i]]
        return where_wrong(self._reference.inputs, wrong, asked, "It is wrong")
