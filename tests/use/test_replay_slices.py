"""A step in slices that differed, run again: the slice, or all of those that waited for each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mismatches import mismatch, wrong_from_step, wrong_tanh
from runs import CONFIG

from nn_manual.arrays import Array
from nn_manual.compile.plan import Plan
from nn_manual.config import load_config
from nn_manual.layers import Tanh
from nn_manual.losses import CrossEntropyLoss
from nn_manual.run.sources import sources_of
from nn_manual.step.slices.gradient_sum import InOrder
from nn_manual.step.slices.sync_batch_norm import SyncBatchNorm
from nn_manual.use.replay import replay

LAYERS = "  - Linear: {in_features: 2, out_features: 8}\n"
SYNC = CONFIG.replace(LAYERS, f"{LAYERS}  - BatchNorm1d: {{num_features: 8}}\n") + "slices: 4\nsync_batch_norm: true\n"
DROPOUT = CONFIG.replace(LAYERS, f"{LAYERS}  - Dropout: {{p: 0.4}}\n") + "slices: 4\n"
DROPOUT = DROPOUT.replace("batch_size: 16", "batch_size: 14")  # slices of 4, 4, 3 and 3


def test_slices_that_waited_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = SyncBatchNorm.backward

    def wrong(self: SyncBatchNorm, saved: Any, grad_output: Array) -> Array:
        return right(self, saved, grad_output) * np.float32(1.01)

    with monkeypatch.context() as context:
        wrong_from_step(context, 5, SyncBatchNorm, "backward", wrong)
        found = mismatch(tmp_path / "run", SYNC)
    assert found.report.failures[0].name == "1.grad_input"
    bundle = tmp_path / "run" / "mismatch-step-5"
    assert replay(bundle).report is None
    monkeypatch.setattr(SyncBatchNorm, "backward", wrong)
    replayed = replay(bundle)
    assert replayed.report is not None
    assert replayed.report.comparisons == found.report.comparisons
    assert set(replayed.deviations.values()) == {0.0}


def test_the_formula_of_such_slices_is_among_the_sources(tmp_path: Path) -> None:
    (tmp_path / "sync.yaml").write_text(SYNC)
    config = load_config(tmp_path / "sync.yaml")
    assert "nn_manual.step.slices.sync_batch_norm" in sources_of(config)
    apart = load_config(tmp_path / "sync.yaml", ["sync_batch_norm=false"])
    assert "nn_manual.step.slices.sync_batch_norm" not in sources_of(apart)
    assert {"nn_manual.step.slices.cut", "nn_manual.step.slices.gradient_sum"} <= sources_of(apart).keys()
    whole = load_config(tmp_path / "sync.yaml", ["sync_batch_norm=false", "slices=1"])
    assert {"nn_manual.step.slices.cut", "nn_manual.step.slices.gradient_sum"}.isdisjoint(sources_of(whole))


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True])
def test_a_slice_draws_what_it_drew(compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the third of four: its rows in the batch give it its masks. A plan runs it again where one ran it.
    It alone replays random layers in slices.
    """
    rows_run: list[int] = []
    run = Plan.run

    def noted(self: Plan, inputs: Array, *others: Any) -> Any:
        rows_run.append(inputs.shape[1])
        return run(self, inputs, *others)

    monkeypatch.setattr(Plan, "run", noted)
    right = Tanh.backward

    def wrong(self: Tanh, saved: Any, grad_output: Array) -> Array:
        return (wrong_tanh if len(grad_output) == 3 else right)(self, saved, grad_output)

    monkeypatch.setattr(Tanh, "backward", wrong)
    found = mismatch(tmp_path / "run", DROPOUT, f"compiled={str(compiled).lower()}", "gradient_check.every=2")
    rows_run.clear()
    replayed = replay(tmp_path / "run" / "mismatch-step-2")
    assert replayed.bundle.first_row == 8
    assert rows_run == ([3] if compiled else [])
    assert replayed.report is not None
    assert replayed.report.failures[0].name == found.report.failures[0].name == "2.grad_input"
    assert max(replayed.deviations.values()) < 1e-6


def wrong_denominator(self: CrossEntropyLoss, target: Array) -> float:  # noqa: ARG001 - the signature of every loss
    return 1.0


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True])
def test_what_slices_make_together(compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of 4, 4, 3 and 3 that weigh the same: each is right, their sum isn't. They run again, all of them.
    It alone replays sums of slices.
    """
    with monkeypatch.context() as context:
        context.setattr(CrossEntropyLoss, "denominator", wrong_denominator)
        found = mismatch(tmp_path / "run", DROPOUT, f"compiled={str(compiled).lower()}")
    assert found.report.failures[0].name == "batch.loss"
    bundle = tmp_path / "run" / "mismatch-step-1"
    right = replay(bundle)
    assert right.report is None
    assert right.bundle.first_row is None
    assert right.deviations == {}
    monkeypatch.setattr(CrossEntropyLoss, "denominator", wrong_denominator)
    replayed = replay(bundle)
    assert replayed.report is not None
    assert replayed.report.comparisons == found.report.comparisons


def test_a_sum_is_put_right_where_its_source_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as context:
        context.setattr(InOrder, "add", lambda *_: None)  # the last slice's gradient stays
        found = mismatch(tmp_path / "run", DROPOUT)
    assert found.report.failures[0].name == "summed 0.weight"
    bundle = tmp_path / "run" / "mismatch-step-1"
    assert replay(bundle).not_reproduced is not None
    described = (bundle / "bundle.yaml").read_text()
    own = sources_of(load_config(bundle / "config.yaml"))["nn_manual.step.slices.gradient_sum"]
    (bundle / "bundle.yaml").write_text(described.replace(own, "0" * len(own)))
    assert replay(bundle).passed
