"""What a run's config.yaml will have of layers of the user's own: the same layers, or an error before the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from nn_manual.config import RunConfig, check_read_back, load_config
from nn_manual.errors import ConfigError

MODULE = """\
import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
from nn_manual import Layer, as_layer


class Doubling(Layer):
    def forward(self, input):
        return 2 * input, None

    def backward(self, saved, grad_output):
        return 2 * grad_output


def made(factor):
    @dataclass(eq=False)
    class Scale(Doubling):
        k: float = factor

    return Scale


Scale, Other = made(2.0), made(9.0)
Pair = as_layer((lambda x: (2 * x, None), lambda dout, saved: 2 * dout))
Named = as_layer((lambda x: (2 * x, None), lambda dout, saved: 2 * dout), name="Named")


@dataclass(eq=False)
class Rotate(Doubling):
    degrees: float = 60.0

    def __post_init__(self):
        self.degrees = math.radians(self.degrees)


@dataclass(eq=False)
class Drawn(Doubling):
    def __post_init__(self):
        self.omega = np.random.standard_normal(3)


@dataclass(eq=False)
class Seeded(Doubling):
    def __post_init__(self):
        self.omega = np.random.default_rng(0).standard_normal(3)


@dataclass(eq=False)
class Sizes(Doubling):
    sizes: tuple[int, ...] = (1, 2, 3)


@dataclass(eq=False)
class Infinite(Doubling):
    k: float = math.inf


@dataclass(eq=False)
class NumPys(Doubling):
    k: float = 0.5
    def __post_init__(self):
        self.k = np.float32(self.k)
"""

CONFIG = """\
data: Spirals
batch_size: 20
epochs: 1
model:
  - Linear: {in_features: 2, out_features: 2}
  - fields_that_come_back:NAME
loss: CrossEntropyLoss
optimizer: SGD
"""


def loaded(name: str, folder: Path) -> RunConfig:
    (folder / "fields_that_come_back.py").write_text(MODULE)
    (folder / "run.yaml").write_text(CONFIG.replace("NAME", name))
    return load_config(folder / "run.yaml")


@pytest.mark.parametrize("name", ["Scale", "Scale: {k: 7}", "Named", "Seeded", "Sizes", "Sizes: {sizes: [4]}"])
def test_what_comes_back_passes(name: str, tmp_path: Path) -> None:
    check_read_back(loaded(name, tmp_path))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Other", "the class is called Scale, and module fields_that_come_back has another class of that name"),
        ("Pair", "the class is called PairLayer, and module fields_that_come_back has no class of that name"),
        ("Drawn", "Drawn has another omega each time it is made, and no file keeps it"),
        ("Rotate: {degrees: 180}", "Rotate changes its fields when it is made: .*'degrees': 3.14.*'degrees': 0.05"),
    ],
)
def test_what_would_be_another_layer_is_refused_with_its_place(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"run\.yaml:6:5: {message}"):
        check_read_back(loaded(name, tmp_path))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Infinite", r"the run's own config couldn't be read again: config\.yaml:\d+:\d+: k must be a number"),
        ("NumPys", r"a config can't hold 'np\.float32\(0\.5\)', of type float32"),
    ],
)
def test_what_could_not_be_read_is_refused(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        check_read_back(loaded(name, tmp_path))
