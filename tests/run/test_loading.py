"""A config's model on the data: what it is refused for, and what is left to the check."""

from __future__ import annotations

from pathlib import Path

from nn_manual.config import load_config
from nn_manual.run.loading import check

NARROW = """\
from dataclasses import dataclass

from nn_manual import Layer


@dataclass(eq=False)
class Narrow(Layer):
    def forward(self, input):
        return input[:, :1].copy(), None

    def backward(self, saved, grad_output): ...

    def reference(self, input):
        return input
"""
CONFIG = """\
data: Iris
batch_size: 8
epochs: 1
model:
  - Concat: {branches: [Identity, narrow:Narrow]}
  - Linear: {in_features: 8, out_features: 3}
loss: CrossEntropyLoss
optimizer: SGD
"""


def test_a_branch_that_makes_another_shape_than_it_says_is_named(tmp_path: Path) -> None:
    """Not the layer behind the branches, which fits what they say."""
    (tmp_path / "narrow.py").write_text(NARROW)
    (tmp_path / "run.yaml").write_text(CONFIG)
    problem = check(load_config(tmp_path / "run.yaml")).problem
    assert problem is not None
    assert problem.startswith("0.branches.1 (Narrow): forward made (8, 1) of (8, 4)")
