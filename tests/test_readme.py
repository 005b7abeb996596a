"""README's Python runs as it stands, and does what the text says it does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nn_manual import Sequential, check_gradients, errors
from nn_manual.check.catalogue.upstream import UpstreamLoss

README = Path("README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def run(block: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(block, "README.md", "exec"), names)
    return names


def test_the_tanh_shown_is_the_one_in_the_package() -> None:
    shown, source = BLOCKS[0], Path("nn_manual/layers/activations.py").read_text(encoding="utf-8")
    statements = re.findall(r"^ {8}(?:output|grad_input|return) .*?(?=  #|$)", shown, re.MULTILINE)
    assert len(statements) == 6
    missing = [statement for statement in statements if statement.rstrip() not in source]
    # In the package the last line is annotated, for mypy.
    assert missing == ["        return grad_output * (1 - output * output)"]


def test_the_example_trains(capsys: pytest.CaptureFixture[str]) -> None:
    names = run(BLOCKS[1])
    assert "tensors equal torch's" in capsys.readouterr().out
    assert names["step"].loss < 0.2
    assert (names["model"](names["input"]).argmax(axis=1) == names["target"]).mean() > 0.9


def test_the_layer_shown_is_right_and_its_mistake_is_found() -> None:
    generator = np.random.default_rng(0)
    input, grad_output = generator.standard_normal((2, 4, 3))
    block = BLOCKS[2]
    right = Sequential(run(block)["Squash"](), dtype="float64")
    assert check_gradients(right, UpstreamLoss(), input, grad_output).passed
    without_square = block.replace("np.abs(saved)) ** 2", "np.abs(saved))")
    assert without_square != block
    wrong = Sequential(run(without_square)["Squash"](), dtype="float64")
    report = check_gradients(wrong, UpstreamLoss(), input, grad_output)
    assert [failure.name for failure in report.failures] == ["0.grad_input"]


def test_the_exit_statuses_are_those_of_the_errors_and_signals() -> None:
    (sentence,) = re.findall(r"Exit status:.*?\n\n", README, re.DOTALL)
    stated = {int(number) for number in re.findall(r"\d+", sentence)}
    of_errors = {error.exit_status for error in errors.NNManualError.__subclasses__()}
    assert stated == {0, *of_errors, *(errors.Interrupted(signum).exit_status for signum in errors.SIGNALS)}
