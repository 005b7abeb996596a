"""A reader's file, run in a process of its own: what is right, what is wrong, and what bad input is told."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from exercise_files import OPEN, RIGHT, VARIANCE, layer_norm
from slow_cases import slow

from nn_manual.cli import main
from nn_manual.errors import ConfigError
from nn_manual.exercises.commands import progress
from nn_manual.exercises.commands.checking import check_file, draw, watch
from nn_manual.exercises.commands.starting import hint
from nn_manual.exercises.running.process import Worker, file_of, run_file
from nn_manual.exercises.running.reader_file import read

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(body: str) -> str:
    """The screen for LayerNorm with this backward."""
    path = Path("layer_norm.py")
    path.write_text(layer_norm(body))
    return str(check_file(path))


def test_right_in_another_form() -> None:
    said = checked(RIGHT)
    assert said.splitlines() == [
        "LayerNorm in layer_norm.py, 51 inputs",
        "  output       right",
        "  grad_input   right",
        "  grad_weight  right",
        "  grad_bias    right",
        "Everything is right.",
        "The next one: nn-manual exercise start batch_norm1d",
    ]
    assert progress.done(Path()) == {"layer_norm": progress.Done(solved=True, hints=0)}


def test_wrong_says_which_where_and_on_which_inputs() -> None:
    said = checked(RIGHT.replace(VARIANCE, ""))
    assert "  grad_input   WRONG on 46 of 51 inputs\n  grad_weight  right\n" in said
    assert "On LayerNorm(3), random input at (1, 1): yours is -2.46463, right is -0.0989093" in said
    assert "It is wrong on every input but zero input." in said
    assert said.endswith("For a hint: nn-manual exercise hint layer_norm.py")
    assert max(map(len, said.splitlines())) <= 80
    assert progress.done(Path()) == {}


CHANGED = "        layers.Linear.backward = None\n"

#: The first line of LayerNorm's backward.
FIRST = layer_norm(OPEN).partition(OPEN)[0].count("\n") + 1
#: Bodies of it, and what is said.
BAD = {
    "nothing yet": (OPEN, "not written yet: backward."),
    "writes into its input": ("        grad_output *= 2\n", f":{FIRST}: it writes into its input, which other code"),
    "returns nothing": ("        x = 1\n", "grad_input is None, and not an array of numbers."),
    "a list": ("        return [1.0]\n", "grad_input is a list, and not an array of numbers."),
    "another shape": ("        return grad_output[:1]\n", "yours has shape (1, 3), right is (4, 3)"),
    "an error": ("        x = 1\n        return x / 0\n", f":{FIRST + 1}: ZeroDivisionError: division by zero\n"),
    "prints megabytes": ("        while True: print('x' * 1000)\n", f":{FIRST}: it prints more than 1,048,576 char"),
    "ours": ("        return super().backward(saved, grad_output)\n", ".backward: write it yourself\n"),
    "another array": ("        self.grad.weight = 1\n        return grad_output\n", "self.grad.weight[...] = ..."),
    "too much memory": ("        return np.ones(10**9)\n", f":{FIRST}: MemoryError"),
    "ends the process": ("        import os; os._exit(3)\n", "layer_norm.py: it ends the process, with status 3"),
    "ends it hard": ("        import ctypes; ctypes.string_at(0)\n", f":{FIRST}: it ends the process with signal SIG"),
    "a debugger": ("        breakpoint()\n", f":{FIRST}: breakpoint() needs standard input, and there is none: use p"),
    "asks": ("        input('x?')\n", f":{FIRST}: it reads standard input, and there is none"),
    "another name": ("        return grad_ouput\n", "name 'grad_ouput' is not defined; did you mean 'grad_output'?\n"),
    "another attribute": ("        return self.parm\n", "object has no attribute 'parm'; did you mean 'param'?\n"),
    "leaves": ("        raise SystemExit(0)\n", f":{FIRST}: SystemExit: 0"),
    "changes the package": (CHANGED, f":{FIRST}: it changes nn_manual.layers.linear.Linear.backward"),
}
QUICK = ("writes into its input", "an error", "ends the process", "a debugger", "another name")


@pytest.mark.parametrize("case", [case if case in QUICK else slow(case) for case in BAD])
def test_bad_code_gets_one_message(case: str) -> None:
    """The slow ones, of some two seconds each, have the other kinds of code."""
    body, said = BAD[case]
    assert said in checked(body).replace("\n  ", " ")


@pytest.mark.slow
def test_torchs_autograd_is_said_and_not_refused() -> None:
    """It alone loads torch in the process that runs a file. What it makes isn't solved."""
    autograd = "        import torch\n        x = torch.ones(1, requires_grad=True)\n        (x * x).sum().backward()\n"
    said = checked(autograd + RIGHT)
    assert "\nThe numbers are right, and torch's autograd made them: derive the gradient\n  yourself.\n" in said
    assert f"layer_norm.py:{FIRST + 2}: it asks torch's autograd for the gradient" in said
    assert "The next one" not in said
    assert progress.done(Path()) == {}
    assert main(["exercise", "check", "layer_norm.py"]) == 0


