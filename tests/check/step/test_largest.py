"""References that end in the largest number: torch's backward looks for the numbers that equal its own result, and ours
differs from it by rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import SGD, GradientMismatch, Layer, Linear, MSELoss, Sequential, Trainer, Unflatten, check_gradients
from nn_manual.arrays import Array, Shape

REFERENCES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "amax": lambda numbers: numbers.amax(-1),
    "amin": lambda numbers: -(-numbers).amin(-1),
    "the last function is amin": lambda numbers: (1 / numbers).amin(-1),
    "norm": lambda numbers: torch.linalg.vector_norm(numbers, np.inf, dim=-1),
    "a view of amax": lambda numbers: numbers.amax(-1, keepdim=True).squeeze(-1),
}


@dataclass(eq=False)
class LargestSoftplus(Layer):
    """max_j log(1 + exp(x_j)), or 1 over it."""

    written: str = "amax"
    factor: float = 1.0

    def output_shape(self, input_shape: Shape) -> Shape:
        return input_shape[:-1]

    def forward(self, input: Array) -> tuple[Array, tuple[Array, Array]]:
        numbers = np.maximum(input, 0) + np.log1p(np.exp(-np.abs(input)))
        slope = (numbers == numbers.max(-1, keepdims=True)) / (1 + np.exp(-input))
        output = numbers.max(-1)
        if self.written == "the last function is amin":
            return 1 / output, (-slope / output[..., np.newaxis] ** 2, input)
        return output, (slope, input)

    def backward(self, saved: tuple[Array, Array], grad_output: Array) -> Array:
        slope, input = saved
        grad_input: Array = self.factor * slope * grad_output[..., np.newaxis]
        return grad_input.astype(input.dtype)

    def reference(self, input: torch.Tensor) -> torch.Tensor:
        return REFERENCES[self.written](torch.nn.functional.softplus(input))


def net(dtype: str, **settings: Any) -> Sequential:
    layers = Linear(4, 6), Unflatten(1, [3, 2]), LargestSoftplus(**settings), Linear(3, 2)
    return Sequential(*layers, dtype=dtype, seed=0)


def batch(dtype: str) -> tuple[Array, Array]:
    generator = np.random.default_rng(0)
    return generator.standard_normal((20, 4)).astype(dtype), generator.standard_normal((20, 2)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("written", REFERENCES)
def test_it_agrees(written: str, dtype: str) -> None:
    model = net(dtype, written=written)
    assert check_gradients(model, MSELoss(), *batch(dtype)).passed
    Trainer(model, MSELoss(), SGD(model, lr=0.1)).fit(batch(dtype), epochs=3, batch_size=5, verbose=False)


@pytest.mark.parametrize("written", REFERENCES)
def test_a_wrong_formula_is_wrong(written: str) -> None:
    model = net("float32", written=written, factor=1.001)
    with pytest.raises(GradientMismatch, match=r"wrong first in 2 \(LargestSoftplus\): 2.grad_input"):
        Trainer(model, MSELoss(), SGD(model, lr=0.1)).fit(batch("float32"), epochs=1, batch_size=5, verbose=False)
