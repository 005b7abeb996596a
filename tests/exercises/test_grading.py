"""A folder of hand-ins: each is run by itself."""

from __future__ import annotations

import csv
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from exercise_files import OPEN, RIGHT, VARIANCE, layer_norm

from nn_manual.errors import ConfigError
from nn_manual.exercises.commands.grading import COLUMNS, Grade, grade, write
from nn_manual.exercises.running.answer import Failure
from nn_manual.exercises.running.process import _of_status
from nn_manual.exercises.running.request import Request

#: It writes where the others and the grades lie, as far as it knows, and changes the package.
INTRUDER = """\
from pathlib import Path
from nn_manual import layers
layers.LayerNorm.forward = None
for place in (Path(), Path("..")):
    for name in ("berta.py", "grades.csv", "layer_norm.py"):
        try:
            (place / name).write_text("x = (")
        except OSError:
            pass
print("a line of mine")
"""


def test_hand_ins_touch_neither_the_others_nor_the_grades(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, output = tmp_path / "handins", tmp_path / "grades.csv"
    (folder / "berta").mkdir(parents=True)
    future, text = "from __future__ import annotations\n", layer_norm(RIGHT)
    (folder / "anna.py").write_text(text.replace(future, f"{future}\n{INTRUDER}"))
    (folder / "berta" / "layer_norm.py").write_text(text)
    (folder / "carl.py").write_text(layer_norm(RIGHT.replace(VARIANCE, "")))
    (folder / ".hidden.py").write_text(text)
    (folder / ".git").mkdir()
    (folder / ".git" / "it.py").write_text(text)
    (folder / "dora.py").write_text("x = (\n")
    before = {path: path.read_bytes() for path in folder.rglob("*.py")}
    write(grade(folder), output)
    assert capsys.readouterr().out == f"4 hand-ins, 1 solved, in {output}\n"
    assert {path: path.read_bytes() for path in folder.rglob("*.py")} == before
    with output.open() as file:
        head, *rows = list(csv.reader(file))
    assert head == list(COLUMNS)
    anna, berta, carl, dora = sorted(rows)
    assert (anna[0], anna[2]) == ("anna.py", "no")
    assert "anna.py:" in anna[7]
    assert "it changes nn_manual.layers.normalization.LayerNorm.forward" in anna[7] + anna[5]
    assert berta == [
        "berta/layer_norm.py", "layer_norm", "yes", "3", "3", "right: 4 tensors on 51 inputs", "no", "",
    ]
    assert carl[1:5] == ["layer_norm", "no", "2", "3"]
    assert carl[5].startswith("grad_input is wrong. This is the right grad_input without")
    assert dora == ["dora.py", "", "no", "0", "0", "dora.py:1: it isn't Python yet: '(' was never closed", "no", ""]


#: It starts a process that leaves the session, and one whose parent has ended before.
STARTER = """
import subprocess, sys
for command in ("import time; time.sleep(60)", "import os, time; os.fork() and os._exit(0); time.sleep(60)"):
    subprocess.Popen([sys.executable, "-c", command], start_new_session=True)
"""


def running(mark: str) -> list[str]:
    """The processes on Linux with this word in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark in path.read_text(errors="replace"):
                found.append(path.parent.name)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process that leaves its group goes on")
def test_what_a_hand_in_starts_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THIS_TEST", str(tmp_path))
    (tmp_path / "it.py").write_text(layer_norm(RIGHT) + STARTER)
    (one,) = grade(tmp_path)
    assert one.solved
    end = time.monotonic() + 5
    while running(f"OF_THIS_TEST={tmp_path}") and time.monotonic() < end:
        time.sleep(0.05)
    assert running(f"OF_THIS_TEST={tmp_path}") == []


def test_folders_without_hand_ins(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere: there is no such folder"):
        grade(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"no \.py file is in it"):
        grade(tmp_path)


def test_without_a_file_the_grades_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    write([], None)
    assert capsys.readouterr().out == ",".join(COLUMNS) + "\n"


def test_no_cell_is_a_formula_of_a_spreadsheet(capsys: pytest.CaptureFixture[str]) -> None:
    write([Grade("=cmd.py", "-x", solved=False, num_right=0, num_tensors=3, verdict="@sum", notes=["+1"])], None)
    assert capsys.readouterr().out.splitlines()[1] == "'=cmd.py,'-x,no,0,3,'@sum,no,'+1"


def test_what_is_not_written_yet_has_nothing_right(tmp_path: Path) -> None:
    (tmp_path / "it.py").write_text(layer_norm(OPEN))
    (one,) = grade(tmp_path)
    assert (one.num_right, one.num_tensors) == (0, 3)


def test_results_that_take_too_much_memory_to_be_judged_end_no_other(tmp_path: Path) -> None:
    """An array without numbers can have any shape."""
    (tmp_path / "anna.py").write_text(layer_norm("        return np.empty((0, 10**15))\n"))
    (tmp_path / "berta.py").write_text(layer_norm(RIGHT))
    anna, berta = grade(tmp_path)
    assert (anna.exercise, anna.solved, anna.num_right, anna.num_tensors) == ("layer_norm", False, 0, 0)
    assert anna.verdict.startswith("can't be judged: not enough memory: Unable to allocate 7.11 PiB for an array ")
    assert berta.verdict == "right: 4 tensors on 51 inputs"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("MemoryError", "it takes more than 4 GiB of memory: MemoryError"),
        ("KeyError: 'x'", "it ends the process, with status 1: KeyError: 'x'"),
    ],
)
def test_a_process_that_ends_with_an_error_names_it(error: str, said: str) -> None:
    printed = f'Traceback (most recent call last):\n  File "/it.py", line 7, in f\n    x = y\n{error}\n'
    assert _of_status(Request("/it.py", "square", ""), 1, printed) == Failure(said, 7)
