"""What a reader asks for: an exercise to begin with, a hint, and the solution."""

from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path

from nn_manual import ops
from nn_manual.errors import ConfigError
from nn_manual.exercises import progress
from nn_manual.exercises.every_exercise import find_exercise
from nn_manual.exercises.exercise import Exercise
from nn_manual.exercises.reader_file import SUFFIX, ReaderFile, read
from nn_manual.exercises.reference import refuse_existing
from nn_manual.exercises.source import called, method
from nn_manual.exercises.started import started
from nn_manual.exercises.statement import hints
from nn_manual.messages.text import WIDTH, one_line, shell_word
from nn_manual.run_directory.files import write_atomically

#: Wraps a line of a hint: no word is split.
_wrap = textwrap.TextWrapper(
    WIDTH, initial_indent="  ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
)


def start(name: str, output: Path | None) -> Path:
    """Write the file of an exercise. Raises ConfigError for an unknown exercise, a name that isn't
    a Python file's, and where the file is there.
    """
    exercise = find_exercise(name)
    path = output or Path(f"{name}.py")
    if path.suffix != SUFFIX:
        raise ConfigError(one_line(f"--output {path}: the exercise is a Python file, {SUFFIX}"))
    refuse_existing(path)
    write_atomically(path, started(exercise, path.name).encode())
    return path


def hint(text: str) -> str:
    """One line more of the derivation, below those that were uncovered before."""
    exercise, file = _exercise_of(text)
    if exercise is None:
        return f"{text} is an exercise of a teacher's, which has no hints"
    lines = hints(exercise)
    solution = f"nn-manual exercise solution {shell_word(text)} shows ours"
    if not lines:
        return f"{exercise.name} has no derivation: the formulas in its file say what to write. {solution}"
    folder = file.path.absolute().parent if file else Path.cwd()
    number = progress.note_hint(folder, exercise.name, len(lines))
    rows = [row for line in lines[:number] for row in line.splitlines()]
    shown = "\n".join(map(_wrap.fill, rows))
    return "\n".join([f"{number} of {len(lines)}", shown, *([solution] if number == len(lines) else [])])


def solution(text: str) -> str:
    """Our solution below the reader's, if there is a file with one."""
    exercise, file = _exercise_of(text)
    if exercise is None:
        return f"{text} is an exercise of a teacher's, who has the solution"
    if file is None and Path(f"{exercise.name}.py").exists():
        file = read(Path(f"{exercise.name}.py"))
    names = [exercise.title] if exercise.is_function else exercise.taken_out
    theirs = [textwrap.dedent(file.written(name)) for name in names] if file else []
    parts = [f"# yours\n\n{part}" for part in theirs if part]
    return "\n\n".join([*parts, f"# nn_manual's\n\n{_ours(exercise)}"])


def _ours(exercise: Exercise) -> str:
    """The methods that were taken out, and their helpers that forward doesn't call."""
    if lines := exercise.way_back():
        return "\n".join(lines)
    if isinstance(exercise.owner, ops.Operation):
        text = textwrap.dedent(inspect.getsource(exercise.owner.rule))
        (tree,) = ast.parse(text).body
        assert isinstance(tree, ast.FunctionDef)
        lines = text.splitlines()
        return "\n".join([*lines[: tree.body[0].lineno - 1], *lines[tree.body[1].lineno - 1 :]])
    owner: type = exercise.owner
    given = {one.name for one in called(owner, exercise.given)}
    taken_out = [method(owner, name) for name in exercise.taken_out]
    helpers = [one for one in called(owner, exercise.taken_out) if one.name not in given | {*exercise.taken_out}]
    return "\n\n".join(one.text.rstrip() for one in [*taken_out, *helpers])


def _exercise_of(text: str) -> tuple[Exercise | None, ReaderFile | None]:
    """The exercise that a name, or a file, means; None for one that a teacher has made."""
    if text.endswith(".py"):
        file = read(Path(text))
        return file.reference.exercise, file
    return find_exercise(text), None
