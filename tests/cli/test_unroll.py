"""nn-manual unroll: to standard output, to a file, and what it refuses."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from runs import CONFIG, names, write_config

from nn_manual.cli import main

ROOT = Path(__file__).parents[2]

#: A layer with a formula that branches on a value.
BRANCHING = """\
from dataclasses import dataclass
from nn_manual.layers import Layer

@dataclass(eq=False)
class Own(Layer):
    def forward(self, input):
        return (input if input.sum() > 0 else 2 * input), None

    def backward(self, saved, grad_output):
        return grad_output

    def reference(self, input):
        return input
"""


def test_to_standard_output(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["unroll", "small.yaml", "optimizer.SGD.lr=0.25"]) == 0
    page = capsys.readouterr().out
    assert page.startswith('"""One training step of small.yaml, written out.\n')
    assert "\nlr = 0.25\n" in page
    assert page.endswith("\n    return loss\n")
    assert names(small) == ["small.yaml"]


def test_values_beside_the_lines(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["unroll", "small.yaml", "--values"]) == 0
    page = capsys.readouterr().out
    beside = re.findall(r"#.* (\S+) \S+ \S+ \.\.\.  torch: (\S+) ", page)
    assert len(beside) >= 5
    for ours, theirs in beside:
        assert float(ours) == pytest.approx(float(theirs), rel=2e-3)
    assert max(map(len, page.splitlines())) <= 120
    exec(compile(page, "<the page>", "exec"), {"__name__": "step"})
    assert names(small) == ["small.yaml"]


def test_to_a_file(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["unroll", "small.yaml", "-o", "step.py"]) == 0
    assert capsys.readouterr().out == "step.py\n"
    assert names(small) == ["small.yaml", "step.py"]
    assert main(["unroll", "small.yaml", "epochs=2", "-o", "run.py", "--run"]) == 0
    assert names(small) == ["run.npz", "run.py", "small.yaml", "step.py"]
    page = Path("run.py").read_text()
    assert page.startswith(Path("step.py").read_text()[:100])
    assert "# The run: 2 epochs of 3 steps. run.npz has what it begins with." in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--run"], "--run needs -o FILE: the script reads what lies beside it"),
        (["--run", "-o", "a.npz"], "--output a.npz: that is the name of what the script reads"),
        (["--values", "--run", "-o", "a.py"], "--values shows one step, --run makes all: give one of them"),
        (["batch_size=2"], "unroll needs batches of 3 examples at least, not 2"),
        (
            ["--run", "-o", "a.py", "lr_scheduler={ReduceLROnPlateau: {}}"],
            "--run: ReduceLROnPlateau watches the validation loss, which the script doesn't compute",
        ),
    ],
)
def test_what_is_refused(
    small: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["unroll", "small.yaml", *arguments]) == 2
    assert capsys.readouterr().err == f"nn-manual: {message}\n"
    assert names(small) == ["small.yaml"]


def test_a_layer_that_can_not_be_traced(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("own.py").write_text(BRANCHING)
    write_config(small, CONFIG.replace("Tanh", "own:Own"))
    assert main(["unroll", "small.yaml"]) == 2
    message = "nn-manual: 1 (Own).forward, own.py:7: the value of an array decides what comes next"
    assert capsys.readouterr().err.startswith(message)


def test_a_file_that_can_not_be_written(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["unroll", "small.yaml", "-o", "nowhere/step.py"]) == 5
    assert "nowhere/step.py" in capsys.readouterr().err
    assert names(small) == ["small.yaml"]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no checkout")
def test_git_ignores_what_the_pages_write_into_a_checkout() -> None:
    pages = [ROOT / "docs" / name for name in ("command_line.md", "unroll.md")]
    commands = [re.findall(r"^nn-manual unroll .*-o (\S+)", page.read_text(encoding="utf-8"), re.M) for page in pages]
    assert all(commands)
    written = {name for found in commands for script in found for name in (script, script.replace(".py", ".npz"))}
    ignored = subprocess.check_output(["git", "check-ignore", *sorted(written)], cwd=ROOT, text=True)
    assert set(ignored.split()) == written
