"""Names and texts of others, in all that is printed and drawn: nothing in them moves a cursor, hides or forges."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from drawing import make_run
from drawing import write_run as write_drawable
from kernel_files import SCALE
from matplotlib.text import Text
from runs import CONFIG, write_config
from slow_cases import crossed
from text_runs import write_run
from trained_runs import TRANSFORM, write_trained

from nn_manual.cli import main
from nn_manual.compile import plans
from nn_manual.compile.blas import Choice
from nn_manual.data import Names
from nn_manual.plotting.confusion import draw_confusion
from nn_manual.plotting.figure import draw_runs
from nn_manual.run import resume
from nn_manual.run.describe import describe
from nn_manual.run.writer import RunWriter
from nn_manual.run_directory.ledger_table import Ledger
from nn_manual.run_directory.metrics import Stop
from nn_manual.trainer.progress import GradientTally, RunBar

from .conftest import COMMAND, HANGING, UNCHECKED

#: What clears a screen, also in one byte, turns text around, has no width, ends a line elsewhere, rings, is a formula
#: to matplotlib, ends a text of Python, and begins a line.
OF_FILES = "\x1b[2J\x9b\u202e\u200b\u2066$\\frac$\"\"\"'''#\nforged"
HOSTILE = f"{OF_FILES}\u2028\x85\r\x07"
#: Half a surrogate, too, which no file of UTF-8 holds, but JSON and Python may.
HALF = f"{HOSTILE}\ud800"


def check_printable(said: str) -> None:
    """Nothing but lines of what can be printed, none of which is made by a name."""
    assert said
    assert {character for character in said if not character.isprintable()} <= {"\n"}, ascii(said)
    assert not re.search(r"^\W*forged", said, re.MULTILINE)


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a command says, on both streams, with the status."""

    def run(*arguments: str, status: int) -> str:
        assert main(arguments) == status
        out, err = capsys.readouterr()
        check_printable(out + err)
        return out + err

    return run


