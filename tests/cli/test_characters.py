"""Names that a terminal can't show, or that would move its cursor."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from runs import CONFIG

from nn_manual.cli import commands, main
from nn_manual.errors import DataError

from .conftest import UNCHECKED

#: A terminal that only knows ASCII, and one on a system whose names of files are ASCII, too.
ASCII_TERMINAL = {"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "ascii"}
ASCII_SYSTEM = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
DATA = "data: {Arrays: {file: dä.csv, target: y, task: classification}}"
OF_CSV = re.sub("data: .*", DATA, CONFIG)
CSV = "a\u202e,b,y\n" + "1,2,0\n3,4,1\n5,6,1\n" * 10


def run(folder: Path, environment: dict[str, str], *arguments: str) -> tuple[int, str]:
    """The exit status, and all that is said."""
    done = subprocess.run(
        [sys.executable, "-m", "nn_manual", *arguments],
        cwd=folder, env=os.environ | environment, capture_output=True, check=False,
    )  # fmt: skip
    return done.returncode, (done.stdout + done.stderr).decode("ascii")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "umlauts"),
    [
        (ASCII_TERMINAL, ("\\xe4", "\\xf6", "\\xfc")),
        (ASCII_SYSTEM, ("\\udcc3\\udca4", "\\udcc3\\udcb6", "\\udcc3\\udcbc")),
    ],
)
def test_a_path_that_an_ascii_terminal_lacks(
    tmp_path: Path, environment: dict[str, str], umlauts: tuple[str, str, str]
) -> None:
    """It alone has processes whose terminal lacks the characters of a path."""
    a, o, u = umlauts
    folder = tmp_path / "é漢"
    folder.mkdir()
    (folder / "kö.yaml").write_text(OF_CSV, encoding="utf-8")
    (folder / "dä.csv").write_text(CSV, encoding="utf-8")
    status, said = run(folder, environment, "train", "kö.yaml", "epochs=1", UNCHECKED, "--run-dir", "rün")
    assert (status, said.splitlines()[-1]) == (0, f"run directory r{u}n")
    assert "/dä.csv" in (folder / "rün" / "config.yaml").read_text(encoding="utf-8")
    assert run(folder, environment, "plot", "rün", "-o", "ä.png") == (0, f"{a}.png\n")
    assert (folder / "ä.png").exists()
    for arguments, status, message in [
        (["train", "nö.yaml"], 2, f"nn-manual: n{o}.yaml: No such file or directory\n"),
        (["plot", "nö"], 5, f"nn-manual: n{o}: no such run\n"),
    ]:
        assert run(folder, environment, *arguments) == (status, message)


def test_names_that_move_the_cursor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = tmp_path / "a\nb\x1b[2J\u202e"
    shown = f"{tmp_path}/a\\nb\\x1b[2J\\u202e"
    assert main(["plot", str(name)]) == 5
    assert capsys.readouterr().err == f"nn-manual: {shown}: no such run\n"
    (tmp_path / "small.yaml").write_text(CONFIG)
    assert main(["train", str(tmp_path / "small.yaml"), "epochs=1", UNCHECKED, "--run-dir", str(name)]) == 0
    assert capsys.readouterr().out.endswith(f"run directory {shown}\n")
    assert main(["plot", str(name), "-o", f"{name}.png"]) == 0
    assert capsys.readouterr().out == f"{shown}.png\n"
    with pytest.raises(SystemExit):
        main(["plot", "run", "\x1b[2J", "--no\x07"])
    assert capsys.readouterr().err.endswith("nn-manual: error: unrecognized arguments: --no\\x07\n")


def test_a_path_that_is_not_utf_8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "\udcff"
    folder.mkdir()
    (folder / "small.yaml").write_text(OF_CSV, encoding="utf-8")
    (folder / "dä.csv").write_text(CSV, encoding="utf-8")
    assert main(["train", str(folder / "small.yaml"), "--run-dir", str(tmp_path / "run")]) == 2
    message = f"nn-manual: {tmp_path}/\\udcff/dä.csv: a config can't hold this path: it is not UTF-8\n"
    assert capsys.readouterr().err == message
    assert not (tmp_path / "run").exists()


def test_a_note_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_: object) -> int:
        error = DataError("a\x1b")
        error.add_note("b\nc")
        raise error

    monkeypatch.setattr(commands, "plot", fail)
    assert main(["plot", "run"]) == 5
    assert capsys.readouterr().err == "nn-manual: a\\x1b\nb\\nc\n"
