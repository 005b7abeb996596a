"""A run on Text that has ended, without its training: what `sample` reads."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from runs import write_config

from nn_manual.config import dump_config, load_config
from nn_manual.data import Names, Transform
from nn_manual.run_directory.weights import write_weights

#: A model of three characters that sees four of them.
CONFIG = """\
data: {Text: {context: 4}}
batch_size: 16
epochs: 3
model:
  - Embedding: {num_embeddings: 3, embedding_dim: 3}
  - LearnedPositions: {num_positions: 4, embedding_dim: 3}
  - Flatten: {start_dim: 0, end_dim: 1}
  - Linear: {in_features: 3, out_features: 3}
loss: CrossEntropyLoss
optimizer: {SGD: {lr: 0.5}}
"""
CYCLE = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0]], np.float32)


def write_run(folder: Path, certainty: float = 40.0, vocabulary: str = "abé", text: str = CONFIG) -> Path:
    """A run whose model says, however far it is from the beginning, that b comes behind a, é behind b, a behind é:
    the prediction of that character is `certainty`, of the others 0.
    """
    run = folder / "run"
    run.mkdir()
    config = load_config(write_config(folder, text))
    (run / "config.yaml").write_text(dump_config(config))
    model = config.new_model()
    if text == CONFIG:
        eye = np.eye(3, dtype=np.float32)
        positions, bias = np.zeros((4, 3), np.float32), np.zeros(3, np.float32)
        weight = certainty * CYCLE
        model.load_state_dict({"0.weight": eye, "1.weight": positions, "3.weight": weight, "3.bias": bias})
    sha256 = write_weights(run / "model.safetensors", model.state_dict())
    (run / "summary.json").write_text(json.dumps({"model_sha256": sha256}))
    (run / "data.json").write_text(json.dumps(Transform(names=Names(classes=tuple(vocabulary))).as_json()))
    return run
