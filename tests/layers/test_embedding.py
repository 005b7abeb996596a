"""Embedding: rows, duplicates that add, the padding row, and indices that are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import Embedding, Layer, Linear, MSELoss, Sequential, Trainer, check_gradients
from nn_manual.arrays import Array, Shape
from nn_manual.model.initializers import Constant
from nn_manual.optim import SGD


def test_duplicates_add() -> None:
    model = Sequential(Embedding(4, 2), dtype="float64")
    indices = np.array([[2, 0], [2, 2]])
    output, saved = model.forward(indices)
    np.testing.assert_array_equal(output, model.layers[0].param.weight[indices])
    grad_output = np.arange(8.0).reshape(2, 2, 2)
    assert model.backward(saved, grad_output) is None
    np.testing.assert_array_equal(model.layers[0].grad.weight, [[2, 3], [0, 0], [0 + 4 + 6, 1 + 5 + 7], [0, 0]])


@pytest.mark.parametrize("padding_idx", [1, -1, None])
def test_as_torch(padding_idx: int | None) -> None:
    model = Sequential(Embedding(6, 3, padding_idx), dtype="float64", seed=3)
    weight = model.layers[0].param.weight
    if padding_idx is not None:
        assert (weight[padding_idx] == 0).all()
        weight[padding_idx] = 5
    module = torch.nn.Embedding(6, 3, padding_idx, dtype=torch.float64)
    module.weight = torch.nn.Parameter(torch.from_numpy(weight.copy()))
    generator = np.random.default_rng(0)
    indices, grad_output = generator.integers(0, 6, (7, 4)), generator.standard_normal((7, 4, 3))
    output, saved = model.forward(indices)
    expected = module(torch.from_numpy(indices))
    np.testing.assert_array_equal(output, expected.detach().numpy())
    torch.autograd.backward(expected, torch.from_numpy(grad_output))
    model.backward(saved, grad_output)
    assert module.weight.grad is not None
    np.testing.assert_allclose(model.layers[0].grad.weight, module.weight.grad.numpy(), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("padding_idx", [1, -1])
def test_the_padding_row_starts_as_0_whatever_fills_the_others(padding_idx: int) -> None:
    weight = Sequential(Embedding(4, 2, padding_idx), initializer=Constant(0.5)).layers[0].param.weight
    assert weight[padding_idx].tolist() == [0, 0]
    assert (np.delete(weight, padding_idx, axis=0) == 0.5).all()


def test_the_padding_row_stays() -> None:
    model = Sequential(Embedding(4, 2, padding_idx=0), Linear(2, 1), seed=1)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1))
    indices, target = np.array([0, 1, 0, 3]), np.ones((4, 1), np.float32)
    before = model.layers[0].param.weight.copy()
    for _ in range(3):
        trainer.train_step(indices, target)
    after = model.layers[0].param.weight
    assert [(after[row] == before[row]).all() for row in range(4)] == [True, False, True, False]
    assert check_gradients(model, MSELoss(), indices, target).passed


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"num_embeddings": 0, "embedding_dim": 2}, "num_embeddings must be at least 1, not 0"),
        ({"num_embeddings": 3, "embedding_dim": -1}, "embedding_dim must be at least 1, not -1"),
        ({"num_embeddings": 3, "embedding_dim": 2, "padding_idx": 3}, "padding_idx must be one of 3 rows, not 3"),
    ],
)
def test_settings_out_of_range(settings: dict[str, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Embedding(**settings)


@pytest.mark.parametrize(("index", "place"), [(5, r"\(1, 0\)"), (-1, r"\(1, 0\)")])
def test_an_index_that_is_no_row(index: int, place: str) -> None:
    model = Sequential(Embedding(5, 2))
    for method in (model.check_values, model.forward, model):
        with pytest.raises(ValueError, match=rf"^Embedding: index {index} at {place} is outside 0 \.\.\. 4$"):
            method(np.array([[0, 4], [index, 1]]))
        method(np.array([[0, 4]]))


@pytest.mark.parametrize("wrong", [-1, -7, 7, 10**15])
def test_outside_of_a_model_no_index_reaches_other_memory(wrong: int) -> None:
    layer = Sequential(Embedding(7, 4), dtype="float64").layers[0]
    with pytest.raises(ValueError, match=r"axis 1 index"):
        layer.backward(np.array([0, wrong]), np.ones((2, 4)))
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        layer.forward(np.array([7]))


@dataclass(eq=False)
class Table(Layer):
    """A composite that hands its indices on."""

    rows: Embedding

    def __post_init__(self) -> None:
        self.domain = self.rows.domain

    def output_shape(self, input_shape: Shape) -> Shape:
        return self.rows.output_shape(input_shape)

    def forward(self, input: Array) -> tuple[Array, Array]:
        return self.rows.forward(input)

    def backward(self, saved: Array, grad_output: Array) -> None:  # type: ignore[override]  # as Embedding's
        self.rows.backward(saved, grad_output)

    def reference(self, input: Any, rows: Any) -> Any:
        return rows(input)


def test_a_composite_refuses_the_indices_that_its_domain_does_not_have() -> None:
    model = Sequential(Table(Embedding(5, 2)), Linear(2, 1))
    assert check_gradients(model, MSELoss(), np.array([0, 4, 4]), np.ones((3, 1), np.float32)).passed
    for method in (model.forward, model, model.layers[0].check_values):
        with pytest.raises(ValueError, match=r"^Table: index -1 at \(1,\) is outside 0 \.\.\. 4$"):
            method(np.array([0, -1]))


def test_other_numbers() -> None:
    model = Sequential(Embedding(5, 2))
    with pytest.raises(TypeError, match="its first layer takes int64, its input is float32"):
        model.forward(np.ones(3, np.float32))
    with pytest.raises(TypeError, match="the model is float32, its input int64"):
        Sequential(Linear(1, 1)).forward(np.ones((3, 1), np.int64))
    with pytest.raises(ValueError, match=r"1 \(Embedding\) takes int64 indices, not float32"):
        Sequential(Linear(1, 1), Embedding(5, 2)).forward(np.ones((3, 1), np.float32))
