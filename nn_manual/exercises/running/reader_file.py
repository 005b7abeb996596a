"""A reader's file as text: which exercise it is of, what isn't written yet, and what the reader has written."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from nn_manual.errors import ConfigError
from nn_manual.exercises.kinds.every_exercise import EXERCISES, every_exercise
from nn_manual.exercises.kinds.exercise import Exercise
from nn_manual.exercises.running.reference import ENDING, Reference, read_reference, reference
from nn_manual.messages.text import one_line
from nn_manual.opening import open_file

#: The ending of a file that Python imports.
SUFFIX = ".py"
#: How alike a name is to the one that was meant: 1 is the same.
NEAR = 0.8


@dataclass(frozen=True)
class ReaderFile:
    """A file, what it says as syntax, and the exercise that it is of."""

    path: Path
    text: str
    tree: ast.Module
    reference: Reference

    @property
    def missing(self) -> list[str]:
        """The functions that still raise NotImplementedError and nothing else."""
        return [one.name for one in _functions(self._own) if _is_open(one)]

    def written(self, name: str) -> str:
        """The text of one of the reader's functions; empty where there is none."""
        for one in _functions(self._own):
            if one.name == name:
                lines = self.text.splitlines()[one.lineno - 1 : one.end_lineno]
                return "\n".join(lines)
        return ""

    @property
    def _own(self) -> ast.stmt:
        return next(one for one in _definitions(self.tree) if one.name == self.reference.title)


def read(path: Path) -> ReaderFile:
    """The file. Raises ConfigError where it can't be read, is no Python, with the line, or is of no exercise."""
    try:
        with open_file(path) as file:
            data = file.read()
    except (OSError, ValueError) as error:
        raise ConfigError(one_line(f"{path}: {getattr(error, 'strerror', None) or error}{_instead(path)}")) from None
    if path.suffix != SUFFIX:
        raise ConfigError(one_line(f"{path}: is no Python file: its name must end in {SUFFIX}"))
    return parsed(path, data, str(path))


def _instead(path: Path) -> str:
    """What to write in the place of a name without an ending."""
    if not path.name:  # the current folder, or the root
        return ""
    file = path.with_name(f"{path.name}{SUFFIX}")
    if file.is_file():
        return f"; did you mean {file}?"
    return f"; nn-manual exercise start {path} writes {file}" if str(path) in every_exercise().exercises else ""


def parsed(path: Path, data: bytes, called: str) -> ReaderFile:
    """The same of a file whose bytes are known, and which messages call so."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(one_line(f"{called}: is no text in UTF-8, as a Python file is")) from None
    try:
        tree = ast.parse(text, str(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        words = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ConfigError(one_line(f"{called}{line}: it isn't Python yet: {words}")) from None
    return ReaderFile(path, text, tree, _reference_of(path, tree, called))


def _reference_of(path: Path, tree: ast.Module, called: str) -> Reference:
    names = {one.name: isinstance(one, ast.FunctionDef) for one in _definitions(tree)}
    for made in _made_near(path):
        if made.title in names:
            return made
    exercises = every_exercise().exercises.values()
    found = [one for one in exercises if names.get(one.title) is one.is_function]
    if len(found) > 1:  # the one that the file is called after, or the last
        found = [one for one in found if one.name == path.stem] or found[-1:]
    if found:
        return reference(found[0])
    hint = next(filter(None, (_meant(one, exercises) for one in _definitions(tree))), "") or _of_teachers(path)
    raise ConfigError(one_line(f"{called}: defines no class or operation of an exercise{hint}"))


def _meant(one: ast.ClassDef | ast.FunctionDef, exercises: Collection[Exercise]) -> str:
    """What a definition was probably meant to be called; empty where nothing is near."""
    titles = [each.title for each in exercises if each.is_function is isinstance(one, ast.FunctionDef)]
    bases = [ast.unparse(base).rpartition(".")[2] for base in getattr(one, "bases", ())]
    if {*bases} & {kind.__name__ for kind in EXERCISES}:  # a teacher's class
        return ""
    near = difflib.get_close_matches(one.name, titles, n=1, cutoff=NEAR)
    meant = next((base for base in bases if base in titles), next(iter(near), ""))
    return f": {one.name} must be called {meant}" if meant else ""


def _of_teachers(path: Path) -> str:
    """Which class a teacher's exercise asks for, or where none was found."""
    asked = [f"{made.title}, of {made.name}{ENDING}" for made in _made_near(path)]
    if asked:
        return f": it needs a class {' or '.join(dict.fromkeys(asked))}"
    places = "the current folder, beside the file, or in the folder above"
    return f"; a teacher's exercise needs its {ENDING} file, and none is in {places}"


def _made_near(path: Path) -> Iterator[Reference]:
    """The exercises of teachers in the current folder, beside the file, and in the folder around it."""
    for folder in dict.fromkeys([Path.cwd(), path.absolute().parent, path.absolute().parent.parent]):
        for file in sorted(folder.glob(f"*{ENDING}")):
            yield read_reference(file)


def _definitions(tree: ast.Module) -> Iterator[ast.ClassDef | ast.FunctionDef]:
    return (one for one in tree.body if isinstance(one, ast.ClassDef | ast.FunctionDef))


def _functions(own: ast.stmt) -> Iterator[ast.FunctionDef]:
    return (one for one in ast.walk(own) if isinstance(one, ast.FunctionDef))


def _is_open(one: ast.FunctionDef) -> bool:
    """Whether a function has a docstring, and raises NotImplementedError."""
    body = [part for part in one.body if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))]
    if len(body) != 1 or not isinstance(body[0], ast.Raise) or body[0].exc is None:
        return False
    return "NotImplementedError" in ast.unparse(body[0].exc)
