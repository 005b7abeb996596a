"""The grades of a folder of hand-ins: each is run by itself, and touches neither the others nor the grades."""

from __future__ import annotations

import csv
import io
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from nn_manual.errors import ConfigError, NNManualError, out_of_memory
from nn_manual.exercises.running.autograd import ASKS
from nn_manual.exercises.running.process import Worker, file_of
from nn_manual.exercises.running.reader_file import ReaderFile, parsed
from nn_manual.exercises.verdicts.judging import judge
from nn_manual.exercises.verdicts.rows import RIGHT
from nn_manual.messages.text import counted, one_line
from nn_manual.opening import open_file
from nn_manual.run_directory.files import write_atomically

COLUMNS = ("file", "exercise", "solved", "right", "of", "verdict", "autograd", "notes")


@dataclass(frozen=True)
class Grade:
    """A row of the grades: how many of the tensors that are asked are right, of how many, and the verdict in a line."""

    file: str
    exercise: str
    solved: bool
    num_right: int
    num_tensors: int
    verdict: str
    asks_autograd: bool = False
    notes: Sequence[str] = ()

    @property
    def row(self) -> list[object]:
        """The row in the file."""
        solved, autograd = ("yes" if each else "no" for each in (self.solved, self.asks_autograd))
        notes = "; ".join(self.notes)
        return [self.file, self.exercise, solved, self.num_right, self.num_tensors, self.verdict, autograd, notes]


def grade(folder: Path) -> list[Grade]:
    """The grades of all Python files in a folder and in the folders in it, but hidden ones. Raises ConfigError where
    there are none.
    """
    if not folder.is_dir():
        raise ConfigError(one_line(f"{folder}: there is no such folder"))
    found = [path for pattern in ("*.py", "*/*.py") for path in folder.glob(pattern) if path.is_file()]
    files = sorted(path for path in found if not any(map(_is_hidden, path.relative_to(folder).parts)))
    if not files:
        raise ConfigError(one_line(f"{folder}: no .py file is in it"))
    contents = [_content(path) for path in files]  # before the first one runs, which might change another
    with ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as pool:
        return list(pool.map(lambda path, content: _grade(path, content, folder), files, contents))


def _is_hidden(name: str) -> bool:
    return name.startswith(".")


def _content(path: Path) -> bytes | str:
    try:
        with open_file(path) as file:
            return file.read()
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)


def _grade(path: Path, content: bytes | str, folder: Path) -> Grade:
    name = str(path.relative_to(folder))
    if isinstance(content, str):
        return Grade(name, "", False, 0, 0, content)
    try:
        file = parsed(path, content, name)
    except NNManualError as error:
        return Grade(name, "", False, 0, 0, str(error))
    try:
        return _judged(file, content, name)
    except (MemoryError, OSError) as error:  # the code has had its own process, but its results are judged in this one
        if (words := out_of_memory(error)) is None:
            raise
        return Grade(name, file.reference.name, False, 0, 0, f"can't be judged: {words}")


def _judged(file: ReaderFile, content: bytes, name: str) -> Grade:
    with tempfile.TemporaryDirectory() as inner:  # its own current folder, with a copy of the file alone
        copy = Path(inner, "hand_in", file.path.name)
        copy.parent.mkdir()
        copy.write_bytes(content)
        worker = Worker(copy.parent)
        answer, _ = worker.run(file.reference.request(file_of(copy))._replace(folder=inner))
        verdict = judge(file.reference, answer, name, file.missing)
    asks = any(note.words == ASKS for note in answer.notes)
    counts = sum(row.state == RIGHT for row in verdict.asked), len(verdict.asked)
    return Grade(name, file.reference.name, verdict.passed, *counts, verdict.first_words, asks, verdict.notes)


def _cell(text: str) -> str:
    """A text that a spreadsheet would compute is kept from it by an apostrophe."""
    return one_line(f"'{text}" if text.startswith(("=", "+", "-", "@")) else text)


def write(grades: Sequence[Grade], output: Path | None) -> None:
    """Write the grades as a CSV, with a line about them on standard output; without a file, print the CSV."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(each) if isinstance(each, str) else each for each in grade.row] for grade in grades)
    if output is None:
        print(stream.getvalue(), end="")
        return
    write_atomically(output, stream.getvalue().encode())
    num_solved = sum(grade.solved for grade in grades)
    print(one_line(f"{counted(len(grades), 'hand-in')}, {num_solved} solved, in {output}"))