def test_a_loop_without_end_is_ended_and_its_line_is_told() -> None:
    path = Path("layer_norm.py")
    path.write_text(layer_norm("        while True:\n            pass\n"))
    request = read(path).reference.request(file_of(path))
    answer, _ = run_file(request._replace(seconds=0.5))
    assert answer.problem is not None
    assert answer.problem.words == "it takes longer than 0.5 s"
    assert answer.problem.line in (FIRST, FIRST + 1)


def test_what_it_prints_is_shown() -> None:
    long = "x" * 100
    said = checked(f"        print('here', grad_output.size, '{long}')\n" + RIGHT)
    first = f"It printed on LayerNorm(3), random input, and on 50 others:\n  here 12 {long}"
    assert said.startswith(f"{first}\nLayerNorm in")


def test_what_it_prints_on_the_input_that_is_shown() -> None:
    printing = "        print(grad_output.shape, end='.')\n"
    said = checked(printing + RIGHT.replace(VARIANCE, f"{VARIANCE} * (grad.shape[1] == 3)"))
    shown = said.partition("\nOn ")[2].partition(" at ")[0].replace("\n  ", " ")
    assert not shown.startswith("LayerNorm(3), ")
    assert said.partition(":\n")[0].replace("\n  ", " ") == f"It printed on {shown}, and on 50 others"
    Path("layer_norm.py").write_text(layer_norm(RIGHT) + "\nfor i in range(22):\n    print(i)\n")
    lines = str(check_file(Path("layer_norm.py"))).splitlines()
    assert [*lines[:2], *lines[20:22]] == ["It printed before the first input:", "  0", "  19", "  ... 2 more lines"]


def test_a_module_that_the_file_hides_is_still_found() -> None:
    Path("random.py").write_text(layer_norm(RIGHT).replace("import numpy", "import random\n\nimport numpy"))
    assert check_file(Path("random.py")).verdict.passed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = (\n", "it.py:1: it isn't Python yet: '(' was never closed"),
        ("\0", "it.py: it isn't Python yet: source code"),
        ("class LayrNorm:\n    pass\n", "it.py: defines no class or operation of an exercise: LayrNorm must"),
        ("class Mine(layers.Tanh):\n    pass\n", "it.py: defines no class or operation of an exercise: Mine must be"),
        ("x = 1\n", "it.py: defines no class or operation of an exercise; a teacher's exercise needs its"),
        ("class Swish(Layer):\n    pass\n", "it.py: defines no class or operation of an exercise; a teacher's"),
        ("def trail():\n    pass\n", "it.py: defines no class or operation of an exercise; a teacher's exercise"),
    ],
)
def test_a_file_of_no_exercise(text: str, said: str) -> None:
    Path("it.py").write_text(text)
    with pytest.raises(ConfigError) as caught:
        read(Path("it.py"))
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_a_name_without_an_ending() -> None:
    with pytest.raises(ConfigError, match=r"^exp: No such file or directory; nn-manual exercise start exp writes "):
        read(Path("exp"))
    Path("exp.py").write_text("x = 1\n")
    with pytest.raises(ConfigError, match=r"^exp: No such file or directory; did you mean exp\.py\?$"):
        read(Path("exp"))


def test_what_was_solved_and_fails_now() -> None:
    path = Path("square.py")
    text = "from nn_manual.ops.operation import operation\n\n\n@operation(analytic=True)\ndef square(input, /):\n"
    path.write_text(f"{text}    return input * input, lambda g: 2 * input * g\n")
    assert str(check_file(path)).endswith("Everything is right.\nThe next one: nn-manual exercise start tanh")
    path.write_text(f"{text}    return input * input, lambda g: input * g\n")
    assert not check_file(path).verdict.passed
    assert "  square (solved before), tanh, " in "\n".join(progress.listing(Path()))
    assert progress.done(Path())["square"] == progress.Done(solved=True, fails=True)


def test_files_that_cannot_be_read() -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.py: No such file or directory$"):
        read(Path("nowhere.py"))
    Path("it.txt").write_text(layer_norm(RIGHT))
    with pytest.raises(ConfigError, match=r"it\.txt: is no Python file: its name must end in \.py"):
        read(Path("it.txt"))
    Path("it.py").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"it\.py: is no text in UTF-8"):
        read(Path("it.py"))


def test_what_is_open_and_what_is_written_is_seen_in_the_text() -> None:
    Path("it.py").write_text(layer_norm(OPEN))
    assert read(Path("it.py")).missing == ["backward"]
    Path("it.py").write_text(layer_norm(RIGHT))
    file = read(Path("it.py"))
    assert file.missing == []
    assert file.written("backward").endswith("return grad_input.reshape(grad_output.shape)")


