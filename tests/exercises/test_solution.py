"""The solution that is printed: put in the place of what the file leaves open, it passes."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest
from exercise_files import module, some_cases
from slow_cases import slow

from nn_manual.exercises.commands.checking import check_file
from nn_manual.exercises.commands.starting import ours
from nn_manual.exercises.files.started import started
from nn_manual.exercises.kinds.every_exercise import every_exercise, find_exercise
from nn_manual.exercises.kinds.exercise import Exercise
from nn_manual.exercises.running.answer import Answer
from nn_manual.exercises.running.solving import results_of
from nn_manual.exercises.running.unused import unused_methods
from nn_manual.exercises.verdicts.judging import judge

FUTURE = "from __future__ import annotations"
EVERY = every_exercise().exercises


def solved(exercise: Exercise) -> str:
    """The file of an exercise with the printed solution in it."""
    lines = started(exercise, "file.py").splitlines()
    *needed, code = "\n\n".join(ours(exercise)).split("# below the imports\n\n")
    own = ast.parse("\n".join(lines)).body[-1]
    assert isinstance(own, ast.FunctionDef | ast.ClassDef)
    if exercise.way_back():
        names = [f"    {line.partition(' = ')[0]} = ..." for line in code.splitlines()]
        lines = [line for line in lines if line not in names]
        place = next(i for i, line in enumerate(lines) if line.startswith("    return {"))
        lines[place:place] = [textwrap.indent(code, "    ")]
    elif isinstance(own, ast.FunctionDef):
        lines[own.decorator_list[0].lineno - 1 :] = [code]
    else:
        for one in reversed(own.body):
            if isinstance(one, ast.FunctionDef) and one.name in exercise.taken_out:
                del lines[one.lineno - 1 : one.end_lineno]
        lines.append(textwrap.indent(code, "    "))
    place = lines.index(FUTURE) + 1
    return "\n".join([*lines[:place], *needed, *lines[place:]])


@pytest.mark.parametrize("name", EVERY)
def test_the_printed_solution_passes(name: str) -> None:
    exercise, right = find_exercise(name), some_cases(name)
    own = getattr(module(solved(exercise), f"solved_{name}"), exercise.title)
    with unused_methods(exercise, own) as unused:
        results = results_of(right.cases, own, "")
    assert not unused.keys() & {*exercise.taken_out}
    verdict = judge(right, Answer(results, unused=unused), "file")
    assert verdict.passed, str(verdict)


@pytest.mark.parametrize("name", [name if name == "residual" else slow(name) for name in EVERY])
def test_it_passes_in_a_process(name: str, tmp_path: Path) -> None:
    """There, the package's own method refuses the reader's class."""
    path = tmp_path / "file.py"
    path.write_text(solved(find_exercise(name)))
    verdict = check_file(path).verdict
    assert verdict.passed, str(verdict)


def test_super_in_the_place_of_it_is_told(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text(solved(find_exercise("residual")).replace("super(layers.Residual, self)", "super()"))
    assert check_file(path).verdict.first_words.endswith(
        "it calls nn_manual's own Residual.backward: write it yourself, with super(layers.Residual, self).backward "
        "for the one behind it"
    )
