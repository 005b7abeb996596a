"""What follows a run's losses and epochs: its schedule, and early stopping."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.reliability.kills import end_of
from runs import CONFIG, lines, write_config
from stopped_runs import stopped

from nn_manual.config import load_config
from nn_manual.errors import ConfigError
from nn_manual.run.loading import load
from nn_manual.run.new_run import run
from nn_manual.run.resume import resume
from nn_manual.trainer.early_stop import EarlyStop


def test_without_validation_examples(config_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = load_config(config_path, ["data.Spirals.validation_fraction=0"])
    summary = run(config, tmp_path / "run")
    assert "validation_loss" not in summary
    assert all("validation" not in line for line in capsys.readouterr().out.splitlines())
    with pytest.raises(ConfigError, match=r"^override 'early_stopping.patience=1': early_stopping watches the "):
        load(load_config(config_path, ["data.Spirals.validation_fraction=0", "early_stopping.patience=1"]))


def test_a_plateau_follows_the_validation_loss(config_path: Path, tmp_path: Path) -> None:
    """With an lr of 0 the loss never falls."""
    plateau = "lr_scheduler={ReduceLROnPlateau: {patience: 0, factor: 0.5, eps: 0}}"
    config = load_config(config_path, [plateau, "optimizer.SGD.lr=1e-30", "epochs=4"])
    for name in ("a", "b"):  # the second run starts anew
        run(config, tmp_path / name)
        lrs = [record["lr"] for record in lines(tmp_path / name / "metrics.jsonl")]
        assert lrs == pytest.approx([1e-30, 1e-30, 0.5e-30, 0.25e-30], rel=1e-12, abs=0)
    with pytest.raises(ConfigError, match=r"^override 'lr_sch.*': ReduceLROnPlateau watches the validation loss, but"):
        load(load_config(config_path, [plateau, "data.Spirals.validation_fraction=0"]))


@pytest.mark.parametrize(
    ("scheduler", "note"),
    [
        ("{CosineAnnealingLR: {T_max: 4}}", "CosineAnnealingLR takes 4 epochs, the run has 3"),
        ("{LinearLR: {total_iters: 10}}\nlr_step: step", "LinearLR takes 10 steps, the run has 9"),
        ("{CosineAnnealingLR: {T_max: 3}}", None),
        ("{LinearLR: {total_iters: 9}}\nlr_step: step", None),
    ],
)
def test_a_schedule_that_outlasts_the_run_is_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scheduler: str, note: str | None
) -> None:
    path = write_config(tmp_path, f"{CONFIG}lr_scheduler: {scheduler}\n")
    run(load_config(path), tmp_path / "run")
    line = CONFIG.count("\n") + 1
    assert capsys.readouterr().err == (f"{path}:{line}:16: note: {note}\n" if note else "")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["lr_scheduler.OneCycleLR.total_steps=2"], "OneCycleLR has no lr after 2 epochs, and the run has 4"),
        (["lr_step=step"], "OneCycleLR has no lr after 4 steps, and the run has 12"),
        (["optimizer.SGD.momentum=0"], r"OneCycleLR moves the momentum of SGD: it must be above 0 at first, not 0\.0"),
    ],
)
def test_a_schedule_that_can_t_move_this_run(config_path: Path, settings: list[str], message: str) -> None:
    """A run may have a count more than total_steps has: torch's has an lr there."""
    schedule = "lr_scheduler={OneCycleLR: {max_lr: 0.1, total_steps: 4}}"
    load(load_config(config_path, [schedule, "epochs=5"]))
    with pytest.raises(ConfigError, match=rf"^override 'lr_scheduler.*': {message}$"):
        load(load_config(config_path, [schedule, "epochs=4", *settings]))


def test_a_resumed_run_goes_on_with_the_momentum(config_path: Path, tmp_path: Path) -> None:
    """It ends where the run in one piece does."""
    schedule = "lr_scheduler={OneCycleLR: {max_lr: 0.1, total_steps: 12}}"
    config = load_config(config_path, [schedule, "lr_step=step", "epochs=4"])
    run(config, tmp_path / "whole")
    stopped(config_path, tmp_path / "parts", 5, schedule, "lr_step=step", "epochs=4")
    resume(tmp_path / "parts")
    assert end_of(tmp_path / "parts") == end_of(tmp_path / "whole")


def _after(stop: EarlyStop, loss: float) -> bool:
    stop.after(loss)
    return stop.has_stopped


class TestEarlyStopping:
    def test_after_patience_epochs_without_a_fall(self) -> None:
        stop = EarlyStop(patience=2, min_delta=0.1)
        losses = [1.0, 0.95, 0.85, 0.8, 0.5, 0.45, 0.41]
        assert [_after(stop, loss) for loss in losses] == [False, False, False, False, False, False, True]

    def test_never_without_settings(self) -> None:
        stop = EarlyStop(None)
        assert not any(_after(stop, 1.0) for _ in range(100))

    def test_ends_a_run(self, config_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        settings = ["early_stopping={patience: 2, min_delta: 100}", "epochs=50"]
        summary = run(load_config(config_path, settings), tmp_path / "run")
        assert summary["epoch"] == 3  # the first loss is always a fall
        assert len(lines(tmp_path / "run" / "metrics.jsonl")) == 3
        assert (tmp_path / "run" / "summary.json").exists()
        last = capsys.readouterr().out.splitlines()[-1]
        assert last == "stopped early: no better than epoch 1 for 2 epochs"
