"""README's Python runs as it stands, and does what the text says it does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from page_commands import commands

from nn_manual.cli.options import parse

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LAYER, TRAINING, FUNCTION = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def run(block: str, names: dict[str, Any] | None = None) -> dict[str, Any]:
    names = {"__name__": "readme"} if names is None else names
    exec(compile(block, "README.md", "exec"), names)
    return names


def test_the_mistake_in_the_layer_is_reported_as_shown(capsys: pytest.CaptureFixture[str]) -> None:
    run(LAYER)
    report = capsys.readouterr().out
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    reported = dict(line.split(maxsplit=1) for line in report.splitlines() if line)
    for line in shown.splitlines():
        if line and line != "...":
            name, rest = line.split(maxsplit=1)
            # Rounding differs from machine to machine: beside the names and shapes, only what is wrong is compared.
            rounding = name[0].isdigit() and "WRONG" not in rest
            assert reported[name].split()[: 1 if rounding else None] == rest.split()[: 1 if rounding else None]


def test_the_right_layer_passes_and_the_training_learns(capsys: pytest.CaptureFixture[str]) -> None:
    right = LAYER.replace("(1 + np.abs(saved))      # wrong: the square is missing", "(1 + np.abs(saved)) ** 2")
    assert right != LAYER
    names = run(right)
    assert "tensors equal torch's" in capsys.readouterr().out
    run(TRAINING, names)
    loss, accuracy = map(float, capsys.readouterr().out.split())
    assert loss < 0.2
    assert accuracy > 0.9


@pytest.mark.slow
def test_the_function_is_right() -> None:
    """It alone runs the page's check of a function."""
    assert run(FUNCTION)["report"].passed
    with pytest.raises(AssertionError, match="wrong first in Square: grad_x"):
        run(FUNCTION.replace("return 2 * x", "return 3 * x"))


def test_the_commands_are_ones(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = commands(README, "## A table of your own")
    assert len(arguments) == 4
    for command in arguments:
        parse(command)
    assert capsys.readouterr().err == ""


def test_where_the_command_is() -> None:
    assert "`.venv/bin/nn-manual`" in README
    assert "source .venv/bin/activate\n" in README
    assert "VENV := .venv\n" in (ROOT / "Makefile").read_text()
