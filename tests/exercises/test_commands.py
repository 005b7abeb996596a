"""What a reader asks for: an exercise to begin with, hints, the solution, and the list."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from exercise_files import RIGHT, layer_norm

from nn_manual.errors import ConfigError
from nn_manual.exercises.commands import progress
from nn_manual.exercises.commands.starting import hint, solution, start
from nn_manual.exercises.files.statement import hints
from nn_manual.exercises.kinds.every_exercise import CHAPTERS, every_exercise


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_start_writes_a_file_and_never_over_one() -> None:
    assert start("square", None) == Path("square.py")
    assert start("square", Path("mine.py")) == Path("mine.py")
    assert "nn-manual exercise check mine.py" in Path("mine.py").read_text()
    Path("square.py").write_text("mine")
    with pytest.raises(ConfigError, match=r"square\.py is there already"):
        start("square", None)
    Path("tanh.py").symlink_to("nowhere")
    with pytest.raises(ConfigError, match=r"tanh\.py is there already"):
        start("tanh", None)
    assert Path("square.py").read_text() == "mine"


def test_the_file_of_an_exercise_is_a_python_file() -> None:
    with pytest.raises(ConfigError, match=r"--output t\.txt: the exercise is a Python file, \.py"):
        start("tanh", Path("t.txt"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("layr_norm", "there is no exercise 'layr_norm'; did you mean 'layer_norm'?"),
        ("attention", "there is no exercise 'attention'; did you mean 'causal_self_attention' or "
         "'padded_causal_self_attention'?"),
        ("rms", "there is no exercise 'rms'; did you mean 'rms_norm' or 'rmsprop'?"),
        ("BatchNorm", "there is no exercise 'BatchNorm'; did you mean 'batch_norm1d'?"),
        ("loss", "there is no exercise 'loss'; nn-manual exercise lists them"),
        ("qqqqqq", "there is no exercise 'qqqqqq'; nn-manual exercise lists them"),
        ("LayerNorm", "there is no exercise 'LayerNorm': it is called layer_norm"),
        ("conv2d", "'conv2d' is no exercise: its backward is that of Conv1d"),
    ],
)
def test_an_unknown_exercise(name: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        start(name, None)
    assert str(caught.value) == said
    assert not [*Path().iterdir()]


def test_each_hint_shows_one_line_more_up_to_the_solution() -> None:
    first, second = hint("square").splitlines(), hint("square").splitlines()
    assert first == ["1 of 2", "  Derivation: (x + h)**2 = x**2 + 2 x h + h**2; the term linear in h is 2 x h."]
    assert second[1:3] == [*first[1:], "  grad_input = grad_answer * 2 * input"]
    assert second == ["2 of 2", *second[1:3], "For our solution: nn-manual exercise solution square"]
    assert hint("square").splitlines() == second


def test_hints_have_room_in_80_columns() -> None:
    for name, exercise in every_exercise().exercises.items():
        if lines := hints(exercise):
            Path(progress.FILE).write_text(json.dumps({name: {"solved": False, "hints": len(lines)}}))
            rows = hint(name).splitlines()
            assert all(len(row) <= 80 or len(row.split()) == 1 for row in rows[:-1]), name


def test_hints_of_a_file_are_counted_beside_it() -> None:
    Path("inner").mkdir()
    Path("inner/mine.py").write_text(layer_norm(RIGHT))
    assert hint("inner/mine.py").startswith("1 of 15\n")
    assert progress.done(Path("inner")) == {"layer_norm": progress.Done(hints=1)}
    assert progress.done(Path()) == {}


def test_words_of_formulas_that_the_file_has_not_stand_below_the_hints() -> None:
    assert "unbroadcast" not in hint("multiply")
    Path(progress.FILE).write_text(json.dumps({"multiply": {"solved": False, "hints": 9}}))
    assert hint("multiply").splitlines()[-4:-1] == [
        "  In code, these words of the formulas are:",
        "      unbroadcast  unbroadcast(x, shape), of nn_manual.ops: the sum over what",
        "    broadcasting repeated",
    ]


def test_what_has_no_derivation_says_so() -> None:
    assert hint("sgd").startswith("sgd has no derivation: the formulas in its file say what to write.")


def test_the_solution_stands_below_the_readers() -> None:
    said = solution("layer_norm")
    head, _, code = said.partition("# below the imports\n\n")
    assert head == (
        "# nn_manual's\n\n# at the top of the file\n\nfrom nn_manual.layers.fast_forms import sum_rows\n\n"
    )
    assert code.startswith("def backward(self, saved")
    assert "def _grad_of_rows" in said
    assert "def forward" not in said
    Path("layer_norm.py").write_text(layer_norm(RIGHT))
    said = solution("layer_norm")
    assert said.startswith("# yours\n\ndef backward(self, saved")
    assert "np.einsum" in said.partition("# nn_manual's")[0]
    assert solution("layer_norm.py") == said


def test_the_solution_of_an_operation_is_its_rule() -> None:
    said = solution("multiply")
    assert "lambda grad_answer: unbroadcast(grad_answer * b, a.shape)" in said
    assert "Derivation" not in said
    assert " import error" not in solution("power")  # the name of an exception that it catches


def test_the_path_goes_on_in_the_next_chapter() -> None:
    chapters = every_exercise().chapters.values()
    path = every_exercise().path
    assert sorted(path) == sorted(every_exercise().exercises)
    assert path.index("linear") < path.index("abs")
    assert path.index("whole_net") < path.index("abs")
    assert path[: len(CHAPTERS[0].first)] == next(iter(chapters))[: len(CHAPTERS[0].first)]
    assert progress.following(Path()) == "square"
    assert progress.following(Path(), "max") == "linear"
    start("linear", None)
    assert progress.following(Path(), "max") == "mse_loss"
    assert progress.following(Path(), path[-1]) == "square"
    Path(progress.FILE).write_text(json.dumps({name: {"solved": True, "hints": 0} for name in path}))
    assert progress.following(Path()) == ""


def test_the_list_says_what_is_done_here() -> None:
    start("square", None)
    progress.note_checked(Path(), "tanh", passed=True)
    progress.note_hint(Path(), "tanh", 9)
    progress.note_hint(Path(), "log", 9)
    lines = [*progress.listing(Path())]
    assert lines[:2] == [
        "Calculus of arrays",
        "  square (begun), tanh (solved, 1 hint), log (1 hint), power, multiply, sum,",
    ]
    assert lines[-1] == f"1 of {len(every_exercise().exercises)} solved here. To begin: nn-manual exercise start log"
    said = re.sub(r" \([^)]*\)", "", " ".join(line for line in lines if line.startswith("  ")))
    assert {*re.findall(r"\w+", said)} == every_exercise().exercises.keys()
    assert max(map(len, lines)) <= 80
