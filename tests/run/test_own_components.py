"""Losses, optimizers, schedules, initializers and data sets of the user's own in the life of a run."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.reliability.kills import end_of
from own_components import write_own
from stopped_runs import stopped

from nn_manual import load_run
from nn_manual.cli import main
from nn_manual.config import load_config
from nn_manual.run.new_run import run
from nn_manual.run.resume import resume
from nn_manual.run.sources import sources_of
from nn_manual.run_directory.weights import read_weights
from nn_manual.use.evaluate import evaluate


@pytest.fixture
def config_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_own(tmp_path)


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_run_that_goes_on_ends_as_one_that_never_stopped(config_path: Path, tmp_path: Path, compiled: bool) -> None:
    """Compiled, it is slow: it alone compiles own losses and optimizers in a run."""
    overrides = ["compiled=true"] if compiled else []
    run(load_config(config_path, overrides), tmp_path / "whole")
    stopped(config_path, tmp_path / "run", 3, *overrides)
    resume(tmp_path / "run")
    assert end_of(tmp_path / "run") == end_of(tmp_path / "whole")


@pytest.mark.slow
def test_compiled_and_unchecked_steps_compute_the_same(config_path: Path, tmp_path: Path) -> None:
    """It alone compares them with checked ones."""
    weights = {}
    for name, overrides in {
        "checked": [], "plain": ["gradient_check.every=0"], "compiled": ["compiled=true"]
    }.items():  # fmt: skip - a table
        run(load_config(config_path, overrides), tmp_path / name)
        weights[name] = read_weights(tmp_path / name / "model.safetensors", None)
    for name, array in weights["checked"].items():
        assert array.tobytes() == weights["plain"][name].tobytes()
        np.testing.assert_allclose(array, weights["compiled"][name], rtol=0, atol=0.03)  # a sign may turn


def test_its_config_has_import_paths_and_every_default(config_path: Path, tmp_path: Path) -> None:
    run(load_config(config_path), tmp_path / "run")
    written = (tmp_path / "run" / "config.yaml").read_text()
    for line in (
        "data:\n  mine:Waves: {num_examples: 60, noise: 0.1, validation_fraction: 0.2}\n",
        "initializer:\n  mine:Laplace: {scale: 0.5}\n",
        "loss:\n  mine:LogCoshLoss: {reduction: mean}\n",
        "  mine:SignSGD:\n    lr: 0.01\n    momentum: 0.9\n    groups: []\n",
        "lr_scheduler:\n  mine:Warmup: {num_counts: 3}\n",
        f"layer_folder: {tmp_path}\n",
    ):
        assert line in written
    assert sources_of(load_config(tmp_path / "run" / "config.yaml"))["mine"]


def test_a_finished_run_is_used_from_another_folder(
    config_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(load_config(config_path), tmp_path / "run")
    moved, elsewhere = tmp_path / "moved", tmp_path / "elsewhere"
    moved.mkdir()
    elsewhere.mkdir()
    shutil.move(tmp_path / "mine.py", moved)
    shutil.move(tmp_path / "run", elsewhere)
    monkeypatch.chdir(elsewhere)
    sys.modules.pop("mine", None)
    capsys.readouterr()
    assert main(["evaluate", "run"]) == 2
    assert "--layer-folder FOLDER" in capsys.readouterr().err
    assert main(["evaluate", "run", "--layer-folder", str(moved)]) == 0
    assert "validation part of Waves, 12 examples" in capsys.readouterr().out
    Path("new.csv").write_text("x\n0.5\n-0.25\n")
    assert main(["predict", "run", "--input", "new.csv", "--layer-folder", str(moved)]) == 0
    predicted = [float(line) for line in capsys.readouterr().out.splitlines()[1:]]
    trained = load_run("run", layer_folder=moved)
    np.testing.assert_allclose(predicted, trained.predict(np.array([[0.5], [-0.25]])).ravel(), rtol=1e-6)


@pytest.mark.parametrize("command", ["summary", "unroll"])
def test_other_commands_take_them(config_path: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, str(config_path)]) == 0
    printed = capsys.readouterr().out
    assert ("Waves: examples of" if command == "summary" else "np.log1p(") in printed


def test_a_changed_optimizer_is_noted(config_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(load_config(config_path), tmp_path / "run")
    capsys.readouterr()
    (tmp_path / "mine.py").write_text((tmp_path / "mine.py").read_text() + "\n# changed\n")
    load_run(tmp_path / "run")
    assert capsys.readouterr().err == "note: mine changed since the run began\n"


def test_an_own_schedule_in_a_sequence(config_path: Path, tmp_path: Path) -> None:
    sequence = "{SequentialLR: {schedulers: [mine:Warmup: {num_counts: 2}, ConstantLR], milestones: [2]}}"
    config = load_config(config_path, [f"lr_scheduler={sequence}"])
    assert run(config, tmp_path / "run")["gradient_check"]["steps"] == 9
    assert "mine:Warmup: {num_counts: 2}" in (tmp_path / "run" / "config.yaml").read_text()



OF_CLASSES = """\
from dataclasses import dataclass

