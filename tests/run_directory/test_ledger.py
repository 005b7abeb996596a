"""gradients.jsonl of a run: which steps a line stands for, and that a run which goes on writes the same bytes."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import lines

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import Comparison
from nn_manual.check.judge.report import GradientReport
from nn_manual.run_directory.ledger import GATHERED, MOST_LINES, MOST_STEPS, LedgerLines, window_size

NAMES = ("0.output", "loss", "0.grad_weight")


@dataclass(frozen=True)
class Checked:
    """A checked step whose tensors all have scale 1 and tolerance 1e-5."""

    absolute: Array
    rounding: frozenset[str] = frozenset()
    not_judged: frozenset[str] = frozenset()
    tensors: tuple[str, ...] = NAMES
    tolerances: Array = field(default_factory=lambda: np.full(3, 1e-5))

    @property
    def relative(self) -> Array:
        return self.absolute

    @property
    def severity(self) -> Array:
        return self.absolute / 1e-5

    @property
    def ulps(self) -> Array:
        return self.absolute * 1e7


def checked(*percent: float, rounding: tuple[str, ...] = (), not_judged: tuple[str, ...] = ()) -> Checked:
    return Checked(np.array(percent) * 1e-7, frozenset(rounding), frozenset(not_judged))


def write(path: Path, steps: list[Checked], window: int) -> list[dict[str, Any]]:
    with LedgerLines(path, window) as ledger:
        for step, check in enumerate(steps, start=1):
            ledger.append_step(step, check)
    return lines(path)


# Windows


def test_only_long_runs_have_windows() -> None:
    assert [window_size(num_steps) for num_steps in (0, 1, 460, MOST_STEPS)] == [1, 1, 1, 1]
    assert [window_size(num_steps) for num_steps in (MOST_STEPS + 1, 1_000_000, 10**9)] == [26, 250, 250_000]
    assert all(math.ceil(n / window_size(n)) <= MOST_LINES for n in range(MOST_STEPS + 1, 10**7, 12_345))


def test_a_step_alone_has_no_window(tmp_path: Path) -> None:
    first, second = write(tmp_path / "g", [checked(1, 2, 3), checked(0, 50, 4)], 1)
    assert list(first) == ["step", "tensors", "worst", "absolute", "relative", "tolerance", "ulps", "errors"]
    assert (second["step"], second["worst"], second["absolute"]) == (2, "loss", 50 * 1e-7)
    assert second["errors"] == {"0.output": [0, 0], "loss": [50, 50], "0.grad_weight": [4, 4]}


def test_a_window_has_the_worst_of_its_steps(tmp_path: Path) -> None:
    steps = [
        checked(1, 2, 0),
        checked(0, 70, 0, not_judged=("loss",)),
        checked(9, 70, 0, not_judged=("0.output",)),
        checked(5, 5, 5),
    ]
    first, second = write(tmp_path / "g", steps, 3)
    assert first == {
        "step": 2, "tensors": 3, "worst": "loss", "absolute": 70 * 1e-7, "relative": 70 * 1e-7, "tolerance": 1e-5,
        "ulps": 70 * 1e-7 * 1e7, "not_judged": ["0.output", "loss"], "first_step": 1, "last_step": 3, "num_steps": 3,
        "window": 3, "errors": {"0.output": [9, 9], "loss": [70, 70], "0.grad_weight": [0, 0]},
    }  # fmt: skip
    assert [second[key] for key in ("step", "first_step", "last_step", "num_steps", "window")] == [4, 4, 4, 1, 3]


def test_percent_and_ulps_are_the_worst_each(tmp_path: Path) -> None:
    class Smaller(Checked):
        @property
        def ulps(self) -> Array:
            return self.absolute * 1e8

    (line,) = write(tmp_path / "g", [checked(20, 0, 0), Smaller(np.array([5e-7, 0, 0]))], 5)
    assert line["errors"]["0.output"] == [20, 50]
    assert (line["step"], line["ulps"]) == (1, pytest.approx(20))


@pytest.mark.parametrize("num_steps", [GATHERED - 1, GATHERED, GATHERED + 1, 3 * GATHERED + 7])
def test_a_long_window_has_the_worst_of_all(tmp_path: Path, num_steps: int) -> None:
    percent = np.random.default_rng(num_steps).uniform(0, 99, (num_steps, 3))
    (line,) = write(tmp_path / "g", [checked(*row) for row in percent], 10**6)
    assert line["step"] == 1 + percent.max(axis=1).argmax()
    assert [error[0] for error in line["errors"].values()] == [float(f"{value:.3g}") for value in percent.max(axis=0)]
    assert line["num_steps"] == num_steps


def test_a_step_beyond_a_tolerance_stands_in_full_between_the_windows(tmp_path: Path) -> None:
    steps = [checked(1, 1, 1), checked(2, 150, 3, rounding=("loss",)), checked(4, 4, 4), checked(5, 5, 5)]
    before, excused, after = write(tmp_path / "g", steps, 3)
    assert (before["first_step"], before["last_step"]) == (1, 1)
    assert (excused["step"], excused["rounding"], "window" in excused) == (2, ["loss"], False)
    assert excused["errors"] == {"0.output": [2, 2], "loss": [150, 150], "0.grad_weight": [3, 3]}
    assert (after["first_step"], after["last_step"], after["num_steps"]) == (3, 4, 2)


def test_a_window_is_written_when_it_is_full_and_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "g"
    with LedgerLines(path, 2) as ledger:
        ledger.append_step(10, checked(1, 1, 1))
        ledger.flush()
        assert lines(path) == []
        ledger.append_step(20, checked(2, 2, 2))
        ledger.append_step(30, checked(3, 3, 3))
        ledger.flush()
        assert [line["last_step"] for line in lines(path)] == [20]
    assert [line["last_step"] for line in lines(path)] == [20, 30]


# Going on


def series() -> list[Checked]:
    """40 steps, some of them excused or not judged, two of them equally bad, one of them equal to torch's."""
    generator = np.random.default_rng(0)
    steps = [checked(*generator.uniform(0, 99, 3)) for _ in range(40)]
    for index in (7, 8, 19):
        steps[index] = checked(1, math.inf, 0.1, rounding=("loss",))
    steps[12] = steps[14] = checked(99.5, 1, 1, not_judged=("loss",))
    steps[30] = checked(0, 0, 0)
    return steps


