"""docs/exercises.md: its commands and its Python work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from exercise_files import OPEN, RIGHT, VARIANCE
from page_commands import commands

from nn_manual.cli import main
from nn_manual.cli.options import parse
from nn_manual.exercises.commands import progress

PAGE = (Path(__file__).parents[1] / "docs" / "exercises.md").read_text(encoding="utf-8")


def test_the_commands_work_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    listing, start, check, hint, solution, watch, picture = commands(PAGE, "## For readers")
    assert [main(listing), main(start)] == [0, 0]
    file = Path("layer_norm.py")
    file.write_text(file.read_text().replace(OPEN, RIGHT.replace(VARIANCE, "")))
    capsys.readouterr()
    assert main(check) == 3
    screen = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)[0]
    assert capsys.readouterr().out.startswith(screen)
    assert main(picture) == 3
    assert Path("jacobian.png").read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()
    assert [main(hint), main(solution)] == [0, 0]
    assert parse(watch).watch
    assert progress.FILE in PAGE


def test_what_teachers_call_is_a_command() -> None:
    make, grade = commands(PAGE, "## For teachers")
    assert parse(make).component == "my_layers.py:Swish"
    assert parse(grade).folder == Path("handins")


def test_python_works_as_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    own, tensors = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(own.replace("check(MyTanh)", "verdict = check(MyTanh)"), "docs/exercises.md", "exec"), names)
    assert names["verdict"].passed  # type: ignore[attr-defined]
    exec(compile(tensors, "docs/exercises.md", "exec"), {})
    assert capsys.readouterr().out == re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)[1]
