"""Blocks of well-known nets in a config: what they are made of, and that each one is checked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nn_manual import CrossEntropyLoss, check_gradients
from nn_manual.config import dump_config, load_config

BEFORE = """\
data: Digits
batch_size: 6
epochs: 1
model:
  - Unflatten: {dim: 1, unflattened_size: [1, 8, 8]}
  - Conv2d: {in_channels: 1, out_channels: 3, kernel_size: 3, padding: 1}
"""
AFTER = """\
  - Flatten
  - Linear: {in_features: SIZE, out_features: 10}
loss: CrossEntropyLoss
optimizer: {SGD: {lr: 0.05}}
"""
RESNET = """\
  - Sum:
      branches:
        - Sequential:
            - Conv2d: {in_channels: 3, out_channels: 4, kernel_size: 3, stride: 2, padding: 1, bias: false}
            - BatchNorm2d: {num_features: 4}
            - ReLU
            - Conv2d: {in_channels: 4, out_channels: 4, kernel_size: 3, padding: 1, bias: false}
            - BatchNorm2d: {num_features: 4}
            - StochasticDepth: {p: 0.3, mode: row}
        - Sequential:
            - Conv2d: {in_channels: 3, out_channels: 4, kernel_size: 1, stride: 2, bias: false}
            - BatchNorm2d: {num_features: 4}
  - ReLU
"""
INCEPTION = """\
  - Concat:
      branches:
        - Conv2d: {in_channels: 3, out_channels: 2, kernel_size: 1}
        - Sequential:
            - Conv2d: {in_channels: 3, out_channels: 2, kernel_size: 1}
            - Tanh
            - Conv2d: {in_channels: 2, out_channels: 3, kernel_size: 3, padding: 1}
        - Sequential:
            - AvgPool2d: {kernel_size: 3, stride: 1, padding: 1}
            - Conv2d: {in_channels: 3, out_channels: 1, kernel_size: 1}
"""
U_NET = """\
  - Concat:
      branches:
        - Identity
        - Sequential:
            - MaxPool2d: {kernel_size: 2}
            - Conv2d: {in_channels: 3, out_channels: 4, kernel_size: 3, padding: 1}
            - Concat:
                branches:
                  - Identity
                  - Sequential:
                      - MaxPool2d: {kernel_size: 2}
                      - Tanh
                      - ConvTranspose2d: {in_channels: 4, out_channels: 2, kernel_size: 2, stride: 2}
            - ConvTranspose2d: {in_channels: 6, out_channels: 2, kernel_size: 2, stride: 2}
"""


@pytest.mark.parametrize(
    ("block", "channels", "size", "num_layers", "names"),
    [
        (RESNET, 4, 4, 8, ["2.branches.0.3.weight", "2.branches.1.0.weight"]),
        (INCEPTION, 6, 8, 6, ["2.branches.0.bias", "2.branches.1.2.weight", "2.branches.2.1.weight"]),
        (U_NET, 5, 8, 8, ["2.branches.1.1.weight", "2.branches.1.2.branches.1.2.bias", "2.branches.1.3.weight"]),
    ],
    ids=["ResNet", "Inception", "U-Net"],
)
def test_a_block(tmp_path: Path, block: str, channels: int, size: int, num_layers: int, names: list[str]) -> None:
    (tmp_path / "run.yaml").write_text(BEFORE + block + AFTER.replace("SIZE", str(channels * size * size)))
    config = load_config(tmp_path / "run.yaml")
    model = config.new_model()
    assert model.layers[2].output_shape((6, 3, 8, 8)) == (6, channels, size, size)
    assert set(names) <= model.parameter_shapes().keys()
    generator = np.random.default_rng(0)
    input, target = generator.standard_normal((6, 64)).astype(np.float32), generator.integers(0, 10, 6)
    report = check_gradients(model, CrossEntropyLoss(), input, target)
    assert report.passed, str(report)
    compared = {tensor.name for tensor in report.comparisons}
    inside = [name for name, _ in model.named_layers() if name.startswith("2.")]
    assert len(inside) == num_layers
    assert {f"{name}.output" for name in inside} | {f"{name}.grad_input" for name in inside} <= compared
    (tmp_path / "run.yaml").write_text(dump_config(config))
    assert load_config(tmp_path / "run.yaml").new_model().parameter_shapes() == model.parameter_shapes()
