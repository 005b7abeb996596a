"""nn-manual exercise: what is printed, and the exit statuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from exercise_files import OPEN, RIGHT, VARIANCE, layer_norm

from nn_manual.cli import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_from_the_list_to_the_solution(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["exercise"]) == 0
    assert capsys.readouterr().out.startswith("Calculus of arrays\n  square, tanh, ")
    assert main(["exercise", "start", "layer_norm"]) == 0
    assert capsys.readouterr().out == (
        "layer_norm.py is yours to complete.\nTo check it: nn-manual exercise check layer_norm.py\n"
    )
    file = Path("layer_norm.py")
    file.write_text(file.read_text().replace(OPEN, RIGHT))
    assert main(["exercise", "check", "layer_norm.py"]) == 0
    said = "Everything is right.\nThe next one: nn-manual exercise start batch_norm1d\n"
    assert capsys.readouterr().out.endswith(said)
    assert main(["exercise", "hint", "layer_norm"]) == 0
    assert capsys.readouterr().out.startswith("1 of 15\n  Derivation, ")
    assert main(["exercise"]) == 0
    assert "layer_norm (solved, 1 hint)," in capsys.readouterr().out
    assert main(["exercise", "solution", "layer_norm.py"]) == 0
    assert capsys.readouterr().out.startswith("# yours\n\ndef backward")


def test_a_wrong_gradient_has_status_3(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").write_text(layer_norm(RIGHT.replace(VARIANCE, "")))
    assert main(["exercise", "check", "mine.py"]) == 3
    printed = capsys.readouterr()
    assert printed.out.startswith("LayerNorm in mine.py, 51 inputs\n")
    assert printed.out.endswith("For a hint: nn-manual exercise hint mine.py\n")
    assert printed.err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["start", "layr_norm"], "there is no exercise 'layr_norm'; did you mean 'layer_norm'?"),
        (["start", "square", "-o", "mine.py"], "mine.py is there already, and nothing is overwritten"),
        (["check", "nowhere.py"], "nowhere.py: No such file or directory"),
        (["check", "mine.py"], "mine.py:1: it isn't Python yet: '(' was never closed"),
        (["check", "mine.py", "--picture", "it.txt"], "it.txt: the name of a figure must end in .png, .svg, .pdf"),
        (["list"], "without a command, nn-manual exercise lists the exercises"),
        (["hint", "squar"], "there is no exercise 'squar'; did you mean 'square'?"),
        (["solution", "mine.py"], "mine.py:1: it isn't Python yet: '(' was never closed"),
        (["make", "my_layers.py:Swish", "-o", "swish.txt"], "--output swish.txt: the exercise is a Python file, .py"),
        (["make", "my_layers.py:Swish", "-o", "swish.py"], "my_layers.py: there is no such file"),
        (["grade", "nowhere"], "nowhere: there is no such folder"),
        (["grade", ".", "-o", "mine.py"], "mine.py is there already, and nothing is overwritten"),
    ],
)
def test_misuse_gets_one_message(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").write_text("x = (\n")
    assert main(["exercise", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"nn-manual: {message}")
    assert printed.err.count("\n") == 1
    assert Path("mine.py").read_text() == "x = (\n"
    assert [*Path().iterdir()] == [Path("mine.py")]


def test_grades_are_printed_or_written(capsys: pytest.CaptureFixture[str]) -> None:
    Path("handins").mkdir()
    Path("handins/anna.py").write_text("x = (\n")
    assert main(["exercise", "grade", "handins"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "file,exercise,solved,right,of,verdict,autograd,notes",
        "anna.py,,no,0,0,anna.py:1: it isn't Python yet: '(' was never closed,no,",
    ]
    assert main(["exercise", "grade", "handins", "-o", "grades.csv"]) == 0
    assert capsys.readouterr().out == "1 hand-in, 0 solved, in grades.csv\n"
