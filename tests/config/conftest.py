"""A config to change, the errors of one, and a module of layers of the user's own."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nn_manual.config import load_config
from nn_manual.errors import ConfigError

VALID = """\
seed: 3
dtype: float32
data: {Digits: {validation_fraction: 0.2}}
batch_size: 64
epochs: 20
model:
  - Linear: {in_features: 64, out_features: 32}
  - ReLU
  - Linear: {in_features: 32, out_features: 10}
loss: CrossEntropyLoss
optimizer: {SGD: {lr: 0.1, momentum: 0.9}}
gradient_check: {every: 1}
"""


def valid_but(line: int, text: str) -> str:
    """VALID with another line in the place of one, counted from 1."""
    lines = VALID.splitlines()
    lines[line - 1] = text
    return "\n".join(lines) + "\n"


ErrorsOf = Callable[..., list[str]]


@pytest.fixture
def errors_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ErrorsOf:
    """The lines of the ConfigError that a config named run.yaml raises."""
    monkeypatch.chdir(tmp_path)

    def errors_of(text: str | bytes, *overrides: str) -> list[str]:
        Path("run.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(ConfigError) as caught:
            load_config("run.yaml", overrides)
        return str(caught.value).split("\n")

    return errors_of


#: my_layers.py: right layers, and some that a config refuses.
MY_LAYERS = '''\
from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

import my_formulas
from nn_manual.layers import Layer


@dataclass(eq=False)
class Softplus(Layer):
    """log(1 + exp(beta * input)) / beta, which torch.nn has under the same name."""

    beta: Annotated[float, Field(gt=0)] = 1.0

    def forward(self, input):
        return my_formulas.softplus(input, self.beta), input

    def backward(self, saved, grad_output):
        return grad_output / (1 + np.exp(-self.beta * saved))


class Plain(Softplus):
    pass


@dataclass(eq=False)
class Unfinished(Layer):
    def forward(self, input):
        return input, None


@dataclass(eq=False)
class Weighted(Softplus):
    weight: np.ndarray = None


@dataclass(eq=False)
class Refusing(Softplus):
    def __post_init__(self):
        raise RuntimeError("out of order")


@dataclass(eq=False)
class Shapeless(Softplus):
    def parameter_shapes(self):
        return {"weight": 3}


@dataclass(eq=False)
class Lost(Softplus):
    def output_shape(self, input_shape):
        pass


@dataclass(eq=False)
class Stumbling(Softplus):
    def output_shape(self, input_shape):
        return input_shape + self.no_such_field


@dataclass(eq=False)
class Sized(Softplus):
    size: int = 1

    def __post_init__(self):
        if self.size < 1:
            raise ValueError(f"size must be at least 1, not {self.size}")


@dataclass(eq=False)
class Jitter(Softplus):
    def noise_shapes(self, input_shape):
        return {"factor": input_shape}

    def draw_noise(self, generator):
        self.noise.factor[...] = generator.random(self.noise.factor.shape)


@dataclass(eq=False)
class Around(Layer):
    inner: Layer

    def forward(self, input):
        return self.inner.forward(input)

    def backward(self, saved, grad_output):
        return self.inner.backward(saved, grad_output)


class Other:
    pass
'''
MY_FORMULAS = "import numpy as np\n\n\ndef softplus(input, beta):\n    return np.logaddexp(0, beta * input) / beta\n"


@pytest.fixture
def modules(tmp_path: Path) -> None:
    """my_layers.py and what it imports."""
    (tmp_path / "my_layers.py").write_text(MY_LAYERS)
    (tmp_path / "my_formulas.py").write_text(MY_FORMULAS)
