"""Runs that have ended, without their training: what evaluate, predict and load_run read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from runs import write_config

from nn_manual.arrays import Array
from nn_manual.config import dump_config, load_config
from nn_manual.data import Names, Standardization, Transform
from nn_manual.run_directory.weights import write_weights

#: Two columns, two classes; the model predicts the two standardised columns.
CONFIG = """\
data: {Arrays: {file: train.csv, target: y, task: classification, standardize: true, validation_fraction: 0.0}}
batch_size: 4
epochs: 3
model:
  - Linear: {in_features: 2, out_features: 2}
loss: CrossEntropyLoss
optimizer: {SGD: {lr: 0.5}}
"""
REGRESSION = CONFIG.replace("target: y, task: classification", "target: [u, v], task: regression")
REGRESSION = REGRESSION.replace("CrossEntropyLoss", "MSELoss")
LABELS = REGRESSION.replace("task: regression", "task: labels").replace("MSELoss", "BCEWithLogitsLoss")

#: a = 3 is standardised to 1, and b = 10 to 2.
OF_INPUT = Standardization(np.array([1.0, 2.0]), np.array([2.0, 4.0]))
TRANSFORM = Transform(OF_INPUT, None, Names(("a", "b"), ("y",), ("no", "yes")))
OF_TARGET = Standardization(np.array([10.0, 0.0]), np.array([5.0, 1.0]))
OF_REGRESSION = Transform(OF_INPUT, OF_TARGET, Names(("a", "b"), ("u", "v")))
OF_LABELS = OF_REGRESSION._replace(target=None)

IDENTITY = {"0.weight": np.eye(2, dtype=np.float32), "0.bias": np.zeros(2, np.float32)}
SWAPPED = IDENTITY | {"0.weight": np.eye(2, dtype=np.float32)[::-1].copy()}


def write_trained(
    folder: Path,
    text: str = CONFIG,
    transform: Transform = TRANSFORM,
    last: dict[str, Array] | None = None,
    best: dict[str, Array] | None = None,
) -> Path:
    """A run whose last weights are `last`, by default IDENTITY, and whose best ones are `best`, if it has some."""
    run = folder / "run"
    run.mkdir()
    (run / "config.yaml").write_text(dump_config(load_config(write_config(folder, text))))
    (run / "data.json").write_text(json.dumps(transform.as_json()))
    summary: dict[str, Any] = {"model_sha256": write_weights(run / "model.safetensors", last or IDENTITY)}
    if best is not None:
        sha256 = write_weights(run / "best.safetensors", best)
        summary["best"] = {"epoch": 2, "step": 6, "validation_loss": 0.25, "sha256": sha256}
    (run / "summary.json").write_text(json.dumps(summary))
    return run
