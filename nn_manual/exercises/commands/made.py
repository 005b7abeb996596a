"""An exercise of a teacher's own class: the text to hand out, and beside it the results that are right."""

from __future__ import annotations

import ast
import inspect
import io
import sys
import textwrap
import tokenize
from collections.abc import Iterator
from pathlib import Path

from nn_manual.check.catalogue.catalogue import NOT_CHECKED, check_classes
from nn_manual.check.judge.report import mismatch_of
from nn_manual.config import classes_in, names_classes
from nn_manual.config.users_code import placed_words
from nn_manual.docstrings import text_of
from nn_manual.errors import ConfigError, raise_if_nobodys_fault
from nn_manual.exercises.files.source import is_of_contract, method, opened, read_names
from nn_manual.exercises.files.started import docstring, head
from nn_manual.exercises.files.statement import without_way_back
from nn_manual.exercises.kinds.every_exercise import EXERCISES, taken_out
from nn_manual.exercises.kinds.exercise import Exercise, Reached
from nn_manual.exercises.running.reference import ENDING, made_reference, refuse_existing
from nn_manual.exercises.running.solving import cases_of
from nn_manual.exercises.running.unused import unused_methods
from nn_manual.messages.text import one_line, print_note, quoted
from nn_manual.registry import KINDS, kind_of
from nn_manual.run_directory.files import write_atomically

#: A line that is left out.
_GONE = "\0"


def make(component: str, output: Path) -> Path:
    """Write the exercise of the class that `FILE.py:Class` names, and say where the results lie. Raises ConfigError
    for a class of another kind, one that inherits what would be written, or never calls it, one that raises an error,
    and where one of the two files is there; GradientMismatch for a class that `nn-manual check` finds wrong.
    """
    if not names_classes(component) or ":" not in component:
        raise ConfigError(f"{quoted(component)} names no class: write my_layers.py:Swish")
    beside = output.with_suffix(ENDING)
    refuse_existing(output)
    refuse_existing(beside)
    (own,) = classes_in(component)
    kind = kind_of(own)
    if kind not in EXERCISES:
        raise ConfigError(f"{component} is a {KINDS[kind].label}, which has no derivative to write")
    exercise = EXERCISES[kind](output.stem, own, taken_out(own, _method(own, EXERCISES[kind].methods, component)))
    try:
        with unused_methods(exercise, own) as unused:
            right = made_reference(exercise, cases_of(exercise, is_made=True))
    except BaseException as error:  # the class may raise anything
        raise_if_nobodys_fault(error)
        raised = error.error if isinstance(error, Reached) else error
        raise ConfigError(one_line(placed_words(raised, Path(inspect.getfile(own)).parent))) from None
    if never := [name for name in exercise.taken_out if name in unused]:
        raise ConfigError(f"{component}: {never[0]} is never called, so that nothing would check it: leave it out")
    _refuse_wrong(own)
    text = _text(exercise, output.name)
    write_atomically(beside, right.to_bytes(exercise, kind.__name__))
    write_atomically(output, text.encode())
    return beside


def _refuse_wrong(own: type) -> None:
    """Check the class as `nn-manual check` does. One that nothing can be compared with gets a note."""
    for entry in check_classes([own]).entries:
        if entry.failure is None:
            continue
        if NOT_CHECKED not in (entry.failure.problem or ""):
            raise mismatch_of(entry.failure)
        print_note(f"note: {entry.failure.problem}: what it computes counts as right")
        return


def _method(own: type, methods: tuple[str, ...], component: str) -> str:
    """The method that is left to the reader."""
    found = next((name for name in methods if name in vars(own)), None)
    if found is None:
        raise ConfigError(f"{component} defines none of {', '.join(methods)} itself: nothing is left to write")
    return found


def _text(exercise: Exercise, file_name: str) -> str:
    """The class without what is taken out, and whatever of its module it reads."""
    own: type = exercise.owner
    source = textwrap.dedent(inspect.getsource(own))
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    lines = source.splitlines()
    only_back = _only_back(own, tree, exercise.taken_out)
    first = min(one.lineno for one in tree.body) - 1
    is_documented = ast.get_docstring(tree) is not None
    stated = without_way_back(text_of(own)) if is_documented else ""
    parts = [docstring(stated, "    ")] if stated else []
    for one in tree.body[1:] if is_documented else tree.body:
        if isinstance(one, ast.FunctionDef) and one.name in exercise.taken_out:
            text = opened(method(own, one.name), exercise.asked_of(one.name))
            parts.append(textwrap.indent(text, "    "))
        elif not (isinstance(one, ast.FunctionDef) and one.name in only_back):
            parts.append("\n".join(lines[_first_line(one) - 1 : one.end_lineno]))
    body = _joined(parts)
    text = "\n".join([*lines[:first], body, ""])
    return head(exercise, file_name) + _untold("\n\n\n".join([*_of_module(own, text), text]), exercise.taken_out)


