"""No formula of a layer or a loss branches on a value: it can be traced, and its trace is right for other values."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from every_component import with_each_dtype
from opaque import Looked, Opaque, opaque, run_layer, run_loss

from nn_manual.arrays import Array, Shape
from nn_manual.layers import Layer
from nn_manual.losses import CrossEntropyLoss, Loss
from nn_manual.registry import components, examples


@with_each_dtype("layer, shape", examples(components(Layer)))
def test_layers(layer: Layer, shape: Shape, dtype: str) -> None:
    assert_same(*(run_layer(copy.deepcopy(layer), shape, dtype, looking=looking) for looking in (True, False)))


@with_each_dtype("loss", [(loss,) for loss in examples(components(Loss))])
def test_losses(loss: Loss, dtype: str) -> None:
    assert_same(*(run_loss(loss, (6, 5), dtype, looking=looking) for looking in (True, False)))


def assert_same(looking: list[Array], blind: list[Array]) -> None:
    """The same numbers, and all of those that were computed of opaque ones are opaque."""
    for seen, unseen in zip(looking, blind, strict=True):
        assert isinstance(unseen, Opaque)
        np.testing.assert_array_equal(seen, np.asarray(unseen))


@dataclass(eq=False)
class Branching(Layer):
    """The absolute value, of a layer that looks at what it gets, forward or backward."""

    looks_forward: bool

    def forward(self, input: Array) -> tuple[Array, Array]:
        if self.looks_forward and input.max() < 0:
            return -input, input
        return np.abs(input), input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        if not self.looks_forward and float(saved.min()) > 0:
            return grad_output
        grad_input: Array = grad_output * np.sign(saved)
        return grad_input


@pytest.mark.parametrize("looks_forward", [True, False])
def test_a_layer_that_branches_is_found(looks_forward: bool) -> None:
    layer = Branching(looks_forward)
    run_layer(layer, (4, 3), "float32", looking=True)
    with pytest.raises(Looked, match=r"^a condition looks" if looks_forward else r"^float\(\) looks"):
        run_layer(Branching(looks_forward), (4, 3), "float32", looking=False)


class Checking(CrossEntropyLoss):
    """Checks its labels in forward."""

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Any]:
        self.check_target(prediction, target)
        return super().forward(prediction, target)


def test_a_loss_that_branches_is_found() -> None:
    run_loss(Checking(), (6, 5), "float32", looking=True)
    with pytest.raises(Looked, match=r"^a condition looks at a value"):
        run_loss(Checking(), (6, 5), "float32", looking=False)


@pytest.mark.parametrize(
    "look",
    [
        lambda x: x.sum() > 0 or None,
        lambda x: max(x[0, 0], 0),
        lambda x: [1, 2, 3][x.argmax()],
        lambda x: np.zeros(x.argmax()),
        lambda x: x[x > 0],
        lambda x: x[:, x[0] > 0],
        lambda x: np.where(x > 0),
        lambda x: np.flatnonzero(x),
        lambda x: (x > 0).nonzero(),
        lambda x: np.array_equal(x, x),
        lambda x: x.item(0),
        lambda x: x.tolist(),
        lambda x: any(row.any() for row in x),
        lambda x: int(x.mean()),
    ],
)
def test_ways_to_look(look: Callable[[Any], object]) -> None:
    numbers = np.arange(6.0).reshape(2, 3)
    with pytest.raises(Looked):
        look(opaque(numbers))


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: np.where(x > 2, x, -x),
        lambda x: x[np.arange(2), x.argmax(axis=1)],
        lambda x: x.sum() / np.maximum(x.max(axis=1, keepdims=True), 1),
        lambda x: (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0)),
        lambda x: (x.astype(np.float32) @ x.T).reshape(-1),
        lambda x: np.concatenate([x, np.exp(x)]).take([0, 3]),
        lambda x: np.einsum("ij,kj->ik", x, x),
    ],
)
def test_what_a_formula_may_do(compute: Callable[[Any], Any]) -> None:
    numbers = np.arange(6.0).reshape(2, 3)
    computed = compute(opaque(numbers))
    assert isinstance(computed, Opaque)
    np.testing.assert_array_equal(np.asarray(computed), compute(numbers))
