"""Formulas of users' layers: compiled, in whole or in part, they give NumPy's values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from nn_manual import SGD, Linear, MSELoss, Sequential, Trainer
from nn_manual.arrays import Array
from nn_manual.data import Examples
from nn_manual.layers import Layer

#: These are compiled as a whole.
COMPILED: dict[str, Callable[[Array], Array]] = {
    "a cube": lambda x: x**3,
    "roots": lambda x: (x * x + 1) ** 0.5 + (x * x + 1) ** -0.5 + (x * x + 1) ** 1.7,
    "a power of arrays": lambda x: (np.abs(x) + 1) ** x,
    "clip": lambda x: np.clip(x, -0.5, 0.5) * x + x.clip(0, 6),
    "rounded": lambda x: np.floor(x * 3) + np.ceil(x) + np.rint(x * 7) + np.sign(x),
    "masks": lambda x: np.where((x > -1) & (x < 1) | ~(x < 2) ^ (x > 0), x, 0),
}
#: Integers, floats that compiled code doesn't have, and operations that NumPy runs beside compiled code.
IN_PART: dict[str, Callable[[Array], Array]] = {
    "bits": lambda x: x + ((x * 8).astype(np.int64) & 6 | 9) + (~(x * 8).astype(np.int32) ^ np.int32(5)),
    "int8 wraps": lambda x: x + (x > 0).astype(np.int8) * np.int8(100) * np.int8(3),
    "uint8 wraps below 0": lambda x: x + ((x > 0).astype(np.uint8) - np.uint8(1)).astype(x.dtype),
    "int32 wraps": lambda x: x + ((x > 0).astype(np.int32) * np.int32(2**30) * np.int32(3)).astype(x.dtype) * 1e-9,
    "a sum of uint8": lambda x: x + (np.ones(x.shape, np.uint8) * np.uint8(100)).sum(1, dtype=np.uint8)[:, np.newaxis],
    "float16": lambda x: x.astype(np.float16).astype(x.dtype),
    "longdouble": lambda x: (x.astype(np.longdouble) * 2).astype(x.dtype),
}


@dataclass(eq=False)
class Formula(Layer):
    """output = a formula, grad_input = grad_output"""

    name: str

    def forward(self, input: Array) -> tuple[Array, None]:
        return (COMPILED | IN_PART)[self.name](input), None

    def backward(self, saved: None, grad_output: Array) -> Array:  # noqa: ARG002 - as a straight-through estimator has it
        return grad_output * 1


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("name", COMPILED | IN_PART)
def test_compiled_is_plain(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    generator = np.random.default_rng(0)
    examples = Examples(*(generator.standard_normal((20, size), np.float32) for size in (3, 4)))

    def losses(*, compiled: bool) -> list[float]:
        model = Sequential(Linear(3, 4), Formula(name), seed=0)
        trainer = Trainer(model, MSELoss(), SGD(model, lr=0.01), check_every=0, compiled=compiled)
        return [step.loss for step in trainer.epoch(examples, 5, seed=0, epoch=0)]

    np.testing.assert_allclose(losses(compiled=True), losses(compiled=False), rtol=1e-5)
    assert "not all of this model is compiled" not in capsys.readouterr().err or name in IN_PART
