"""Each word of a formula that isn't NumPy's is in the file, or it is told what it is."""

from __future__ import annotations

import ast
import builtins
import re

import numpy as np
import pytest

from nn_manual.exercises.files.source import bound_names, plain_text
from nn_manual.exercises.files.started import started
from nn_manual.exercises.files.statement import hints, order, statement
from nn_manual.exercises.kinds.every_exercise import every_exercise, find_exercise
from nn_manual.exercises.kinds.words import written_words


@pytest.mark.parametrize("name", every_exercise().exercises)
def test_each_word_of_a_formula_is_known(name: str) -> None:
    exercise = find_exercise(name)
    if exercise.formulas():
        return
    stated = statement(exercise)
    text = "\n".join([*(line for line in stated.splitlines() if line.startswith("    ")), *hints(exercise)])
    formulas = "\n".join(line for line in text.splitlines() if " = " in line)
    own = bound_names(started(exercise, "file.py")) | {*order(exercise), exercise.title}
    called = {*re.findall(r"(?<![\w.])([A-Za-z_]\w*)\(", formulas)}
    known = {word for word in called if hasattr(np, word) or hasattr(builtins, word)}
    prose = re.sub(r"^    .*$", "", plain_text(exercise.owner), flags=re.MULTILINE)
    told = {*written_words(exercise, formulas)} | {*re.findall(r"\w+", prose)}
    assert called - known - own <= told


def test_the_file_tells_how_they_are_written() -> None:
    text = started(find_exercise("causal_self_attention"), "file.py")
    assert "        split            self._split(x), a tuple of one array, or of three" in text  # not NumPy's
    assert '        out_proj.weight  vars(self.param)["out_proj.weight"]\n' in text
    assert "        join             x.swapaxes(1, 2).reshape(batch, time, -1)" in text
    assert "rotate_back  " not in text  # of the way back
    ast.parse(text)


def test_the_way_back_of_attention_is_told_with_its_hints() -> None:
    exercise = find_exercise("causal_self_attention")
    words = written_words(exercise, "\n".join(hints(exercise)))
    assert words["rotate_back"].startswith("rotate(x, back=True)")
    assert words["add_up"] == "self._by_group(x).sum(axis=2)"
