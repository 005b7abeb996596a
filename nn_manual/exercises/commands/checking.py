"""The check of a reader's file, once or at every save."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nn_manual.errors import DataError, NNManualError
from nn_manual.exercises.commands import progress
from nn_manual.exercises.files.statement import hints
from nn_manual.exercises.running.answer import Failure
from nn_manual.exercises.running.jacobians import Found, beside_the_true_one
from nn_manual.exercises.running.process import Printed, Worker, file_of, run_file
from nn_manual.exercises.running.reader_file import read
from nn_manual.exercises.running.reference import Reference
from nn_manual.exercises.verdicts.judging import judge
from nn_manual.exercises.verdicts.verdict import Verdict
from nn_manual.messages.text import WIDTH, counted, one_line, printable, shell_word, wrapped
from nn_manual.plotting.jacobians import plot_jacobians

#: How often a watched file is looked at, in seconds.
LOOK_EVERY = 0.2
#: So many of the lines that a file prints in a case are shown, and so many characters of a line.
SHOWN, LONGEST_PRINTED = 20, 1000


@dataclass(frozen=True)
class Checked:
    """The verdict on a file; what it printed, on the first input that fails, or on the first one; and what to do then:
    `str()` is a screen.
    """

    file: Path
    verdict: Verdict
    printed: Sequence[str]
    then: str

    def __str__(self) -> str:
        return "\n".join([*self.printed, str(self.verdict), *([one_line(self.then)] if self.then else [])])


def check_file(path: Path, worker: Worker | None = None) -> Checked:
    """Check a file. Raises ConfigError for one of no exercise."""
    own = worker or Worker()  # it imports the package meanwhile
    try:
        file = read(path)
        answer, printed = run_file(file.reference.request(file_of(path)), own)
    finally:
        own.end()
    verdict = judge(file.reference, answer, str(path), file.missing)
    folder, name = path.absolute().parent, file.reference.name
    with suppress(DataError):  # where the folder can't be written, the verdict counts
        progress.note_checked(folder, name, passed=verdict.solved)
    exercise = file.reference.exercise
    then = ""
    if verdict.solved and exercise is not None and (following := progress.following(folder, name)):
        then = f"The next one: nn-manual exercise start {following}"
    elif not verdict.passed and exercise is not None and hints(exercise):
        then = f"For a hint: nn-manual exercise hint {shell_word(path)}"
    return Checked(path, verdict, _shown(printed, file.reference, verdict), then)


def _shown(printed: Printed, reference: Reference, verdict: Verdict) -> list[str]:
    """What was printed on one input, with a heading that names it: on the one that the verdict shows, or else on the
    first on which anything was.
    """
    if not printed:
        return []
    case = verdict.case if verdict.case in printed else next(iter(printed))
    on = "before the first input" if case is None else f"on {', '.join(reference.inputs[case])}"
    others = len(printed) - 1
    also = f", and on {counted(others, 'other')}" if others else ""
    lines = printed[case].splitlines()
    more = [f"  ... {counted(len(lines) - SHOWN, 'more line')}"] if len(lines) > SHOWN else []
    return [*wrapped(f"It printed {on}{also}:"), *(f"  {_line(line)}" for line in lines[:SHOWN]), *more]


def _line(text: str) -> str:
    line = printable(text, but="")
    return line if len(line) <= LONGEST_PRINTED else f"{line[:LONGEST_PRINTED]}..."


def draw(checked: Checked, output: Path) -> str:
    """Draw the Jacobian of the first wrong gradient beside the true one. Returns what to say of it. Raises ConfigError
    and DataError as `plot_jacobians` does.
    """
    wrong = checked.verdict.first_wrong
    if not wrong:
        verdict = checked.verdict
        return f"no picture: {'no gradient is wrong' if verdict.passed else verdict.first_words}"
    file = read(checked.file)
    exercise = file.reference.exercise
    if exercise is None:
        return "no picture: the true Jacobian of a teacher's exercise isn't known"
    request = file.reference.request(file_of(checked.file))
    answer, _ = run_file(request._replace(jacobian_of=wrong))
    if answer.problem is not None:
        return f"no picture: {answer.problem.words}"
    (result,) = answer.results
    assert not isinstance(result, Failure)
    found = Found(int(result["case"]), result["jacobian"])
    plot_jacobians(beside_the_true_one(exercise, file.reference.cases, found, wrong), output)
    return f"{output}: the Jacobian of {wrong}, yours and the true one"


def watch(path: Path, say: Callable[[str], None], worker: Worker) -> None:
    """Check a file now, with this worker, and at every save, until somebody interrupts. Each verdict has the time of
    day above it.
    """
    say(one_line(f"watching {path}, Ctrl-C ends"))
    seen: object = ()  # not even that there is no file
    try:
        while True:
            now = _saved_at(path)
            if now != seen:
                seen = now
                try:
                    said = str(check_file(path, worker))
                except NNManualError as error:
                    said = "\n".join(wrapped(str(error)))
                say(f"{time.strftime('%H:%M:%S '):-<{WIDTH}}\n{said}")
                worker.end()
                worker = Worker()  # it has imported the package by the next save
            time.sleep(LOOK_EVERY)
    finally:
        worker.end()


def _saved_at(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
