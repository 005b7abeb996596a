"""A run: its files, its numbers, and that it can be made again to the byte."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import CONFIG, NUM_TENSORS, lines, names, write_config

from nn_manual import check_gradients
from nn_manual.config import RunConfig, load_config
from nn_manual.data import batches
from nn_manual.errors import NotFiniteError
from nn_manual.run import keeper
from nn_manual.run.keeper import CheckpointKeeper
from nn_manual.run.loading import check, load
from nn_manual.run.new_run import default_run_directory, run
from nn_manual.run.resume import resume
from nn_manual.run_directory import ledger
from nn_manual.run_directory.metrics import read_run
from nn_manual.run_directory.weights import read_weights
from nn_manual.trainer.progress import RunBar

RUN_FILES = [
    *("best.safetensors", "checkpoints", "config.yaml", "data.json", "gradients.jsonl", "loss.png", "metrics.jsonl"),
    *("model.safetensors", "summary.json"),
]


def metrics_without_seconds(directory: Path) -> str:
    return re.sub(r', "seconds": [0-9.e-]+\}', "}", (directory / "metrics.jsonl").read_text())


@pytest.mark.usefixtures("with_figure")
def test_files_of_a_run(config_path: Path, tmp_path: Path) -> None:
    directory = tmp_path / "runs" / "a"
    summary = run(load_config(config_path), directory)
    assert names(directory) == RUN_FILES
    assert json.loads((directory / "summary.json").read_text()) == summary
    assert (directory / "loss.png").read_bytes().startswith(b"\x89PNG")

    epochs, steps = lines(directory / "metrics.jsonl"), lines(directory / "gradients.jsonl")
    columns = ["epoch", "step", "train_loss", "validation_loss", "validation_accuracy", "lr", "seconds"]
    assert [list(epoch) for epoch in epochs] == 3 * [columns]
    assert [(epoch["epoch"], epoch["step"], epoch["lr"]) for epoch in epochs] == [(1, 3, 0.5), (2, 6, 0.5), (3, 9, 0.5)]
    assert 0 < epochs[0]["seconds"] < epochs[1]["seconds"] < epochs[2]["seconds"]
    assert [step["step"] for step in steps] == list(range(1, 10))
    assert {step["tensors"] for step in steps} == {NUM_TENSORS}
    assert all(step["relative"] <= step["tolerance"] <= 1e-5 for step in steps)

    for step in steps:
        ledger = step.pop("errors")
        assert len(ledger) == NUM_TENSORS
        percent, ulps = ledger[step["worst"]]
        # Three digits: half a unit of the last is at most a 200th.
        assert percent == pytest.approx(100 * step["relative"] / step["tolerance"], rel=5e-3)
        assert percent == max(percent for percent, _ in ledger.values())
        assert ulps == float(f"{step['ulps']:.3g}")  # the same number, which the ledger has with three digits

    assert {name: summary[name] for name in columns} == epochs[-1]
    assert summary["parameters"] == 2 * 8 + 8 + 8 * 2 + 2
    assert summary["gradient_check"] == {
        "steps": 9,
        "tensors": 9 * NUM_TENSORS,
        "together": 256,
        "mismatches": 0,
        "rounding": 0,
        "worst": max(steps, key=lambda step: step["relative"] / step["tolerance"]),
        "unproven": [],
        "vacuous": [],
    }
    weights = directory / "model.safetensors"
    assert summary["model_sha256"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    model = load(load_config(config_path))[1]
    trained = read_weights(weights, summary["model_sha256"])
    assert trained.keys() == model.state_dict().keys()
    for name, value in trained.items():
        assert np.isfinite(value).all()
        assert not np.array_equal(value, model.state_dict()[name])


def test_the_metrics_are_those_of_the_model_that_was_saved(config_path: Path, tmp_path: Path) -> None:
    summary = run(load_config(config_path), tmp_path / "run")
    split, model = load(load_config(config_path))
    model.load_state_dict(read_weights(tmp_path / "run" / "model.safetensors"))
    right = model(split.validation.input).argmax(axis=1) == split.validation.target
    assert summary["validation_accuracy"] == right.mean()


def test_what_was_done_to_the_data_is_kept(tmp_path: Path) -> None:
    """So that other examples can be brought into the form that the model was trained on: here those it was."""
    config = load_config(write_config(tmp_path, re.sub("data: .*", "data: Iris", CONFIG)), [
        "model.0.Linear.in_features=4", "model.2.Linear.out_features=3", "gradient_check.every=0", "epochs=1",
    ])  # fmt: skip - a list of overrides
    run(config, tmp_path / "run")
    kept = json.loads((tmp_path / "run" / "data.json").read_text())
    assert kept["target"] is None
    assert kept["names"]["classes"] == ["setosa", "versicolor", "virginica"]
    assert len(kept["names"]["input"]) == 4
    flower = (np.array([5.1, 3.5, 1.4, 0.2]) - kept["input"]["mean"]) / kept["input"]["std"]
    split = load(config)[0]
    examples = np.concatenate([split.train.input, split.validation.input])
    assert (examples == flower.astype(np.float32)).all(axis=1).any()


def test_a_mean_over_the_epoch_weighs_each_batch_by_its_denominator(config_path: Path, tmp_path: Path) -> None:
    weights = ["loss={CrossEntropyLoss: {weight: [1, 5]}}", "optimizer.SGD.lr=0", "epochs=1"]
    config = load_config(config_path, weights)
    summary = run(config, tmp_path / "run")
    split, model = load(config)
    for name, (input, target) in (("train_loss", split.train), ("validation_loss", split.validation)):
        whole = config.loss.forward(model(input), target)[0]
        assert summary[name] == pytest.approx(whole, rel=1e-6)  # in float32


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_seed_one_run(config_path: Path, tmp_path: Path, dtype: str) -> None:
    config = load_config(config_path, [f"dtype={dtype}"])
    run(config, tmp_path / "a")
    run(config, tmp_path / "b")
    run(load_config(tmp_path / "a" / "config.yaml"), tmp_path / "from its config.yaml")
    for other in (tmp_path / "b", tmp_path / "from its config.yaml"):
        assert metrics_without_seconds(other) == metrics_without_seconds(tmp_path / "a")
        for name in ("gradients.jsonl", "model.safetensors", "config.yaml"):
            assert (other / name).read_bytes() == (tmp_path / "a" / name).read_bytes()
    run(load_config(config_path, [f"dtype={dtype}", "seed=1"]), tmp_path / "another seed")
    assert metrics_without_seconds(tmp_path / "another seed") != metrics_without_seconds(tmp_path / "a")


def test_the_seed_orders_the_batches(tmp_path: Path) -> None:
    """Where nothing else is random: no generated data, no split, no draw of parameters."""
    rows = "".join(f"{number},{number % 7},{number % 2}\n" for number in range(40))
    (tmp_path / "data.csv").write_text("a,b,y\n" + rows)
    data = "data: {Arrays: {file: data.csv, target: y, task: classification, validation_fraction: 0}}"
    write_config(tmp_path, re.sub("data: .*", data, CONFIG))
    for seed in (0, 1):
        settings = [f"seed={seed}", "initializer={Constant: {value: 0.1}}", "gradient_check.every=0", "epochs=1"]
        run(load_config(tmp_path / "small.yaml", settings), tmp_path / str(seed))
    assert metrics_without_seconds(tmp_path / "0") != metrics_without_seconds(tmp_path / "1")


def test_can_be_read_while_it_goes_on(config_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def reading(bar: RunBar, record: dict[str, Any], **_: bool) -> None:
        recorded = read_run(tmp_path / "run")
        sizes.append((record["epoch"], recorded.metrics["epoch"].size, recorded.gradients["step"].size))
        assert bar.num_epochs == 3

    monkeypatch.setattr(RunBar, "say_epoch", reading)
    run(load_config(config_path), tmp_path / "run")
    assert sizes == [(1, 1, 3), (2, 2, 6), (3, 3, 9)]


def test_the_ledger_has_each_proven_step_after_a_while(
    config_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within an epoch, too: what waits in memory is lost where the process is killed."""
    monkeypatch.setattr(keeper, "SECONDS_BEHIND", 0)
    add_proven, found = CheckpointKeeper.add_proven, list[tuple[int, int]]()

    def counting(self: CheckpointKeeper) -> None:
        add_proven(self)
        found.append((self.training.tally.num_steps, len(lines(tmp_path / "run" / "gradients.jsonl"))))

    monkeypatch.setattr(CheckpointKeeper, "add_proven", counting)
    run(load_config(config_path, ["epochs=1", "slices=2"]), tmp_path / "run")  # each step is proven at once
    assert found[:3] == [(1, 1), (2, 2), (3, 3)]


