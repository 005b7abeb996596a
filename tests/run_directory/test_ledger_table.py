"""gradients.jsonl, read: what each line stands for, and the table of all tensors."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nn_manual.errors import DataError
from nn_manual.run_directory.ledger_table import MISMATCH, ROUNDING, WITHIN, read_gradients

STEP = {
    "step": 1, "tensors": 2, "worst": "loss", "absolute": 1e-8, "relative": 3e-7, "tolerance": 1e-5, "ulps": 2.5,
    "errors": {"0.output": [0, 0], "loss": [12.5, 0.5]},
}  # fmt: skip


def write(path: Path, *steps: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(STEP | step) + "\n" for step in steps))
    return path


def test_a_line_stands_for_its_step_or_for_its_window(tmp_path: Path) -> None:
    window = {"step": 7, "first_step": 4, "last_step": 8, "num_steps": 3, "window": 3}
    columns, ledger = read_gradients(write(tmp_path / "g", {"step": 2}, window))
    assert [columns[key].tolist() for key in ("step", "first_step", "last_step", "num_steps")] == [
        [2, 7], [2, 4], [2, 8], [1, 3]
    ]  # fmt: skip
    assert ledger.percent.tolist() == [[0, 12.5], [0, 12.5]]
    assert ledger.verdict.dtype == np.int8
    assert not ledger.verdict.any()


def test_what_is_beyond_a_tolerance_is_rounding_or_wrong(tmp_path: Path) -> None:
    excused = {"step": 2, "rounding": ["loss", "one that the ledger has not"]}
    mismatch = {"step": 3, "rounding": ["0.output"], "mismatch": ["loss", "0.output"]}
    columns, ledger = read_gradients(write(tmp_path / "g", {}, excused, mismatch))
    assert columns["rounding"].tolist() == [0, 2, 1]
    assert columns["mismatch"].tolist() == ["", "", "loss"]
    assert ledger.verdict.tolist() == [[WITHIN, WITHIN], [WITHIN, ROUNDING], [MISMATCH, MISMATCH]]


def test_a_mismatch_may_have_some_of_the_tensors_and_others(tmp_path: Path) -> None:
    mismatch = {"step": 2, "mismatch": ["0.infer"], "errors": {"0.infer": [1e7, 9], "loss": [1, 2]}}
    _, ledger = read_gradients(write(tmp_path / "g", {}, mismatch))
    assert ledger.tensors == ("0.output", "loss", "0.infer")
    assert np.array_equal(ledger.percent, [[0, 12.5, np.nan], [np.nan, 1, 1e7]], equal_nan=True)
    assert np.array_equal(ledger.ulps, [[0, 0.5, np.nan], [np.nan, 2, 9]], equal_nan=True)
    assert ledger.verdict.tolist() == [[WITHIN] * 3, [WITHIN, WITHIN, MISMATCH]]


def test_a_mismatch_in_the_first_step_has_all_tensors_that_there_are(tmp_path: Path) -> None:
    _, ledger = read_gradients(write(tmp_path / "g", {"mismatch": ["loss"]}))
    assert (ledger.tensors, ledger.percent.tolist()) == (("0.output", "loss"), [[0, 12.5]])


def test_a_step_that_could_not_be_compared(tmp_path: Path) -> None:
    nothing: dict[str, Any] = dict.fromkeys(("absolute", "relative", "tolerance", "ulps"))
    problem = {"worst": "", **nothing, "mismatch": [], "problem": "1 (Tanh): was never run", "errors": {}}
    columns, ledger = read_gradients(write(tmp_path / "g", problem))
    assert columns["mismatch"].tolist() == ["1 (Tanh): was never run"]
    assert np.isnan(columns["relative"]).all()
    assert ledger.percent.shape == (1, 0)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"rounding": "loss"}, '"rounding" is "loss", expected a list of names'),
        ({"mismatch": [1]}, '"mismatch" is [1], expected a list of names'),
        ({"problem": 3, "mismatch": []}, '"mismatch" is 3, expected a string'),
        ({"num_steps": 0}, "there is no step 1 of 0 from 1 to 1"),
        ({"num_steps": 3, "last_step": 2}, "there is no step 1 of 3 from 1 to 2"),
        ({"first_step": 2, "last_step": 2}, "there is no step 1 of 1 from 2 to 2"),
        ({"first_step": -1, "last_step": 2**63 - 1}, '"first_step" is -1, expected at least 0'),
        ({"last_step": 1.5}, '"last_step" is 1.5, expected a 64-bit integer'),
    ],
)
def test_a_bad_line_is_named_with_its_number(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    path = write(tmp_path / "g", {}, change)
    with pytest.raises(DataError) as caught:
        read_gradients(path)
    assert str(caught.value).startswith(f"{path}:2: {problem}")


@pytest.mark.slow
def test_reading_takes_little_more_than_the_table(tmp_path: Path) -> None:
    """Not the file's text, nor its numbers as Python's objects, of which each takes 24 bytes.
    It alone measures the memory of a long ledger.
    """
    names = [f"{index}.grad_weight" for index in range(200)]
    steps = ({"step": step, "errors": {name: [step / 7, 0.1] for name in names}} for step in range(1, 1001))
    path = write(tmp_path / "g", *steps)
    tracemalloc.start()
    _, ledger = read_gradients(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    table = ledger.percent.nbytes + ledger.ulps.nbytes
    assert peak < 3 * table
