"""docs/your_own_component.md: its classes train as they stand, and its mistakes are found, with its words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from own_components import DIGIT_LINES, MINE, READ_LINES

import nn_manual.check.catalogue.catalogue  # noqa: F401 - before any inner run, which unloads what it loads first
from nn_manual import cli

PAGE = (Path(__file__).parents[1] / "docs" / "your_own_component.md").read_text(encoding="utf-8")
CONFIG, LINES_CONFIG = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
UNCHECKABLE, HEADLINE = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
#: Messages by the mistakes that lead to them.
TABLE = dict(re.findall(r"^\| (.+?) \| `(.+)` \|$", PAGE[PAGE.index("## Mistakes") :], re.MULTILINE))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two files, in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE)
    Path("mine.yaml").write_text(CONFIG)


def change(right: str, wrong: str, file: str = "mine.py") -> None:
    """Another text in one place of a file."""
    text = Path(file).read_text()
    assert right in text
    Path(file).write_text(text.replace(right, wrong, 1))


def words(text: str) -> str:
    """A text without its line ends."""
    return " ".join(text.split())


def test_they_train_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["train", "mine.yaml", "--run-dir", "run"]) == 0
    assert cli.main(["check", "run/config.yaml"]) == 0
    assert cli.main(["evaluate", "run"]) == 0
    assert "20 examples" in capsys.readouterr().out


def test_lines_of_digits_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    """Two epochs of few lines: it takes more to read them."""
    Path("digit_lines.py").write_text(DIGIT_LINES)
    Path("lines.yaml").write_text(LINES_CONFIG)
    few = ["epochs=2", "data={digit_lines:DigitLines: {num_examples: 40}}", "batch_size=16", "gradient_check.every=1"]
    assert cli.main(["train", "lines.yaml", "--run-dir", "runs/lines", *few]) == 0
    output = words(capsys.readouterr().out)
    assert "204 tensors of 4 steps equal torch's" in output, output
    exec(READ_LINES, {})
    assert capsys.readouterr().out == "0.0% of the lines are read without a mistake\n"
    assert cli.main(["check", "digit_lines.py"]) == 0


def test_each_is_checked_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "mine.py"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.endswith(" ok")]
    assert [tuple(row[:2]) for row in rows] == [
        ("Laplace()", "float64"),
        *(("LogCoshLoss()", dtype) for dtype in ("float32", "float64")),
        *(("LogCoshLoss(reduction=sum)", dtype) for dtype in ("float32", "float64")),
        *(("SignSGD()", dtype) for dtype in ("float32", "float64")),
        ("Warmup()", "float64"),
        *(("Waves()", dtype) for dtype in ("float32", "float64")),
    ]
    assert cli.main(["check", "mine.py:LogCoshLoss"]) == 0
    assert capsys.readouterr().out.count(" ok\n") == 4


@pytest.mark.parametrize(
    ("right", "wrong", "found"),
    [
        ("return np.tanh(saved)", "return np.tanh(saved) + saved / 2", words(HEADLINE)),
        ("momentum_buffer *=", "momentum_buffer -=", "optimizer"),
        ("* min(1, (count + 1) / self", "* min(1, (count + 2) / self", "scheduler: lr is"),
    ],
)
def test_a_wrong_formula_is_named(right: str, wrong: str, found: str, capsys: pytest.CaptureFixture[str]) -> None:
    change(right, wrong)
    assert cli.main(["train", "mine.yaml", "--run-dir", "run"]) == 3
    assert found in words(capsys.readouterr().err)
    assert cli.main(["check", "mine.py"]) == 3
    assert " WRONG\n" in capsys.readouterr().out


def test_a_wrong_gradient_of_the_target_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    change("return -self.backward(saved)", "return self.backward(saved)")
    assert cli.main(["check", "mine.yaml"]) == 3
    assert "wrong first in loss: loss.grad_target" in capsys.readouterr().out


def test_without_a_reference(capsys: pytest.CaptureFixture[str]) -> None:
    change("    def reference(self, prediction, target):", "    def definition(self, prediction, target):")
    assert cli.main(["train", "mine.yaml", "--run-dir", "run"]) == 2
    assert words(capsys.readouterr().err) == words(UNCHECKABLE)
    assert cli.main(["train", "mine.yaml", "gradient_check.every=0", "--run-dir", "run"]) == 0


@pytest.mark.parametrize(
    ("mistake", "right", "wrong", "file"),
    [
        ("`loss: mine:SignSGD`", "mine:LogCoshLoss", "mine:SignSGD", "mine.yaml"),
        ("`loss: mine:LogCosh`", "mine:LogCoshLoss", "mine:LogCosh", "mine.yaml"),
        ("no `@dataclass`", "@dataclass(eq=False)\nclass LogCoshLoss", "class LogCoshLoss", "mine.py"),
        ("`load` draws without the seed", "default_rng(seed)", "default_rng()", "mine.py"),
    ],
)
def test_mistakes(mistake: str, right: str, wrong: str, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    change(right, wrong, file)
    status = cli.main(["train", "mine.yaml", "--run-dir", "run"])
    assert capsys.readouterr().err == f"nn-manual: {TABLE[mistake]}\n"
    assert status == (5 if "load" in mistake else 2)
    assert not Path("run").exists()