def _untold(text: str, open_ones: tuple[str, ...]) -> str:
    """Code without its comments, and without the docstrings of functions that tell of the way back."""
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip() or _GONE
    for one in ast.walk(ast.parse(text)):
        if isinstance(one, ast.FunctionDef) and one.name not in open_ones and len(one.body) > 1:
            told, first = ast.get_docstring(one), one.body[0]
            if told is not None and without_way_back(told) != told.strip() and first.lineno > one.lineno:
                rows = range(first.lineno - 1, first.end_lineno or first.lineno)
                lines[rows.start : rows.stop] = [_GONE] * len(rows)
    return "\n".join(line for line in lines if line is not _GONE) + "\n"


def _joined(parts: list[str]) -> str:
    """Fields stand below each other, methods with a line between them."""
    text = ""
    for part in parts:
        is_field = "\n" not in part and not part.lstrip().startswith(('"', "@", "def"))
        last = text.rpartition("\n")[2]
        follows = is_field and ":" in last and not last.endswith('"""')
        text += ("\n" if follows else "\n\n" if text else "") + part
    return text


def _first_line(one: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(one, "decorator_list", [])
    return min([one.lineno, *(each.lineno for each in decorators)])


def _only_back(own: type, tree: ast.ClassDef, taken_out: tuple[str, ...]) -> set[str]:
    """The helpers that only the methods which are taken out call."""
    functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
    helpers = {name for name in functions if name in taken_out or not is_of_contract(own, name)}
    calls = {
        name: {node.attr for node in ast.walk(one) if isinstance(node, ast.Attribute)} & helpers
        for name, one in functions.items()
    }
    back = _reached(calls, {*taken_out})
    return back - _reached(calls, functions.keys() - back) - {*taken_out}


def _reached(calls: dict[str, set[str]], names: set[str]) -> set[str]:
    reached = set(names)
    while more := {called for name in reached for called in calls.get(name, ())} - reached:
        reached |= more
    return reached


def _of_module(own: type, text: str) -> Iterator[str]:
    """The imports and the definitions of the class's module that a text reads, as they stand there."""
    source = inspect.getsource(sys.modules[own.__module__])
    lines = source.splitlines()
    body = [one for one in ast.parse(source).body if getattr(one, "name", "") != own.__name__]
    needed = read_names(ast.parse(text)) | {"np"}  # a reader's code may need it where the teacher's forward doesn't
    found: set[int] = set()
    while more := [one for one in body if one.lineno not in found and needed & {*_bound(one)}]:
        found |= {one.lineno for one in more}
        needed |= {name for one in more for name in read_names(one)}
    kept = [one for one in body if one.lineno in found]
    imported = [_import(one, needed) for one in kept if isinstance(one, ast.Import | ast.ImportFrom)]
    if imported:
        yield "\n".join(imported)
    for one in kept:
        if not isinstance(one, ast.Import | ast.ImportFrom):
            yield "\n".join(lines[_first_line(one) - 1 : one.end_lineno])


def _import(one: ast.Import | ast.ImportFrom, needed: set[str]) -> str:
    names = [alias for alias in one.names if (alias.asname or alias.name.partition(".")[0]) in needed]
    kept: ast.stmt = ast.Import(names) if isinstance(one, ast.Import) else ast.ImportFrom(one.module, names, one.level)
    return ast.unparse(kept)


def _bound(one: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module defines."""
    if isinstance(one, ast.Import | ast.ImportFrom):
        if getattr(one, "module", "") != "__future__":
            yield from (alias.asname or alias.name.partition(".")[0] for alias in one.names)
    elif isinstance(one, ast.FunctionDef | ast.ClassDef):
        yield one.name
    else:
        written = (node for node in ast.walk(one) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        yield from (node.id for node in written)
