"""train, check and plot: what they print, what they return, and the files they leave behind."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from runs import GROWING, names
from slow_cases import slow

from nn_manual.cli import main
from nn_manual.layers import Tanh

from .conftest import UNCHECKED, finish, start


@pytest.mark.slow
class TestTrain:
    """They alone train whole runs by the command, and read all that it prints and leaves."""

    def test_says_one_line_an_epoch_and_a_summary(self, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["train", "small.yaml", "--run-dir", "run"]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        *epochs, _, result, best, compared, worst, where = out.splitlines()
        number = r"[\d.e-]+"
        assert epochs[1].split() == ["epoch", "train", "loss", "loss", "accuracy", "lr", "seconds"]
        for epoch, line in enumerate(epochs[2:], start=1):
            assert re.fullmatch(rf"  {epoch}/3 +{number} +{number} [* ] +{number}% +{number} +{number}", line)
        assert len(epochs) == 5
        assert best in (
            "the last epoch was the best: best.safetensors has the last weights, too",
            "  best.safetensors, and those of the last step in model.safetensors",
        )
        assert re.fullmatch(rf"train loss {number}, validation loss {number}, accuracy {number}% after 9 steps", result)
        assert compared == "every gradient right: 171 tensors of 9 steps equal torch's"
        assert re.fullmatch(rf"rounding took at most {number}% of its bound: [\w. ]+ at step \d", worst)
        assert where == "run directory run"
        assert max(map(len, out.splitlines())) <= 80
        assert names(small / "run")[:3] == ["best.safetensors", "checkpoints", "config.yaml"]

    def test_the_default_run_directory(self, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["train", "small.yaml", "epochs=1", UNCHECKED]) == 0
        (directory,) = (small / "runs" / "small").iterdir()
        out = capsys.readouterr().out.splitlines()
        assert out[-2:] == ["no gradient was checked", f"run directory {directory.relative_to(small)}"]

    @pytest.mark.usefixtures("small")
    def test_a_bar_that_fits_the_terminal(self) -> None:
        terminal, program_side = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        # Long enough for the bar to move: it is drawn ten times a second.
        settings = ["epochs=1", "batch_size=1", "data.Spirals.num_examples=1200", "optimizer.SGD.lr=0.001"]
        process = start("train", "small.yaml", *settings, "--run-dir", "run", stdout=program_side, stderr=program_side)
        os.close(program_side)
        shown = _read_terminal(terminal)
        assert finish(process)[0] == 0
        states = re.split(r"[\r\n]+", shown)
        assert max(map(len, states)) <= 80
        moving = [state for state in states if re.search(r"epoch 1/1 +\d+%\|.*\| \d\d:\d\d left, loss [\d.e-]+", state)]
        assert moving
        assert all(re.search(r", rounding [\d.]+% of its bound$", state) for state in moving)
        assert [state for state in states if state.strip()][-1] == "run directory run"

    @pytest.mark.usefixtures("small")
    def test_unchecked_never_imports_torch(self) -> None:
        program = (
            "import sys\n"
            "from nn_manual.cli import main\n"
            "assert main(['train', 'small.yaml', 'gradient_check.every=0', '--run-dir', 'run']) == 0\n"
            "assert main(['plot', 'run', '-o', 'run.svg']) == 0\n"
            "print('torch' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "False"

    def test_a_wrong_gradient(
        self, small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(Tanh, "backward", lambda self, saved, grad_output: grad_output * (1 - saved))  # noqa: ARG005
        assert main(["train", "small.yaml", "--run-dir", "run"]) == 3
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("nn-manual: gradient check failed: wrong first in 1 (Tanh): 1.grad_input\n")
        assert re.search(r"^1\.grad_input +16x8 .* WRONG", err, re.MULTILINE)
        assert err.splitlines()[-3:] == [
            "stopped in epoch 1 at step 1; the run so far lies in run",
            "to run this step again: nn-manual check --replay run/mismatch-step-1",
            "to start it again: nn-manual train --resume run",
        ]
        assert names(small / "run") == [*GROWING, "mismatch-step-1", "summary.json"]

    @pytest.mark.usefixtures("small")
    def test_overflow(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["train", "small.yaml", "optimizer.SGD.lr=1e39", UNCHECKED, "--run-dir", "run"]) == 4
        found, *others = capsys.readouterr().err.splitlines()
        assert re.fullmatch(
            r"nn-manual: updated 0\.weight of 0 \(Linear\) holds -?inf at index \(\d, \d\) at step 1", found
        )
        assert others == [
            "a smaller lr, or clip_grad_norm, keeps most runs finite",
            "stopped in epoch 1 at step 1; the run so far lies in run",
        ]


def _read_terminal(terminal: int) -> str:
    shown = b""
    while True:
        try:
            read = os.read(terminal, 1 << 16)
        except OSError:  # how Linux says that the other side is closed
            read = b""
        if not read:
            os.close(terminal)
            return shown.decode()
        shown += read


class TestCheck:
    def test_prints_the_table(self, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["check", "small.yaml", "dtype=float64"]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert out.startswith("12 tensors equal torch's; worst ")
        assert re.search(r"^0\.grad_weight +8x2 ", out, re.MULTILINE)
        assert names(small) == ["small.yaml"]

    @pytest.mark.usefixtures("small")
    def test_a_wrong_gradient(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        monkeypatch.setattr(Tanh, "backward", lambda self, saved, grad_output: grad_output * (1 - saved))  # noqa: ARG005
        assert main(["check", "small.yaml"]) == 3
        assert capsys.readouterr().out.startswith("gradient check failed: wrong first in 1 (Tanh): 1.grad_input\n")


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ([], 0),
        (["initializer=Zeros"], 3),
        (["model=[Linear: {in_features: 2, out_features: 2}, ReLU]", "initializer={Constant: {value: 0}}"], 3),
        (["model=[Tanh]"], 2),
    ],
)
@pytest.mark.usefixtures("small")
def test_check_and_train_agree_on_what_proves_nothing(
    capsys: pytest.CaptureFixture[str], settings: list[str], status: int
) -> None:
    assert main(["check", "small.yaml", *settings]) == status
    checked = capsys.readouterr()
    assert main(["train", "small.yaml", *settings]) == status
    trained = capsys.readouterr()
    if status == 3:
        words = "0 (Linear): 0.grad_weight is zero everywhere"
        assert words in checked.out
        assert f"not proven: {words}, in every step" in trained.out
    if status == 2:
        assert checked.err == trained.err
    assert main(["train", "small.yaml", *settings, UNCHECKED]) == (2 if status == 2 else 0)


@pytest.mark.usefixtures("with_figure")
@pytest.mark.parametrize("has_checkpoint", [slow(True), False])
def test_a_finished_run_fails_again_for_what_proves_nothing(
    small: Path, capsys: pytest.CaptureFixture[str], *, has_checkpoint: bool
) -> None:
    assert main(["train", "small.yaml", "initializer=Zeros", "epochs=1", "--run-dir", "run"]) == 3
    sentences = re.findall("^not proven: .*, in every step$", capsys.readouterr().out, re.MULTILINE)
    assert len(sentences) == 7
    if not has_checkpoint:
        shutil.rmtree(small / "run" / "checkpoints")
    assert main(["train", "--resume", "run"]) == 3
    first, *others = capsys.readouterr().out.splitlines()
    assert first.startswith("run: this run has finished")
    assert others == sentences


@pytest.mark.usefixtures("small")
def test_a_gradient_that_is_zero_in_theory_is_listed_and_fails_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """The bias before a batch normalization: that the net is right is all that can be said of it."""
    linears = [f"Linear: {{in_features: 2, out_features: {size}}}" for size in (3, 2)]
    model = f"model=[{linears[0]}, BatchNorm1d: {{num_features: 3}}, {linears[1].replace('2', '3', 1)}]"
    assert main(["train", "small.yaml", model, "--run-dir", "run"]) == 0
    words = "0 (Linear): 0.grad_bias is zero in theory and rounding alone"
    assert f"\nnot proven: {words}, in\n  every step\n" in capsys.readouterr().out
    checked = json.loads(Path("run/summary.json").read_text())["gradient_check"]
    assert (checked["unproven"], checked["vacuous"]) == ([words], [])


def test_plot(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "small.yaml", UNCHECKED, "--run-dir", "run"]) == 0
    capsys.readouterr()
    assert main(["plot", "run", "run", "-o", "both.svg", "--smoothing", "0.5", "--log-y"]) == 0
    assert capsys.readouterr() == ("both.svg\n", "")
    assert (small / "both.svg").read_text().startswith("<?xml")
