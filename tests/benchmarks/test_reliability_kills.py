"""`benchmark.py reliability kills`: a sample, and that it sees a run that goes on wrongly."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from benchmarks.processes import ROOT
from benchmarks.reliability import kills

from nn_manual.arrays import Array
from nn_manual.config import load_config
from nn_manual.optim import Optimizer
from nn_manual.run import writer
from nn_manual.run.training_run import TrainingRun


def test_twenty_kills(capsys: pytest.CaptureFixture[str]) -> None:
    assert kills.main(num_kills=20, within_epoch=14)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.split() == ["all", "20", "killed,", "20", "resumed,", "20", "within", "an", "epoch,", "20", "identical"]


@pytest.mark.parametrize("lost", ["momentum", "epoch"])
def test_a_run_that_goes_on_wrongly_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str) -> None:
    if lost == "momentum":
        load_state = Optimizer.load_state

        def without_vectors(optimizer: Optimizer, state: dict[str, Array]) -> None:
            load_state(optimizer, {name: array if name == "num_steps" else 0 * array for name, array in state.items()})

        monkeypatch.setattr(Optimizer, "load_state", without_vectors)
    else:
        load = TrainingRun.load

        def one_loss_less(training: TrainingRun, *arguments: Any) -> None:
            load(training, *arguments)
            training.losses.pop()

        monkeypatch.setattr(TrainingRun, "load", one_loss_less)
    config = load_config(ROOT / "config" / "digits.yaml", ["epochs=1", "checkpoint.every=7 steps"])
    with patch.object(writer, "plot_runs"):
        (outcome,) = kills.campaign(config, 1, seed=1, folder=tmp_path)
    assert outcome.was_killed
    assert "weights" in outcome.differs or outcome.differs == ["all"]
