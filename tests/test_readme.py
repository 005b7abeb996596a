"""README's Python runs as it stands, and does what the text says it does."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nn_manual import Sequential, check_gradients, cli, errors
from nn_manual.check.catalogue.upstream import UpstreamLoss
from nn_manual.cli.options import parse

ROOT = Path(__file__).parents[1]
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
    assert missing == []


def test_the_example_trains(capsys: pytest.CaptureFixture[str]) -> None:
    names = run(BLOCKS[1])
    assert "tensors equal torch's" in capsys.readouterr().out
    assert names["step"].loss < 0.2
    assert (names["model"](names["input"]).argmax(axis=1) == names["target"]).mean() > 0.9


def test_the_layer_shown_is_right_and_its_mistake_is_found() -> None:
    generator = np.random.default_rng(0)
    input, grad_output = generator.standard_normal((2, 4, 3))
    block = BLOCKS[3]
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
    of_signals = {errors.Interrupted(signum).exit_status for signum in errors.SIGNALS}
    assert stated == {0, cli.BROKEN_PIPE, *of_errors, *of_signals}


def commands(after: str) -> list[list[str]]:
    """The arguments of each nn-manual in the block behind these words."""
    block = README.partition(after)[2].partition("```sh\n")[2].partition("```")[0]
    lines = [shlex.split(line, comments=True) for line in block.splitlines()]
    assert all(line[0] == "nn-manual" for line in lines)
    return [line[1:] for line in lines]


def test_the_commands_work_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").symlink_to(ROOT / "config")
    arguments = commands("In this folder, one after the other:")
    assert len(arguments) == 10
    for command in arguments:
        parse(command)
        if not {"--catalogue", "--ops"} & set(command):  # which take long, and have tests of their own
            assert cli.main(command) == 0, command
    assert (tmp_path / "runs" / "curves.svg").exists()
    assert (tmp_path / "runs" / "slow" / "confusion.png").exists()
    capsys.readouterr()
    names = run(BLOCKS[2])
    assert names["run"].predict([[0.0] * 64]).shape == (1, 10)
    assert capsys.readouterr().out.startswith("[[")


def test_the_examples_of_commands_are_ones(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = commands("And for example,")
    assert len(arguments) == 6
    for command in arguments:
        parse(command)
    assert capsys.readouterr().err == ""


def test_where_the_command_is() -> None:
    assert "`.venv/bin/nn-manual`" in README
    assert "source .venv/bin/activate\n" in README
    assert "VENV := .venv\n" in (ROOT / "Makefile").read_text()