def test_a_class_that_is_not_derived_from_ours() -> None:
    Path("it.py").write_text("class LayerNorm:\n    pass\n")
    said = str(check_file(Path("it.py")))
    assert "LayerNorm must be a class with nn_manual's LayerNorm as its base" in said


def test_a_method_that_was_removed_is_missing() -> None:
    Path("it.py").write_text("from nn_manual import layers\n\n\nclass Tanh(layers.Tanh):\n    pass\n")
    assert "it.py: Tanh has no derivative of its own: write it" in str(check_file(Path("it.py")))


@pytest.mark.slow
def test_watch_checks_at_every_save() -> None:
    """It alone watches a file, with four processes."""
    path = Path("tanh_layer.py")
    head = "from nn_manual import layers\n\n\nclass Tanh(layers.Tanh):\n"
    text = f"{head}    def derivative(self, saved):\n        return {{}}\n"
    path.write_text(text.format("1 - saved"))
    said: list[str] = []

    class EnoughError(Exception):
        pass

    def say(screen: str) -> None:
        said.append(screen)
        if len(said) == 4:
            raise EnoughError
        if len(said) > 1:
            path.write_text(text.format("1 - saved * saved") if len(said) == 3 else "x = (\n")

    with pytest.raises(EnoughError):
        watch(path, say, Worker())
    assert said[0] == "watching tanh_layer.py, Ctrl-C ends"
    assert "grad_input  WRONG" in said[1]
    line, _, shown = said[2].partition("\n")
    assert re.fullmatch(r"\d\d:\d\d:\d\d -{71}", line)
    assert shown.startswith("tanh_layer.py:1: it isn't Python yet")
    assert "Everything is right." in said[3]


def test_a_worker_that_nobody_asks_ends() -> None:
    worker = Worker()
    worker.end()
    worker.end()


@pytest.mark.parametrize(
    "damaged",
    ["{", "[1]", "3", "[" * 100_000, '{"square": {"hints": "x"}}', '{"square": {"solved": 1, "hints": true}}'],
)
def test_progress_survives_a_file_that_is_damaged(damaged: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(progress.FILE)
    file.write_text(damaged)
    assert progress.done(Path()) == {}
    assert f"{progress.FILE} is damaged" in [*progress.listing(Path())][-2]
    assert progress.note_hint(Path(), "square", 2) == 1
    assert capsys.readouterr().err == f"note: {progress.FILE} is damaged: it is kept as {progress.FILE}.damaged\n"
    assert Path(f"{progress.FILE}.damaged").read_text() == damaged
    progress.note_checked(Path(), "square", passed=True)
    assert json.loads(file.read_text()) == {"square": {"solved": True, "hints": 1, "fails": False}}
    assert [progress.note_hint(Path(), "square", 2) for _ in range(2)] == [2, 2]


def test_the_entries_of_a_damaged_file_that_can_be_read_are_kept() -> None:
    file = Path(progress.FILE)
    file.write_text('{"tanh": {"solved": true, "hints": 2}, "log": {}}')
    Path(f"{progress.FILE}.damaged").write_text("earlier")
    progress.note_checked(Path(), "square", passed=True)
    assert json.loads(file.read_text()).keys() == {"tanh", "square"}
    assert Path(f"{progress.FILE}.damaged").read_text() == "earlier"
    assert "log" in Path(f"{progress.FILE}.damaged1").read_text()


def test_a_hint_that_cannot_be_noted_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    Path(progress.FILE).mkdir()
    assert hint("square").startswith("1 of 2\n")
    assert capsys.readouterr().err.startswith("note: the hint isn't counted: ")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        slow(
            "        return grad_output[:0]\n",
            "no picture: your grad_input has another shape on LayerNorm(3), random",
        ),
        slow(
            RIGHT.replace(VARIANCE, f"{VARIANCE} * (grad.size < 50)"),
            "no picture: your grad_input is right on each input whose Jacobian has at most 2,304 entries",
        ),
        ("        x = 1\n        return x / 0\n", f"no picture: layer_norm.py:{FIRST + 1}: ZeroDivisionError"),
    ],
)
def test_why_there_is_no_picture(body: str, said: str) -> None:
    path = Path("layer_norm.py")
    path.write_text(layer_norm(body))
    assert draw(check_file(path), Path("it.png")).startswith(said)
    assert not Path("it.png").exists()


@pytest.mark.parametrize("path", [".", "/", ""])
def test_a_folder_is_no_file(path: str) -> None:
    with pytest.raises(ConfigError, match="Is a directory"):
        read(Path(path))


@pytest.mark.parametrize(("returned", "said"), [("None", "None"), ("[1.0]", "a list"), ("'a'", "a str")])
def test_a_derivative_that_is_no_array_is_called_so(returned: str, said: str) -> None:
    start = "from nn_manual import layers\n\n\nclass Tanh(layers.Tanh):\n    def derivative(self, saved):\n"
    Path("it.py").write_text(f"{start}        return {returned}\n")
    assert f"grad_input is {said}, and not an array of numbers." in str(check_file(Path("it.py")))
