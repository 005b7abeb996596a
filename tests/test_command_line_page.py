"""docs/command_line.md: its commands work, and its exit statuses are the code's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from page_commands import commands

from nn_manual import cli, errors
from nn_manual.cli.options import parse

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_commands_work_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It alone runs all commands of the page."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").symlink_to(ROOT / "config")
    arguments = commands(PAGE, "these work\none after the other:")
    assert len(arguments) == 13
    for command in arguments:
        parse(command)
        if not {"--catalogue", "--ops"} & set(command):  # which take long, and have tests of their own
            assert cli.main(command) == 0, command
    assert (tmp_path / "runs" / "curves.svg").exists()
    assert (tmp_path / "runs" / "slow" / "confusion.png").exists()
    assert (tmp_path / "runs" / "step.py").exists()


def test_the_examples_of_commands_are_ones(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = commands(PAGE, "And for example,")
    assert len(arguments) == 7
    for command in arguments:
        parse(command)
    assert capsys.readouterr().err == ""


def test_the_exit_statuses_are_those_of_the_errors_and_signals() -> None:
    (sentence,) = re.findall(r"## Exit status\n\n(.*)", PAGE, re.DOTALL)
    stated = {int(number) for number in re.findall(r"\d+", sentence)}
    of_errors = {error.exit_status for error in errors.NNManualError.__subclasses__()}
    of_signals = {errors.Interrupted(signum).exit_status for signum in errors.SIGNALS}
    assert stated == {0, cli.BROKEN_PIPE, *of_errors, *of_signals}
