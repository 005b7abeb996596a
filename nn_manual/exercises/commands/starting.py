"""What a reader asks for: an exercise to begin with, a hint, and the solution."""

from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path

from nn_manual import ops
from nn_manual.errors import ConfigError
from nn_manual.exercises.commands import progress
from nn_manual.exercises.files.source import Method, bound_names, called, imports, method
from nn_manual.exercises.files.started import started
from nn_manual.exercises.files.statement import hints
from nn_manual.exercises.kinds.every_exercise import find_exercise
from nn_manual.exercises.kinds.exercise import Exercise
from nn_manual.exercises.kinds.words import told_words, written_words
from nn_manual.exercises.running.reader_file import SUFFIX, ReaderFile, read
from nn_manual.exercises.running.reference import refuse_existing
from nn_manual.messages.text import WIDTH, one_line, shell_word, wrapped
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
    solution = one_line(f"For our solution: nn-manual exercise solution {shell_word(text)}")
    if not lines:
        none = wrapped(f"{exercise.name} has no derivation: the formulas in its file say what to write.")
        return "\n".join([*none, solution])
    folder = file.path.absolute().parent if file else Path.cwd()
    number = progress.note_hint(folder, exercise.name, len(lines))
    rows = [row for line in lines[:number] for row in line.splitlines()]
    words = told_words(written_words(exercise, "\n".join(row for row in rows if " = " in row)))
    end = [solution] if number == len(lines) else []
    return "\n".join([f"{number} of {len(lines)}", *map(_wrap.fill, rows), *map(_wrap.fill, filter(None, words)), *end])


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
    return "\n\n".join([*parts, "# nn_manual's", *ours(exercise)])


def ours(exercise: Exercise) -> list[str]:
    """What stands in the place of what the file of an exercise leaves open. Where it needs imports that the file
    hasn't, they come first.
    """
    if lines := exercise.way_back():
        return ["\n".join(lines)]
    functions = [_rule(exercise)] if isinstance(exercise.owner, ops.Operation) else _methods(exercise)
    needed = imports(functions, but=bound_names(started(exercise, "")))
    head = ["# at the top of the file", needed, "# below the imports"] if needed else []
    return [*head, *(one.text.rstrip() for one in functions)]


def _rule(exercise: Exercise) -> Method:
    """The rule of an operation, without its docstring."""
    rule = exercise.owner.rule
    text = textwrap.dedent(inspect.getsource(rule))
    (tree,) = ast.parse(text).body
    assert isinstance(tree, ast.FunctionDef)
    lines = text.splitlines()
    kept = [*lines[: tree.body[0].lineno - 1], *lines[tree.body[1].lineno - 1 :]]
    return Method(exercise.name, "\n".join(kept), rule.__module__)


def _methods(exercise: Exercise) -> list[Method]:
    """The methods that were taken out, and their helpers that forward doesn't call. `super()` names its class: in the
    reader's class, which derives from ours, it would find ours.
    """
    owner: type = exercise.owner
    given = {one.name for one in called(owner, set(exercise.given) - {*exercise.taken_out})}
    found = [method(owner, name) for name in exercise.taken_out]
    found += [one for one in called(owner, exercise.taken_out) if one.name not in given | {*exercise.taken_out}]
    named = []
    for one in found:
        definer = next(base for base in owner.__mro__ if one.name in vars(base))
        named.append(one._replace(text=one.text.replace("super()", f"super({exercise.room}.{definer.__name__}, self)")))
    return named


def _exercise_of(text: str) -> tuple[Exercise | None, ReaderFile | None]:
    """The exercise that a name, or a file, means; None for one that a teacher has made."""
    if text.endswith(".py"):
        file = read(Path(text))
        return file.reference.exercise, file
    return find_exercise(text), None
