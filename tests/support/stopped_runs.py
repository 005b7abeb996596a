"""Runs that a signal has stopped, and their checkpoints with other manifests."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from nn_manual.config import load_config
from nn_manual.errors import Interrupted
from nn_manual.run import epochs, training_run
from nn_manual.run.new_run import run
from nn_manual.run.stop_request import StopRequest
from nn_manual.run_directory.checkpoints import read_checkpoint, step_of, write_checkpoint


def stopped(config_path: Path, directory: Path, step: int, *overrides: str) -> None:
    """A run that a signal has asked to stop after a step."""
    steps = training_run.TrainingRun.steps

    def asked(training: Any) -> Any:
        for result in steps(training):
            if result.number == step:
                request.signum = 15
            yield result

    with pytest.MonkeyPatch.context() as patch:
        request = StopRequest()
        patch.setattr(training_run.TrainingRun, "steps", asked)
        patch.setattr(epochs, "stop_request", lambda: nullcontext(request))
        with pytest.raises(Interrupted):
            run(load_config(config_path, overrides), directory)


def forged(checkpoint: Path, changes: dict[str, Any]) -> None:
    """Another manifest, whose SHA-256 is right: each change has the dotted path of a key."""
    manifest, tensors = read_checkpoint(checkpoint)
    del manifest["sha256"], manifest["files"]
    for path, value in changes.items():
        manifest = _changed(manifest, path, value)
    write_checkpoint(checkpoint.parents[1], step_of(checkpoint) or 0, tensors, manifest, keep=3)


def _changed(record: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    if path in record or "." not in path:
        return {**record, path: value}
    name, _, inner = path.partition(".")
    return {**record, name: _changed(record[name], inner, value)}
