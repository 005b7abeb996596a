"""A run with `ema`: it evaluates the averaged weights, keeps them, and goes on bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import CONFIG, EVERYTHING, lines, write_config

from nn_manual import CrossEntropyLoss, Trainer, load_run
from nn_manual.cli import main
from nn_manual.config import EMA, load_config
from nn_manual.errors import ConfigError
from nn_manual.optim import SGD
from nn_manual.run.loading import load
from nn_manual.run_directory.checkpoints import checkpoints_of, read_checkpoint
from nn_manual.run_directory.weights import read_weights
from nn_manual.unroll.command import unroll

WAYS: dict[str, list[str]] = {
    "plain": [],
    "compiled": ["compiled=true"],
    "slices": ["slices=2"],
    "everything": EVERYTHING,
}


def train(folder: Path, name: str, *overrides: str) -> Path:
    """A run directory."""
    folder.mkdir(exist_ok=True)
    config, directory = write_config(folder), folder / name
    assert main(["train", str(config), "--run-dir", str(directory), *overrides]) == 0
    return directory


def state_of(directory: Path) -> dict[str, Any]:
    """The arrays of the newest checkpoint."""
    _, tensors = read_checkpoint(checkpoints_of(directory)[0])
    return tensors["state.safetensors"]


@pytest.mark.parametrize("way", WAYS)
def test_a_run_goes_on_bit_for_bit(way: str, tmp_path: Path) -> None:
    whole = train(tmp_path, "whole", "ema={decay: 0.8}", *WAYS[way])
    part = train(tmp_path, "part", "ema={decay: 0.8}", "epochs=1", *WAYS[way])
    assert main(["train", "--resume", str(part), "epochs=3"]) == 0
    for name in ("model.safetensors", "best.safetensors"):
        assert (part / name).read_bytes() == (whole / name).read_bytes(), name
    losses = [[line["validation_loss"] for line in lines(run / "metrics.jsonl")] for run in (whole, part)]
    assert losses[0] == losses[1]


def test_what_is_kept_is_what_was_evaluated(tmp_path: Path) -> None:
    directory = train(tmp_path, "run", "ema={decay: 0.8}")
    weights, state = read_weights(directory / "model.safetensors"), state_of(directory)
    for name, value in weights.items():
        np.testing.assert_array_equal(value, state[f"ema {name}"])
        assert np.abs(value - state[name]).max() > 1e-4  # the weights that training goes on from
    config = load_config(directory / "config.yaml")
    assert config.ema == EMA(0.8)
    split, model = load(config)
    model.load_state_dict(weights)
    evaluated = Trainer(model, CrossEntropyLoss(), SGD(model), check_every=0).evaluate(split.validation)
    assert evaluated.loss == lines(directory / "metrics.jsonl")[-1]["validation_loss"]


def test_a_run_that_has_not_ended_has_the_average_in_its_checkpoint(tmp_path: Path) -> None:
    directory = train(tmp_path, "run", "ema={decay: 0.8}")
    at_the_end = load_run(directory, "last").model.state_dict()
    for name in ("summary.json", "model.safetensors"):
        (directory / name).unlink()
    of_checkpoint = load_run(directory, "last").model.state_dict()
    for name, value in of_checkpoint.items():
        np.testing.assert_array_equal(value, at_the_end[name])


def test_training_is_the_same_without_an_average(tmp_path: Path) -> None:
    averaged, plain = train(tmp_path, "averaged", "ema={}"), train(tmp_path, "plain")
    losses = [[line["train_loss"] for line in lines(run / "metrics.jsonl")] for run in (averaged, plain)]
    assert losses[0] == losses[1]
    assert "ema 0.weight" not in state_of(plain)


def test_resuming_with_another_decay_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = train(tmp_path, "run", "ema={decay: 0.8}")
    assert main(["train", "--resume", str(directory), "epochs=4", "ema.decay=0.9"]) == 2
    assert "ema" in capsys.readouterr().err


def test_a_script_has_no_average(tmp_path: Path) -> None:
    config = load_config(write_config(tmp_path, CONFIG + "ema: {}\n"))
    with pytest.raises(ConfigError, match=r"^unroll: ema must be null"):
        unroll(config, "small")


def test_a_decay_out_of_range_has_its_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"small\.yaml:10:7: decay must be less than 1, not 2"):
        load_config(write_config(tmp_path, CONFIG + "ema: {decay: 2}\n"))