@pytest.mark.parametrize("window", [1, 5, 100])
def test_a_run_that_goes_on_from_a_checkpoint_writes_the_same_bytes(tmp_path: Path, window: int) -> None:
    steps, whole = series(), tmp_path / "whole"
    write(whole, steps, window)
    for stopped in range(len(steps) + 1):
        path = tmp_path / f"stopped-{stopped}"
        with LedgerLines(path, window) as ledger:
            for step, check in enumerate(steps, start=1):
                if step == stopped + 1:
                    ledger.flush()
                    size, state = path.stat().st_size, json.dumps(ledger.state(), allow_nan=False)
                if step > stopped + 3:  # three steps get lost
                    break
                ledger.append_step(step, check)
            else:
                if stopped == len(steps):
                    ledger.flush()
                    size, state = path.stat().st_size, json.dumps(ledger.state(), allow_nan=False)
        with LedgerLines(path, size=size) as ledger:
            ledger.load_state(json.loads(state))
            for step, check in enumerate(steps[stopped:], start=stopped + 1):
                ledger.append_step(step, check)
        assert path.read_bytes() == whole.read_bytes(), stopped


def test_a_window_never_shrinks(tmp_path: Path) -> None:
    """A run that goes on may plan more steps than before, or fewer."""
    with LedgerLines(tmp_path / "g", 3) as ledger:
        ledger.append_step(1, checked(1, 1, 1))
        ledger.append_step(2, checked(1, 1, 1))
        state = ledger.state()
    for planned, size in ((7, 7), (1, 3)):
        with LedgerLines(tmp_path / "g", planned, size=0) as ledger:
            ledger.load_state(state)
            for step in range(3, size + 1):
                ledger.append_step(step, checked(1, 1, 1))
            assert ledger.state() == {"window": size}
        (line,) = lines(tmp_path / "g")
        assert (line["first_step"], line["last_step"], line["window"]) == (1, size, size)


# Mismatches


def compared(name: str, percent: float) -> Comparison:
    return Comparison(name, "0 (Linear)", (2,), percent * 1e-7, 1.0, 1e-5, percent / 2, (0,), 1.0, 1.0)


def test_a_mismatch_has_a_line_that_says_what_was_wrong(tmp_path: Path) -> None:
    report = GradientReport(
        (compared("0.output", 0), compared("loss", 120), compared("0.grad_weight", 5e6), compared("0.grad_bias", 300)),
        rounding=frozenset({"loss", "0.output"}),  # the latter is within its tolerance
    )
    with LedgerLines(tmp_path / "g", 10) as ledger:
        ledger.append_step(1, checked(1, 1, 1))
        ledger.append_mismatch(2, report)
    before, line = lines(tmp_path / "g")
    assert before["last_step"] == 1
    assert line == {
        "step": 2, "tensors": 4, "worst": "0.grad_weight", "absolute": 0.5, "relative": 0.5, "tolerance": 1e-5,
        "ulps": 2.5e6, "rounding": ["loss"], "mismatch": ["0.grad_weight", "0.grad_bias"],
        "errors": {"0.output": [0, 0], "loss": [120, 60], "0.grad_weight": [5e6, 2.5e6], "0.grad_bias": [300, 150]},
    }  # fmt: skip


def test_a_mismatch_that_is_no_number(tmp_path: Path) -> None:
    with LedgerLines(tmp_path / "g") as ledger:
        ledger.append_mismatch(1, GradientReport((compared("loss", math.nan),)))
    (line,) = lines(tmp_path / "g")
    assert (line["absolute"], line["mismatch"], line["errors"]) == (None, ["loss"], {"loss": [1e99, 1e99]})


def test_a_step_that_cannot_be_compared(tmp_path: Path) -> None:
    with LedgerLines(tmp_path / "g") as ledger:
        ledger.append_mismatch(1, GradientReport((), problem="1 (Tanh): was never run"))
    (line,) = lines(tmp_path / "g")
    assert line == {
        "step": 1, "tensors": 0, "worst": "", "absolute": None, "relative": None, "tolerance": None, "ulps": None,
        "mismatch": [], "problem": "1 (Tanh): was never run", "errors": {},
    }  # fmt: skip
