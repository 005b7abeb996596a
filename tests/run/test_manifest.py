"""A checkpoint of a run, read back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nn_manual.config import load_config
from nn_manual.errors import DataError
from nn_manual.run.manifest import read_run_checkpoint
from nn_manual.run.new_run import run
from nn_manual.run_directory.checkpoints import checkpoints_of, read_checkpoint, write_checkpoint


def test_what_a_checkpoint_has(config_path: Path, tmp_path: Path) -> None:
    run(load_config(config_path), tmp_path / "run")
    (checkpoint,) = checkpoints_of(tmp_path / "run")
    kept = read_run_checkpoint(checkpoint)
    assert (kept.manifest["step"], kept.manifest["epoch"], kept.config["epochs"]) == (9, 3, 3)
    assert kept.sha256 == json.loads((checkpoint / "manifest.json").read_text())["sha256"]
    assert kept.tensors.keys() == {"state.safetensors", "best.safetensors"}


def test_its_sha256_is_also_that_of_the_arrays(config_path: Path, tmp_path: Path) -> None:
    """By it, processes agree that they go on from one state."""
    run(load_config(config_path), tmp_path / "run")
    (checkpoint,) = checkpoints_of(tmp_path / "run")
    before = read_run_checkpoint(checkpoint)
    manifest, tensors = read_checkpoint(checkpoint)
    del manifest["sha256"], manifest["files"]
    tensors["state.safetensors"]["0.bias"] = np.nextafter(tensors["state.safetensors"]["0.bias"], np.float32(9))
    write_checkpoint(tmp_path / "run", 9, tensors, manifest, keep=1)
    after = read_run_checkpoint(checkpoint)
    assert after.manifest == before.manifest
    assert after.sha256 != before.sha256


def test_a_folder_that_was_renamed(config_path: Path, tmp_path: Path) -> None:
    run(load_config(config_path), tmp_path / "run")
    (checkpoint,) = checkpoints_of(tmp_path / "run")
    renamed = checkpoint.rename(checkpoint.with_name("step-8"))
    with pytest.raises(DataError, match=r'/step-8/manifest\.json: "step" is 9, and the folder is step-8$'):
        read_run_checkpoint(renamed)
