"""An exercise as a file to complete: the component's own text, without what the reader writes."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator

from nn_manual.exercises.files.source import Method, called, imports, leading_to, method, names_in, opened
from nn_manual.exercises.files.statement import formulas_back, statement
from nn_manual.exercises.kinds.exercise import Exercise
from nn_manual.exercises.kinds.formula_words import WORDS_OF_OPERATIONS
from nn_manual.exercises.kinds.of_nets import NetExercise, started_net
from nn_manual.exercises.kinds.of_operations import end_of
from nn_manual.exercises.kinds.words import told_words, written_words
from nn_manual.messages.text import shell_word
from nn_manual.ops import Operation


def started(exercise: Exercise, file_name: str) -> str:
    """The text of the file, which will have this name."""
    if isinstance(exercise, NetExercise):
        return head(exercise, file_name) + started_net(exercise)
    if isinstance(exercise.owner, Operation):
        return head(exercise, file_name) + _started_operation(exercise)
    owner: type = exercise.owner
    leading = [name for name in exercise.given if name not in exercise.taken_out]
    given = [one for one in called(owner, leading) if one.name not in exercise.taken_out]
    open_ones = [method(owner, name) for name in exercise.taken_out]
    heads = [Method(one.name, opened(one, exercise.asked_of(one.name)), one.module) for one in open_ones]
    methods = [textwrap.indent(one.text.rstrip(), "    ") for one in [*given, *heads]]
    body = "\n\n".join([docstring(_documented(exercise), "    "), *methods])
    first = f"class {exercise.title}({exercise.room}.{exercise.title}):"
    needed = _importing_numpy(imports([*given, *heads], exercise.room))
    return f"{head(exercise, file_name)}{needed}\n\n\n{first}\n{body}\n"


def _importing_numpy(imported: str) -> str:
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
    kept = [lines[one.lineno - 1 : one.end_lineno] for one in leading_to(answer, statements)]
    if not isinstance(answer, ast.Name):
        kept.append([f"    answer = {ast.unparse(answer)}"])
    parts.append("\n".join(line for one in kept for line in one))
    if isinstance(backwards[0], ast.Starred):
        parts.append(_OF_ANY_NUMBER)
    else:
        parts += [_of_one(name.arg) for name in [*tree.args.posonlyargs, *tree.args.args]]
    parts.append(f"    {end_of(exercise.owner)}")
    text = "\n".join([*first, "\n\n".join(parts), ""])
    needed = imports([Method(exercise.name, text, rule.__module__), *_for_hints(exercise)])
    return f"{_importing_numpy(needed)}\n\n\n{text}"


def _for_hints(exercise: Exercise) -> Iterator[Method]:
    """The functions of the package that a hint reads, and the rule itself doesn't."""
    read = {name for hint in formulas_back(exercise) for name in names_in(ast.parse(hint), ast.Load)}
    for word, function in WORDS_OF_OPERATIONS.items():
        if word in read:
            yield Method(word, f"def hint():\n    {word}", function.__module__)


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
