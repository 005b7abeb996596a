"""An exercise as a file to complete: the component's own text, without what the reader writes."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

from nn_manual import ops
from nn_manual.exercises.exercise import Exercise
from nn_manual.exercises.of_nets import NetExercise, started_net
from nn_manual.exercises.source import Method, called, imports, method, opened
from nn_manual.exercises.statement import statement
from nn_manual.exercises.words import told_words, written_words
from nn_manual.messages.text import shell_word


def started(exercise: Exercise, file_name: str) -> str:
    """The text of the file, which will have this name."""
    if isinstance(exercise, NetExercise):
        return head(exercise, file_name) + started_net(exercise)
    if isinstance(exercise.owner, ops.Operation):
        return head(exercise, file_name) + _started_operation(exercise)
    owner: type = exercise.owner
    given = [one for one in called(owner, exercise.given) if one.name not in exercise.taken_out]
    open_ones = [method(owner, name) for name in exercise.taken_out]
    heads = [Method(one.name, opened(one, exercise.wanted()), one.module) for one in open_ones]
    methods = [textwrap.indent(one.text.rstrip(), "    ") for one in [*given, *heads]]
    body = "\n\n".join([docstring(_documented(exercise), "    "), *methods])
    first = f"class {exercise.title}({exercise.room}.{exercise.title}):"
    needed = _with_numpy(imports([*given, *heads], exercise.room))
    return f"{head(exercise, file_name)}{needed}\n\n\n{first}\n{body}\n"


def _with_numpy(imported: str) -> str:
    """Import statements together with the one of NumPy, which what is left open may need."""
    numpy = "import numpy as np"
    groups = imported.split("\n\n")
    if any(numpy in group.splitlines() for group in groups):
        return imported
    place = next((i for i, group in enumerate(groups) if "nn_manual" in group), len(groups))
    return "\n\n".join([*groups[:place], numpy, *groups[place:]])


def _documented(exercise: Exercise) -> str:
    """The docstring of the file's class or function."""
    stated = statement(exercise)
    formulas = "\n".join(line for line in stated.splitlines() if line.startswith("    "))
    words = told_words(written_words(exercise, formulas))
    return "\n".join([stated, *(["", *words] if words else [])])


def head(exercise: Exercise, file_name: str) -> str:
    """The first lines of the file: what is asked, and the command that checks it."""
    first = textwrap.fill(f'"""{exercise.title}: {exercise.wanted()}', 110)
    command = f"    nn-manual exercise check {shell_word(file_name)}"
    return f'{first}\n\n{command}\n"""\n\nfrom __future__ import annotations\n\n'


def docstring(text: str, indent: str) -> str:
    """A text as a docstring."""
    lines = text.splitlines()
    written = f'"""{text}"""' if len(lines) == 1 else f'"""{text}\n"""'
    escaped = written.replace("\\", "\\\\")
    return textwrap.indent(escaped, indent)


def _started_operation(exercise: Exercise) -> str:
    """The rule with the functions that take a gradient back left open."""
    rule = exercise.owner.rule
    whole = Method(exercise.name, inspect.getsource(rule), rule.__module__)
    tree = whole.tree
    *statements, end = tree.body[1:]
    assert isinstance(end, ast.Return)
    assert isinstance(end.value, ast.Tuple)
    answer, *backwards = end.value.elts
    lines = whole.text.splitlines()
    first = lines[: tree.body[0].lineno - 1]
    parts = [docstring(_documented(exercise), "    ")]
    kept = [lines[one.lineno - 1 : one.end_lineno] for one in _leading_to(answer, statements)]
    parts += ["\n".join(line for one in kept for line in one)] if kept else []
    names = [name.arg for name in [*tree.args.posonlyargs, *tree.args.args]]
    if isinstance(backwards[0], ast.Starred):
        assert tree.args.vararg is not None
        operands = tree.args.vararg.arg
        parts.append(_OF_ANY_NUMBER)
        returned = f"*(backward_of(position) for position in range(len({operands})))"
    else:
        parts += [_of_one(name) for name in names]
        returned = ", ".join(f"grad_{name}" for name in names)
    parts.append(f"    return {ast.unparse(answer)}, {returned}")
    text = "\n".join([*first, "\n\n".join(parts), ""])
    return f"{_with_numpy(imports([Method(exercise.name, text, rule.__module__)]))}\n\n\n{text}"


def _of_one(name: str) -> str:
    return f'''\
    def grad_{name}(grad_answer: Tensor) -> Tensor:
        """The gradient of {name}, shaped as {name}."""
        raise NotImplementedError'''


_OF_ANY_NUMBER = '''\
    def backward_of(position: int) -> Backward:
        def grad_input(grad_answer: Tensor) -> Tensor:
            """The gradient of the operand at this position, shaped as the operand."""
            raise NotImplementedError

        return grad_input'''


def _leading_to(answer: ast.expr, statements: list[ast.stmt]) -> list[ast.stmt]:
    """The statements that the answer depends on, and those that refuse operands."""
    read, kept = {*_names(answer, ast.Load)}, []
    for one in reversed(statements):
        is_refusal = isinstance(one, ast.If) and isinstance(one.body[-1], ast.Raise)
        written = {one.name} if isinstance(one, ast.FunctionDef) else {*_names(one, ast.Store)}
        if is_refusal or written & read:
            kept.append(one)
            read |= {*_names(one, ast.Load)}
    return kept[::-1]


def _names(tree: ast.AST, context: type[Any]) -> Iterator[str]:
    return (node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, context))