import numpy as np
import torch

from nn_manual.losses import OfClasses


@dataclass(eq=False)
class BrierLoss(OfClasses):
    weight = None
    ignore_index = -100

    def forward(self, prediction, target):
        exponential = np.exp(prediction - prediction.max(axis=1, keepdims=True))
        probability = exponential / exponential.sum(axis=1, keepdims=True)
        error = probability - (np.arange(prediction.shape[1]) == target[:, np.newaxis])
        error = error.astype(prediction.dtype)
        return np.square(error).sum() / len(prediction), (probability, error)

    def backward(self, saved):
        probability, error = saved
        weighted = 2 * error * probability
        return (weighted - probability * weighted.sum(axis=1, keepdims=True)) / len(error)

    def reference(self, prediction, target):
        error = prediction.softmax(1) - torch.nn.functional.one_hot(target, prediction.shape[1])
        return error.square().sum() / len(prediction)
"""


def test_an_own_loss_of_classes_gives_probabilities(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OF_CLASSES)
    (tmp_path / "classes.yaml").write_text(
        "data: {Spirals: {num_examples: 60}}\nbatch_size: 16\nepochs: 2\n"
        "model: [{Linear: {in_features: 2, out_features: 2}}]\nloss: mine:BrierLoss\noptimizer: SGD\n"
    )
    summary = run(load_config(tmp_path / "classes.yaml"), tmp_path / "run")
    assert summary["gradient_check"]["steps"] == 6
    probabilities = load_run(tmp_path / "run").predict(np.zeros((3, 2)))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-6)


def test_a_label_that_does_not_fit_an_own_loss_of_classes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OF_CLASSES)
    (tmp_path / "classes.yaml").write_text(
        "data: {Spirals: {num_examples: 60, num_classes: 3}}\nbatch_size: 16\nepochs: 2\n"
        "model: [{Linear: {in_features: 2, out_features: 2}}]\nloss: mine:BrierLoss\noptimizer: SGD\n"
    )
    assert main(["train", "classes.yaml", "--run-dir", "run"]) == 2
    assert capsys.readouterr().err.startswith("nn-manual: classes.yaml:4:")


SPIKES = """\
from dataclasses import dataclass

import numpy as np

from nn_manual.data import Dataset, Examples, Split


@dataclass
class Spikes(Dataset):
    def load(self, seed, dtype, transform=None):
        target = np.random.default_rng(seed).integers(0, 3, (24, 2))
        input = np.zeros((24, 3, 7), dtype)
        input[:, :, 1::3] = 3 * np.eye(3)[target].swapaxes(1, 2)
        return Split(Examples(input[6:], target[6:]), Examples(input[:6], target[:6]), 3)
"""


def test_labels_in_their_order_have_no_accuracy(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SPIKES)
    (tmp_path / "spikes.yaml").write_text(
        "data: mine:Spikes\nbatch_size: 6\nepochs: 4\nloss: CTCLoss\noptimizer: {Adam: {lr: 0.3}}\nmodel:\n"
        "  - Conv1d: {in_channels: 3, out_channels: 3, kernel_size: 1}\n  - LogSoftmax: {dim: 1}\n"
    )
    summary = run(load_config(tmp_path / "spikes.yaml"), tmp_path / "run")
    assert summary["gradient_check"]["steps"] == 12
    trained = load_run(tmp_path / "run")
    evaluated = evaluate(trained, tmp_path / "run")
    assert (evaluated.accuracy, evaluated.confusion, evaluated.targets) == (None, None, None)
    assert evaluated.loss < 1
    predicted = trained.predict(np.zeros((2, 3, 7)))
    assert predicted.shape == (2, 3, 7)
    np.testing.assert_allclose(np.exp(predicted).sum(axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("setting", ["ema={decay: 0.9}", "slices=2"])
def test_groups_and_an_lr_for_each_step(config_path: Path, tmp_path: Path, setting: str) -> None:
    groups = "optimizer.mine:SignSGD.groups=[{parameters: '*.bias', momentum: 0.5}]"
    config = load_config(config_path, [setting, "lr_step=step", groups])
    assert run(config, tmp_path / "run")["gradient_check"]["steps"] == 9
