"""What a person sees of a run: the words, the numbers, and that they fit a terminal of 80 columns."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nn_manual import Linear, MSELoss, Sequential
from nn_manual.check.compare.worst import Differences
from nn_manual.check.judge.step_check import StepCheck
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.recording import Recording
from nn_manual.run.describe import describe, describe_failure
from nn_manual.trainer.progress import GradientTally, RunBar, epoch_label, epoch_lines
from nn_manual.trainer.steps import Step


def checked(severity: float, rounding: Sequence[str] = ()) -> StepCheck:
    """A step with 15 tensors, the worst of which has this part of its tolerance."""
    model = Sequential(*(Linear(2, 2) for _ in range(3)))
    plan = Plan(model, Recording(model, MSELoss()), input_grad=True)
    tolerances = plan.tolerances
    absolute = np.full(len(tolerances), 1e-9)
    absolute[3] = severity * tolerances[3]
    return StepCheck(plan, Differences(absolute, np.ones(len(tolerances)), frozenset(rounding)))


def test_a_tally_keeps_the_one_nearest_to_its_tolerance() -> None:
    tally = GradientTally()
    tally.add(1, checked(0.2))
    tally.add(2, checked(0.9))
    tally.add(3, checked(0.3, ["0.grad_bias", "2.grad_bias"]))
    assert (tally.num_steps, tally.num_tensors, tally.num_rounding) == (3, 45, 2)
    assert (tally.worst["step"], tally.worst["worst"]) == (2, "loss")


def test_epochs_align() -> None:
    assert [epoch_label(epoch, 100) for epoch in (1, 20, 100)] == ["epoch   1/100", "epoch  20/100", "epoch 100/100"]


def table(record: dict[str, Any], num_epochs: int, *, is_best: bool = False) -> list[str]:
    return epoch_lines(record, num_epochs, is_best=is_best)


def test_epoch_lines() -> None:
    record = {"epoch": 3, "step": 69, "train_loss": 0.12345678, "lr": 0.1, "seconds": 1.25}
    assert table(record, 20) == [
        "",
        "epoch  train loss        lr  seconds",
        " 3/20      0.1235       0.1     1.25",
    ]
    record |= {"validation_loss": 1.5e-8, "validation_accuracy": 0.98054}
    assert table(record, 2000, is_best=True) == [
        "                       validation    validation",
        "    epoch  train loss        loss      accuracy        lr  seconds",
        "   3/2000      0.1235     1.5e-08 *      98.05%       0.1     1.25",
    ]
    assert table(record, 20)[2] == " 3/20      0.1235     1.5e-08        98.05%       0.1     1.25"


def test_headings_stand_above_the_first_line_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with RunBar(20, 1, GradientTally()) as bar:
        for epoch in (3, 4):
            bar.say_epoch({"epoch": epoch, "train_loss": 0.5}, is_best=False)
    assert [line.split()[0] for line in capsys.readouterr().out.split("\n")[1:4]] == ["epoch", "3/20", "4/20"]


def test_epoch_lines_of_a_text() -> None:
    record = {"epoch": 100, "train_loss": 2.0, "train_bits_per_character": 2.88539, "lr": 1e-3, "seconds": 1e4}
    assert table(record, 100)[1:] == [
        "  epoch  train loss  character        lr  seconds",
        "100/100           2      2.885     0.001    1e+04",
    ]
    record |= {"validation_loss": 2.5, "validation_accuracy": 0.5, "validation_bits_per_character": 3.60674}
    lines = table(record, 100)
    assert lines[2] == "100/100           2         2.5        50.00%      3.607     0.001    1e+04"
    assert max(map(len, lines)) < 80


WORST = {"step": 253, "worst": "0.grad_weight", "relative": 9.2e-06, "tolerance": 1e-05}


@pytest.mark.parametrize(
    ("results", "check", "described"),
    [
        (
            {"train_loss": 0.54624, "validation_loss": 0.60241, "validation_accuracy": 0.98054, "step": 4600},
            {"steps": 460, "tensors": 6900, "rounding": 0, "worst": WORST, "unproven": []},
            "train loss 0.5462, validation loss 0.6024, accuracy 98.05% after 4,600 steps\n"
            "every checked gradient right: 6,900 tensors of 460 steps equal torch's\n"
            "rounding took at most 92% of its bound: 0.grad_weight at step 253",
        ),
        (
            {"train_loss": 37.2807, "step": 100},
            {"steps": 0, "tensors": 0, "rounding": 0, "worst": None, "unproven": []},
            "train loss 37.28 after 100 steps\nno gradient was checked",
        ),
        (
            {"train_loss": 2.0, "train_bits_per_character": 2.88539, "step": 100},
            {"steps": 0, "tensors": 0, "rounding": 0, "worst": None, "unproven": []},
            "train loss 2 after 100 steps\nbits a character 2.885 in training\nno gradient was checked",
        ),
        (
            {
                "train_loss": 2.0,
                "train_bits_per_character": 2.88539,
                "validation_loss": 2.5,
                "validation_bits_per_character": 3.60674,
                "step": 100,
            },
            {"steps": 0, "tensors": 0, "rounding": 0, "worst": None, "unproven": []},
            "train loss 2, validation loss 2.5 after 100 steps\n"
            "bits a character 2.885 in training, 3.607 in validation\nno gradient was checked",
        ),
        (
            {"train_loss": 1.0, "validation_loss": 2.0, "step": 9},
            {
                "steps": 9,
                "tensors": 90,
                "rounding": 1261,
                "worst": WORST,
                "unproven": ["0 (Linear): 0.grad_weight is zero everywhere"],
            },
            "train loss 1, validation loss 2 after 9 steps\n"
            "90 tensors of 9 steps equal torch's\n"
            "rounding took at most 92% of its bound: 0.grad_weight at step 253,\n"
            "  but for 1,261 tensors, where float64 shows that the formula is right\n"
            "not proven: 0 (Linear): 0.grad_weight is zero everywhere, in every step",
        ),
        (
            {"train_loss": 1.0, "step": 9},
            {
                "steps": 9,
                "tensors": 90,
                "rounding": 1,
                "worst": {**WORST, "worst": "1.branches.1.2.branches.2.1.output"},
                "unproven": ["1.branches.1.0 (Conv2d): 1.branches.1.0.grad_bias is zero in theory"],
            },
            "train loss 1 after 9 steps\n"
            "90 tensors of 9 steps equal torch's\n"
            "rounding took at most 92% of its bound: 1.branches.1.2.branches.2.1.output at\n"
            "  step 253,\n"
            "  but for 1 tensor, where float64 shows that the formula is right\n"
            "not proven: 1.branches.1.0 (Conv2d): 1.branches.1.0.grad_bias is zero in theory,\n"
            "  in every step",
        ),
    ],
)
def test_the_summary(results: dict[str, Any], check: dict[str, Any], described: str) -> None:
    text = describe({**results, "gradient_check": check}, Path("runs/digits/now"))
    assert text == f"\n{described}\nrun directory runs/digits/now"
    assert max(map(len, text.splitlines())) <= 80
    directory = Path("runs with blanks in their names/digits of two and of three/2026-01-01 and a rest")
    assert describe({**results, "gradient_check": check}, directory).endswith(f"\nrun directory {directory}")


def test_why_a_finished_run_fails_in_80_columns(tmp_path: Path) -> None:
    sentence = "1.branches.1.0 (Conv2d): 1.branches.1.0.grad_bias is zero"
    (tmp_path / "summary.json").write_text(json.dumps({"gradient_check": {"vacuous": [sentence]}}))
    assert describe_failure(tmp_path) == f"not proven: {sentence}, in every\n  step"


def test_no_bar_where_nobody_looks(capfd: pytest.CaptureFixture[str]) -> None:
    steps = [Step(number, 0.5, 16, 16.0, None) for number in (1, 2, 3)]
    with RunBar(1, 3, GradientTally()) as bar:
        assert list(bar.over(iter(steps), 0)) == steps
    assert capfd.readouterr() == ("", "")


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_outside_of_a_notebook_the_bar_is_a_line_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with RunBar(2, 1, GradientTally()) as bar:
        for _ in bar.over(iter([Step(1, 0.5, 16, 16.0, None)]), 0):
            pass
    assert terminal.getvalue().startswith("\r   0%|")
    assert terminal.getvalue().endswith(" \r\r\r")  # it is cleared after the epoch, and at the end