LAYER = '''
from dataclasses import dataclass
import numpy as np
from nn_manual import Layer

HOSTILE = {hostile}
PLACE = {place!r}


class Odd:
    def __repr__(self):
        return HOSTILE


@dataclass(eq=False)
class Mine(Layer):
    """Tanh.

        output = tanh(input) {docstring}
        grad_input = grad_output * (1 - output**2)
    """

    text: str = ""

    def __post_init__(self):
        self.raise_in("constructor")
        self.text = Odd()

    def raise_in(self, place):
        if place == PLACE:
            raise RuntimeError(HOSTILE)

    def parameter_shapes(self):
        return {{HOSTILE: (1,)}} if PLACE == "parameter" else {{}}

    def reset_parameters(self, generator):
        pass

    def output_shape(self, input_shape):
        self.raise_in("output_shape")
        return input_shape

    def forward(self, input):
        self.raise_in("forward")
        output = np.tanh(input) * (1.01 if PLACE == "wrong" else 1)
        return output, output

    def backward(self, saved, grad_output):
        self.raise_in("backward")
        return grad_output * (1 - saved**2)

    def reference(self, input):
        import torch
        self.raise_in("reference")
        return torch.tanh(input) if PLACE != "returned" else HOSTILE


if PLACE in ("name", "wrong"):
    Mine.__name__ = HOSTILE
if PLACE == "module":
    raise RuntimeError(HOSTILE)
if PLACE == "none":
    del Mine.reference
'''
PLACES = ["module", "constructor", "output_shape", "parameter", "forward", "backward", "reference", "returned"]
PLACES += ["name", "wrong", "none"]
COMMANDS = [
    ["check", "small.yaml"],
    ["summary", "small.yaml"],
    ["unroll", "small.yaml"],
    ["train", "small.yaml", "--run-dir", f"run{OF_FILES}"],
    ["train", "small.yaml", "--run-dir", "run", UNCHECKED],
]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("place", "command"), crossed(PLACES, COMMANDS), ids=str)
def test_a_layer(place: str, command: list[str], small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = HOSTILE if place in ("name", "wrong") else HALF  # no class is named by half a surrogate
    docstring = HOSTILE.replace('"""', "").replace("\\", "").replace("\n", "").replace("\r", "")
    layer = LAYER.format(hostile=ascii(hostile), place=place, docstring=docstring)
    (small / "mine.py").write_text(layer, encoding="utf-8")
    write_config(small, CONFIG.replace("  - Tanh\n", "  - mine:Mine\n"))
    assert main(command) in (0, 2, 3)
    check_printable("".join(capsys.readouterr()))


class TestPaths:
    def test_of_a_run(self, tmp_path: Path, said: Any) -> None:
        folder = tmp_path / OF_FILES.replace("/", "")
        folder.mkdir()
        config, run = str(write_config(folder)), str(folder / "run")
        said("train", config, "--run-dir", run, "lr_scheduler={StepLR: {step_size: 100}}", status=0)
        said("train", "--resume", run, status=0)
        said("plot", run, "-o", str(folder / "loss.png"), status=0)
        said("evaluate", run, status=0)
        np.savez(folder / "new.npz", input=np.zeros((3, 2)))
        said("predict", run, "--input", str(folder / "new.npz"), "--output", str(folder / "out.csv"), status=0)
        said("unroll", config, "-o", str(folder / "step.py"), status=0)
        said("unroll", config, "--run", "-o", str(folder / "run.py"), status=0)
        said("train", config, "--run-dir", run, status=5)
        said("plot", str(folder / "nothing"), status=5)

    @pytest.mark.parametrize("name", ['a"""; raise SystemExit(1); """b.yaml', f"{OF_FILES}\udcff.yaml", "a\\"])
    def test_of_a_config_is_text_of_a_script(self, tmp_path: Path, name: str, said: Any) -> None:
        (tmp_path / name).write_text(CONFIG)
        script = said("unroll", str(tmp_path / name), status=0)
        scope: dict[str, Any] = {"__name__": "step"}
        exec(compile(script, "step.py", "exec"), scope)
        assert "train_step" in scope

    def test_of_a_figure(self, tmp_path: Path, said: Any) -> None:
        said("plot", str(write_drawable(tmp_path / "run")), "-o", str(tmp_path / "no" / f"{OF_FILES}.png"), status=5)
        said("plot", str(tmp_path / "run"), "-o", str(tmp_path / OF_FILES), status=2)


class TestNames:
    """Of columns and of classes, from a file and from a run."""

    @pytest.fixture
    def run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.chdir(tmp_path)
        Path("train.csv").write_text("a,b,y\n3,10,1\n5,6,0\n1,-2,0\n-1,-6,1\n")
        return write_trained(tmp_path, transform=TRANSFORM._replace(names=Names(("a", "b"), ("y",), ("no", HOSTILE))))

    def test_in_an_evaluation(self, run: Path, said: Any) -> None:
        for ending in ("png", "svg", "pdf"):
            said("evaluate", str(run), "data.Arrays.file=new.csv", "-o", f"{OF_FILES}.{ending}", status=5)

    def test_in_predictions(self, run: Path, said: Any) -> None:
        arguments = ["predict", str(run), "--input", "train.csv", "--output"]
        said(*arguments, "out.csv", status=0)
        said(*arguments, f"{OF_FILES}.npz", status=0)
        assert np.load(f"{OF_FILES}.npz")["classes"].tolist() == ["no", HOSTILE]

    def test_of_half_a_surrogate(self, run: Path, said: Any) -> None:
        content = json.loads((run / "data.json").read_text())
        content["names"]["classes"][1] = HALF
        (run / "data.json").write_text(json.dumps(content))
        for output in ("out.csv", "out.npz"):
            refused = said("predict", str(run), "--input", "train.csv", "--output", output, status=5)
            assert refused.startswith(f"nn-manual: {run}/data.json: is not JSON: 'utf-8' codec can't encode character ")
            assert not Path(output).exists()

    def test_of_columns(self, run: Path, said: Any) -> None:
        Path("other.csv").write_text(f'a,"{OF_FILES.replace(chr(34), "")}",y\n1,x,2\n', encoding="utf-8")
        said("predict", str(run), "--input", "other.csv", "--output", "out.csv", status=5)
        column = json.dumps(OF_FILES.replace('"', ""))
        said("evaluate", str(run), "data.Arrays.file=other.csv", f"data.Arrays.target={column}", status=2)


def texts_of(figure: Any) -> list[Text]:
    figure.canvas.draw()
    return [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]


#: A formula that matplotlib can't set, and one that it would.
FORMULAS = ["$\\frac$", "$x$"]


@pytest.mark.slow
class TestFigures:
    """They alone draw figures of hostile texts."""

    @pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
    @pytest.mark.parametrize("name", [HALF, *FORMULAS])
    def test_a_name_is_no_formula(self, name: str, ending: str, tmp_path: Path) -> None:
        ledger = Ledger((name, "loss"), np.ones((2, 2)), np.ones((2, 2)), np.zeros((2, 2), np.int8))
        stop = Stop(1, 3, name)
        run = make_run([1.0], [1e-7, 2e-7], name=name, ledger=ledger, mismatch=name, stop=stop)
        for figure in (
            draw_runs([run]),
            draw_runs([run, make_run([1.0], [1e-7])]),
            draw_confusion(np.eye(2, dtype=np.int64), [name, "b"], name),
        ):
            with warnings.catch_warnings(), matplotlib.rc_context({"svg.fonttype": "none"}):
                warnings.filterwarnings("ignore", "Glyph .* missing from font")
                figure.savefig(tmp_path / f"figure.{ending}")
                found = texts_of(figure)
            for text in found:
                check_printable(text.get_text())
            named = [text for text in found if "$" in text.get_text() and "10^" not in text.get_text()]
            assert not any(text.get_parse_math() for text in named)
            assert len(named) >= (name in FORMULAS)


class TestOfARun:
    """What is read back of a run, and said."""

    def test_a_summary(self, tmp_path: Path) -> None:
        worst = {"step": 1, "worst": HALF, "relative": 1e-7, "tolerance": 1e-5}
        check = {"tensors": 1, "steps": 1, "worst": worst, "unproven": [HALF], "rounding": 0}
        check_printable(describe({"step": 1, "train_loss": 0.5, "gradient_check": check}, tmp_path / HALF))

    def test_what_has_changed_since_a_checkpoint(self, capsys: pytest.CaptureFixture[str]) -> None:
        own = {"data": "", "versions": {}, "blas": {}, "sources": {}}
        other = {"data": "", "versions": {HALF: HALF}, "blas": {HALF: 1}, "sources": {HALF: HALF}}
        resume._compare(own, other, Path("step-1"), RunWriter(Path("run")))
        err = capsys.readouterr().err
        check_printable(err)
        assert len(err.splitlines()) == 3

    def test_a_note_above_the_bar(self, capsys: pytest.CaptureFixture[str]) -> None:
        with RunBar(1, 1, GradientTally()) as bar:
            bar.note(HALF)
        check_printable(capsys.readouterr().err)

    def test_a_note_on_compiling(self, capsys: pytest.CaptureFixture[str]) -> None:
        pytest.importorskip("numba")
        plans.Plans(Choice())._note(HALF)
        check_printable(capsys.readouterr().err)


FUNCTIONS = SCALE + """

HOSTILE = {hostile}


class Half(Scale):
    @staticmethod
    @once_differentiable
    def backward(context, grad_output):
        grad_x, grad_weight = Scale.backward(context, grad_output)
        return grad_x, grad_weight / 2


def definition(x, weight):
    return x * weight


def half(x, weight):
    return Half.apply(x, weight)


def raising(x, weight):
    raise RuntimeError(HOSTILE)


half.__name__ = raising.__name__ = {name}
"""


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("function", "reference", "status"), [("half", "definition", 3), ("raising", "definition", 3),
                                                               ("definition", "raising", 2)])  # fmt: skip
