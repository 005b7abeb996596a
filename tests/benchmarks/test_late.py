"""A sample of `scripts/benchmark.py check late`, and that it sees what isn't named, or gone on from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import late
from benchmarks.faults import KINDS, Fault

from nn_manual.check.compare import worst
from nn_manual.check.many_steps import waiting
from nn_manual.check.whole_step import checker, update


def test_a_sample_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    num_runs = len(late.RUNS)
    assert late.late_faults(num_runs), capsys.readouterr().out
    *rows, last = capsys.readouterr().out.split("\n\n")[0].splitlines()
    assert [row.split(" faults, ") for row in rows] == [
        [f"{name:28}    1", "   1 named, with the last proven checkpoint"] for name in late.RUNS
    ]
    assert last == f"late faults: {num_runs} of {num_runs} right"


def test_a_wrong_clipping_is_named(tmp_path: Path) -> None:
    """The sample draws another tensor."""
    campaign = late.Campaign([late.DIGITS, "epochs=1", "batch_size=600", "clip_grad_norm=1"], tmp_path)
    assert campaign.outcome(Fault(2, "clipped gradient", "sign", "in that step")).wrong == ()


def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """One config."""
    monkeypatch.setattr(late, "RUNS", {"spirals.yaml": late.RUNS["spirals.yaml"]})


def test_a_fault_that_is_not_seen_counts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    quick(monkeypatch)

    def blind(absolute: Any, *_: Any) -> Any:
        return np.ones_like(absolute, bool)

    for module in (worst, waiting, checker, update):
        monkeypatch.setattr(module, "within", blind)
    assert not late.late_faults(1)
    said = " ".join(capsys.readouterr().out.split())
    assert "0 named" in said
    assert "status 0:" in said
    assert "late faults: 0 of 1 right" in said


def test_another_checkpoint_than_the_last_proven_one_counts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quick(monkeypatch)
    monkeypatch.setattr(late.Campaign, "_last_checkpoint", lambda campaign, step: step)  # noqa: ARG005 - the signature
    assert not late.late_faults(1)
    assert "the newest checkpoint is of step" in " ".join(capsys.readouterr().out.split())


def test_each_kind_of_fault_changes_a_tensor_and_leaves_the_right_one() -> None:
    right = np.array([[1.0, -4], [0, 2]], np.float32)
    wrong = {kind: change(right) for kind, change in KINDS.items()}
    np.testing.assert_array_equal(wrong["sign"], [[-1, 4], [0, -2]])
    np.testing.assert_allclose(wrong["factor"], right * 1.001, rtol=1e-6)
    np.testing.assert_allclose(wrong["shift"], right + 0.04, rtol=1e-6)
    np.testing.assert_array_equal(wrong["zero"], np.zeros((2, 2)))
    np.testing.assert_allclose(wrong["one element"], np.array([[1, -4.04], [0, 2]]), rtol=1e-6)
    assert {array.dtype for array in wrong.values()} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(right, [[1, -4], [0, 2]])
