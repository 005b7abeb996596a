"""What doesn't fit inside a composite is found before the model is trained, and nothing that fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from composites import Gate, StochasticDepth

from nn_manual import BatchNorm1d, Dropout, Embedding, Layer, Linear, Padded, PaddedTimePool, Sequential, Tanh
from nn_manual.arrays import Array, Shape
from nn_manual.layers.composite import Composite, descendants
from nn_manual.model.layers_fit import LayerMisfit, first_misfit


@pytest.mark.parametrize(
    ("layer", "batch_size", "misfit"),
    [
        (
            Gate(Linear(3, 3), Sequential(Tanh(), Linear(4, 3))), 5,
            ("1.gate.1", (5, 3), "Linear takes in_features=4 in the last dimension, the input has shape (5, 3)"),
        ),
        (
            StochasticDepth(BatchNorm1d(3)), 1,
            ("1.branch", (1, 3), "BatchNorm1d needs more than 1 value for each feature in a training step, the input "
             "has shape (1, 3)"),
        ),
        (
            StochasticDepth(StochasticDepth(Embedding(4, 3))), 5,
            ("1.branch.branch", (5, 3), "Embedding takes integers alone, and what it gets is float32"),
        ),
        (StochasticDepth(Sequential(BatchNorm1d(3), Dropout())), 2, None),
        (Gate(Linear(3, 1), Linear(3, 3)), 1, None),
    ],
)  # fmt: skip - a table
def test_the_first_misfit(layer: Layer, batch_size: int, misfit: tuple[Any, ...] | None) -> None:
    model = Sequential(Linear(3, 3), layer)
    before = model.param_arena.copy()
    found = first_misfit(model, np.ones((batch_size, 3), np.float32))
    assert found == (misfit and LayerMisfit(*misfit))
    assert not any("forward" in vars(inner) for _, inner in descendants(model))
    np.testing.assert_array_equal(model.param_arena, before)


@dataclass(eq=False)
class Later(Composite):
    """A layer that doesn't see the first time. It doesn't say so: it has no `input_shapes`."""

    inner: Layer

    def output_shape(self, input_shape: Shape) -> Shape:
        return self.inner.output_shape((input_shape[0], input_shape[1] - 1, *input_shape[2:]))

    def forward(self, input: Array) -> tuple[Array, Any]:
        return self.inner.forward(input[:, 1:])

    def backward(self, saved: Any, grad_output: Array) -> Array:
        raise NotImplementedError


def test_a_composite_that_takes_a_time_away_from_a_layer_with_lengths() -> None:
    data = Padded(np.ones((5, 4, 3), np.float32), np.array([1, 2, 1, 2, 1]))
    words = "PaddedTimePool gets 3 times, and the data's sequences have 4: the lengths belong to the data's times"
    found = first_misfit(Sequential(Later(PaddedTimePool())), data)
    assert found is not None
    assert found[:2] == ("0.inner", (5, 3, 3))
    assert found.words.startswith(words)
    assert first_misfit(Sequential(PaddedTimePool()), data) is None


def test_what_raises_for_another_reason_is_left_to_the_run() -> None:
    class Raises(Gate):
        def forward(self, input: Array) -> tuple[Array, Any]:
            raise ArithmeticError(f"no {input.ndim}")

    assert first_misfit(Sequential(Raises(Tanh(), Tanh())), np.ones((2, 3), np.float32)) is None