def test_checking_changes_nothing(config_path: Path, tmp_path: Path) -> None:
    settings = ["clip_grad_norm=0.5", "lr_scheduler.CosineAnnealingLR.T_max=3"]
    for every, num_checked in ((0, 0), (1, 9), (4, 2)):
        summary = run(load_config(config_path, [*settings, f"gradient_check.every={every}"]), tmp_path / str(every))
        assert summary["gradient_check"]["steps"] == num_checked
        assert summary["gradient_check"]["tensors"] == num_checked * (NUM_TENSORS + 1)  # and the clipped gradient
        assert (summary["gradient_check"]["worst"] is None) == (every == 0)
    unchecked = tmp_path / "0"
    for checked in (tmp_path / "1", tmp_path / "4"):
        assert metrics_without_seconds(checked) == metrics_without_seconds(unchecked)
        assert (checked / "model.safetensors").read_bytes() == (unchecked / "model.safetensors").read_bytes()
    assert [record["step"] for record in lines(tmp_path / "4" / "gradients.jsonl")] == [4, 8]
    lrs = [record["lr"] for record in lines(tmp_path / "0" / "metrics.jsonl")]
    assert lrs == pytest.approx([0.5, 0.375, 0.125])


def test_in_a_long_run_a_line_stands_for_several_steps(
    config_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "MOST_STEPS", 5)
    monkeypatch.setattr(ledger, "MOST_LINES", 2)
    for every, windows in ((1, [(1, 5), (6, 9)]), (2, [(2, 2), (4, 4), (6, 6), (8, 8)])):
        summary = run(load_config(config_path, [f"gradient_check.every={every}"]), tmp_path / str(every))
        gradients = read_run(tmp_path / str(every)).gradients
        assert list(zip(gradients["first_step"], gradients["last_step"], strict=True)) == windows
        worst = gradients["relative"] / gradients["tolerance"]
        assert gradients["step"][worst.argmax()] == summary["gradient_check"]["worst"]["step"]