def test_check_function(small: Path, function: str, reference: str, status: int, said: Any) -> None:
    """It alone has hostile texts in the report on a function."""
    (small / "odd_functions.py").write_text(FUNCTIONS.format(hostile=ascii(HALF), name=ascii(HOSTILE)))
    names = [f"odd_functions:{function}", "--reference", f"odd_functions:{reference}"]
    said("check-function", *names, "--shapes", "NxD,D", "--sizes", "N=4,D=6", status=status)


class TestSample:
    """A terminal gets what can be printed, ends of lines and tabs; a file all that the model has learnt."""

    @pytest.mark.slow
    def test_a_terminal(self, tmp_path: Path) -> None:
        """It alone samples hostile text on a real terminal."""
        run = write_run(tmp_path, vocabulary="\x1b\n\t")
        parent, child = pty.openpty()
        arguments = [str(COMMAND), "sample", str(run), "--prompt", "\x1b\n", "--length", "4"]
        with subprocess.Popen(arguments, stdout=child, stderr=child) as process:
            os.close(child)
            shown = b""
            try:
                while part := os.read(parent, 1024):
                    shown += part
            except OSError:  # the end, as Linux has it
                pass
            os.close(parent)
            assert process.wait(HANGING) == 0
        assert shown.decode().replace("\r\n", "\n") == "\\x1b\n\t\\x1b\n\t\n"

    @pytest.mark.parametrize("character", ["\x9b", "\u202e", "\u200b", "\u2028", "\r"])
    def test_each_character(
        self, character: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run = write_run(tmp_path, vocabulary=f"a{character}c")
        arguments = ["sample", str(run), "--prompt", "a", "--length", "3"]
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        assert main(arguments) == 0
        assert capsys.readouterr().out == f"a{character.encode('unicode_escape').decode()}ca\n"

    def test_a_pipe(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        run = write_run(tmp_path, vocabulary="\x1b\x9b\t")
        assert main(["sample", str(run), "--prompt", "\x1b", "--length", "3"]) == 0
        assert capsys.readouterr().out == "\x1b\x9b\t\x1b\n"
