"""A run whose layers don't fit inside a composite of the user's doesn't begin."""

from __future__ import annotations

from pathlib import Path

import pytest
from composites import WRAP

from nn_manual import cli

#: 64 examples to train on: the last batch has 1.
CONFIG = """\
data: {Spirals: {num_examples: 80, validation_fraction: 0.2}}
batch_size: 21
epochs: 1
model:
  - Linear: {in_features: 2, out_features: 8}
  - wrap:Wrap:
      inner: INNER
  - Linear: {in_features: 8, out_features: 2}
loss: CrossEntropyLoss
optimizer: {SGD: {lr: 0.1}}
"""


@pytest.mark.parametrize("every", [0, 1])
@pytest.mark.parametrize(
    ("inner", "batch_size", "error"),
    [
        (
            "{Linear: {in_features: 7, out_features: 8}}", 21,
            "7:15: Linear takes in_features=7 in the last dimension, the input has shape (21, 8)",
        ),
        (
            "{Sequential: [Tanh, BatchNorm1d: {num_features: 8}]}", 21,
            "7:34: BatchNorm1d needs more than 1 value for each feature in a training step, the input has shape (1, 8)"
            ", in the last batch of an epoch",
        ),
        (
            "{Embedding: {num_embeddings: 3, embedding_dim: 8}}", 21,
            "7:15: Embedding takes integers alone, and what it gets is float32",
        ),
        ("{Sequential: [Tanh, BatchNorm1d: {num_features: 8}]}", 20, None),
    ],
)  # fmt: skip - a table
def test_a_misfit_inside_is_an_error_at_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], inner: str, batch_size: int, error: str | None, every: int
) -> None:
    (tmp_path / "wrap.py").write_text(WRAP)
    path, run = tmp_path / "run.yaml", tmp_path / "run"
    path.write_text(CONFIG.replace("INNER", inner))
    options = [f"batch_size={batch_size}", f"gradient_check.every={every}", "--run-dir", str(run)]
    status = cli.main(["train", str(path), *options])
    assert status == (0 if error is None else 2)
    if error is not None:
        assert capsys.readouterr().err == f"nn-manual: {path}:{error}\n"
        assert not run.exists()
