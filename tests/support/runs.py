"""What the tests of runs share: a config that trains in a tenth of a second, and what a run left behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

#: 48 training and 12 validation examples: 3 steps an epoch.
CONFIG = """\
data: {Spirals: {num_examples: 60, turns: 0.5, validation_fraction: 0.2}}
batch_size: 16
epochs: 3
model:
  - Linear: {in_features: 2, out_features: 8}
  - Tanh
  - Linear: {in_features: 8, out_features: 2}
loss: CrossEntropyLoss
optimizer: {SGD: {lr: 0.5, momentum: 0.9}}
"""

#: What a run can remember: random numbers, buffers, vectors, a schedule and early stopping that watch the losses.
EVERYTHING = [
    "model=[{Linear: {in_features: 2, out_features: 8}}, {BatchNorm1d: {num_features: 8}}, Tanh, {Dropout: {p: 0.2}}, "
    "{Linear: {in_features: 8, out_features: 2}}]",
    "optimizer={Adam: {lr: 0.1, amsgrad: true}}",
    "lr_scheduler={ReduceLROnPlateau: {patience: 0, factor: 0.5}}",
    "early_stopping={patience: 4}",
    "clip_grad_norm=1",
]

#: outputs, loss, grad_prediction, gradients of 4 parameters, grad_input of 2 layers, 4 momentum buffers, 4 parameters
NUM_TENSORS = 3 + 1 + 1 + 4 + 2 + 4 + 4

#: What lies in a run directory while a run goes on.
GROWING = ["config.yaml", "data.json", "gradients.jsonl", "metrics.jsonl"]


def write_config(folder: Path, text: str = CONFIG) -> Path:
    """`text` as a file small.yaml."""
    path = folder / "small.yaml"
    path.write_text(text)
    return path


def lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a .jsonl file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def names(directory: Path) -> list[str]:
    """The files in a directory, sorted."""
    return sorted(path.name for path in directory.iterdir())
