"""A folder of hand-ins: each is run by itself."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from exercise_files import RIGHT, VARIANCE, layer_norm

from nn_manual.errors import ConfigError
from nn_manual.exercises.grading import COLUMNS, grade, write

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
        "berta/layer_norm.py", "layer_norm", "yes", "4", "4", "right: 4 tensors on 51 inputs", "no", "",
    ]
    assert carl[1:5] == ["layer_norm", "no", "3", "4"]
    assert carl[5].startswith("grad_input is wrong. This is the right grad_input without")
    assert dora == ["dora.py", "", "no", "0", "0", "dora.py:1: it isn't Python yet: '(' was never closed", "no", ""]


def test_folders_without_hand_ins(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere: there is no such folder"):
        grade(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"no \.py file is in it"):
        grade(tmp_path)


def test_without_a_file_the_grades_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    write([], None)
    assert capsys.readouterr().out == ",".join(COLUMNS) + "\n"