def test_a_short_run_that_goes_on_for_long_has_longer_lines_then(
    config_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(load_config(config_path, ["epochs=1"]), tmp_path / "run")
    monkeypatch.setattr(ledger, "MOST_STEPS", 5)
    monkeypatch.setattr(ledger, "MOST_LINES", 2)
    resume(tmp_path / "run", ["epochs=3"])
    gradients = read_run(tmp_path / "run").gradients
    spans = list(zip(gradients["first_step"], gradients["last_step"], strict=True))
    assert spans == [(1, 1), (2, 2), (3, 3), (4, 8), (9, 9)]


def test_a_run_that_goes_on_within_a_line_writes_the_same_ledger(
    config_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "MOST_STEPS", 5)
    monkeypatch.setattr(ledger, "MOST_LINES", 2)
    directory = tmp_path / "run"
    run(load_config(config_path, ["checkpoint={every: 1 steps, keep: 9}"]), directory)
    whole = (directory / "gradients.jsonl").read_bytes()
    for step in (7, 5, 3):
        resume(directory / "checkpoints" / f"step-{step}")
        assert (directory / "gradients.jsonl").read_bytes() == whole, step


def test_losses_that_are_sums_have_their_counts(config_path: Path, tmp_path: Path) -> None:
    """So that a figure can compare them."""
    for reduction in ("mean", "sum"):
        settings = [f"loss.CrossEntropyLoss.reduction={reduction}", "optimizer.SGD.lr=0", "epochs=1"]
        run(load_config(config_path, ["loss={CrossEntropyLoss: {}}", *settings]), tmp_path / reduction)
    (mean,), (total,) = lines(tmp_path / "mean" / "metrics.jsonl"), lines(tmp_path / "sum" / "metrics.jsonl")
    assert not any(name.startswith("num_") for name in mean)
    assert (total["num_train_examples"], total["num_validation_examples"]) == (48, 12)
    assert total["train_loss"] / 48 == pytest.approx(mean["train_loss"], rel=1e-6)
    assert total["validation_loss"] / 12 == pytest.approx(mean["validation_loss"], rel=1e-6)
    assert read_run(tmp_path / "sum").metrics["num_validation_examples"].tolist() == [12]


class TestCheck:
    def test_every_tensor_of_the_first_batch(self, config_path: Path) -> None:
        report = check(load_config(config_path))
        assert report.passed
        # Not the updates, but the gradient of the input.
        assert len(report.comparisons) == NUM_TENSORS - 8 + 1
        assert report.comparisons[0].shape == (16, 8)

    def test_a_batch_in_which_no_target_counts_is_left_out(self, config_path: Path) -> None:
        split, model = load(load_config(config_path))
        (input, target), *_ = batches(split.train, 1, 0, epoch=0)
        override = f"loss={{CrossEntropyLoss: {{ignore_index: {target[0]}}}}}"
        config = load_config(config_path, [override, "batch_size=1"])
        assert check(config).passed
        with pytest.raises(ValueError, match=r"^CrossEntropyLoss counts no target of the batch: there is no loss"):
            check_gradients(model, config.loss, input, target)

    @pytest.mark.parametrize("row", range(6))
    def test_a_sum_over_targets_of_weight_zero_is_a_loss(self, tmp_path: Path, row: int) -> None:
        """One of the six rows is the validation set: then all of training has the weight 0."""
        rows = [f"{number},{number % 4},{int(number == row)}\n" for number in range(6)]
        (tmp_path / "classes.csv").write_text("".join(["a,b,y\n", *rows]))
        data = "data: {Arrays: {file: classes.csv, target: y, task: classification}}"
        loss = "loss={CrossEntropyLoss: {reduction: sum, weight: [0, 1]}}"
        assert check(load_config(write_config(tmp_path, re.sub("data: .*", data, CONFIG)), [loss])).agrees

    def test_overflow_is_no_mismatch(self, tmp_path: Path) -> None:
        (tmp_path / "large.csv").write_text("a,b,y\n1e30,2e30,1e30\n3,1,2\n1,2,-1e30\n")
        with pytest.raises(NotFiniteError, match=r"^the loss is inf in the first batch$"):
            check(regression(tmp_path, "large.csv"))


def regression(folder: Path, file: str) -> RunConfig:
    text = CONFIG.replace("CrossEntropyLoss", "MSELoss").replace("out_features: 2", "out_features: 1")
    data = f"data: {{Arrays: {{file: {file}, target: y, task: regression}}}}"
    return load_config(write_config(folder, re.sub("data: .*", data, text)))


def test_default_directories_differ() -> None:
    first, second = (default_run_directory(Path("config/digits.yaml")) for _ in range(2))
    assert first.parent == second.parent == Path("runs/digits")
    assert first != second
