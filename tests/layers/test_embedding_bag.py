"""EmbeddingBag beside torch's: each mode, padding, ties, equal indices in a bag, and what it refuses."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from comparing import assert_equal

from nn_manual import (
    EmbeddingBag,
    Linear,
    MSELoss,
    Padded,
    PaddedEmbeddingBag,
    Sequential,
    Trainer,
    check_gradients,
)
from nn_manual.arrays import Array, Shape
from nn_manual.layers.embedding_bag import Mode
from nn_manual.optim import SGD

#: Sums of some ten numbers near 1.
TOLERANCES = {"float64": 1e-14, "float32": 1e-6}

each_mode = pytest.mark.parametrize("mode", ["sum", "mean", "max"])


def assert_torchs(layer: EmbeddingBag, weight: Array, indices: Array) -> None:
    """Output and gradient."""
    dtype = weight.dtype.name
    Sequential(layer, dtype=dtype)
    layer.param.weight[...] = weight
    module = torch.nn.EmbeddingBag(
        layer.num_embeddings, layer.embedding_dim, mode=layer.mode, padding_idx=layer.padding_idx
    ).to(getattr(torch, dtype))
    module.weight = torch.nn.Parameter(torch.from_numpy(weight.copy()))
    expected = module(torch.from_numpy(indices))
    grad_output = np.random.default_rng(1).standard_normal(tuple(expected.shape)).astype(dtype)
    torch.autograd.backward(expected, torch.from_numpy(grad_output))
    output, saved = layer.forward(indices)
    assert_equal(output, expected.detach().numpy(), tolerance=TOLERANCES[dtype], scale=1)
    layer.backward(saved, grad_output)
    assert module.weight.grad is not None
    assert_equal(layer.grad.weight, module.weight.grad.numpy(), tolerance=TOLERANCES[dtype], scale=1)


@each_mode
@pytest.mark.parametrize("padding_idx", [None, 0, 2, -1])
@pytest.mark.parametrize("shape", [(7, 4), (1, 1), (3, 1), (1, 9)], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_as_torch(mode: Mode, padding_idx: int | None, shape: Shape, dtype: str) -> None:
    """The padding row isn't 0 here: a bag leaves it out all the same."""
    generator = np.random.default_rng(0)
    weight = generator.standard_normal((5, 3)).astype(dtype)
    assert_torchs(EmbeddingBag(5, 3, mode=mode, padding_idx=padding_idx), weight, generator.integers(0, 5, shape))


@each_mode
def test_bags_of_padding_alone(mode: Mode) -> None:
    indices = np.array([[1, 1, 1], [1, 0, 1], [2, 1, 2]])
    assert_torchs(EmbeddingBag(3, 2, mode=mode, padding_idx=1), np.array([[-1.0, -2], [9, 9], [-3, -4]]), indices)


def test_the_first_of_tied_rows_gets_the_gradient() -> None:
    """As torch has it, and not a part of it, as TimePool has it."""
    weight, indices = np.array([[1.0, 2], [5, 2], [5, 0]]), np.array([[2, 1, 0], [0, 1, 2], [0, 0, 1]])
    assert_torchs(EmbeddingBag(3, 2, mode="max"), weight, indices)
    layer = Sequential(EmbeddingBag(3, 2, mode="max"), dtype="float64").layers[0]
    layer.param.weight[...] = weight
    output, saved = layer.forward(indices)
    assert output.tolist() == [[5, 2], [5, 2], [5, 2]]
    layer.backward(saved, np.array([[1.0, 2], [4, 8], [16, 32]]))
    assert layer.grad.weight.tolist() == [[0, 8 + 32], [4 + 16, 2], [1, 0]]


def test_exact_values() -> None:
    layer = Sequential(EmbeddingBag(3, 1, padding_idx=1), dtype="float64").layers[0]
    assert layer.param.weight[1] == 0
    layer.param.weight[...] = [[6], [100], [12]]
    output, saved = layer.forward(np.array([[0, 2, 2], [1, 2, 0]]))
    assert output.tolist() == [[10], [9]]
    layer.backward(saved, np.array([[3.0], [2]]))
    assert layer.grad.weight.tolist() == [[1 + 1], [0], [2 + 1]]


@each_mode
def test_in_a_training(mode: Mode) -> None:
    model = Sequential(EmbeddingBag(4, 3, mode=mode, padding_idx=0), Linear(3, 1), seed=1)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1))
    indices, target = np.array([[0, 1, 1], [2, 0, 0], [0, 0, 0]]), np.ones((3, 1), np.float32)
    before = model.layers[0].param.weight.copy()
    for _ in range(3):
        trainer.train_step(indices, target)
    after = model.layers[0].param.weight
    assert [bool((after[row] == before[row]).all()) for row in range(4)] == [True, False, False, True]
    assert check_gradients(model, MSELoss(), indices, target).passed


@pytest.mark.parametrize("shape", [(3,), (2, 0), (2, 2, 2)], ids=str)
def test_refused_shapes(shape: Shape) -> None:
    words = f"EmbeddingBag takes (batch, bag), the input has shape {shape}"
    with pytest.raises(ValueError, match=re.escape(words)):
        EmbeddingBag(3, 2).output_shape(shape)


def test_refused_settings() -> None:
    with pytest.raises(ValueError, match=r"^mode must be one of sum, mean, max, not 'last'$"):
        EmbeddingBag(3, 2, mode="last")  # type: ignore[arg-type]  # what is tested
    with pytest.raises(ValueError, match=r"^padding_idx must be one of 3 rows, not 3$"):
        EmbeddingBag(3, 2, padding_idx=3)
    with pytest.raises(ValueError, match=r"^EmbeddingBag takes int64 indices, not float64$"):
        Sequential(EmbeddingBag(3, 2)).layers[0].forward(np.zeros((2, 2)))


@each_mode
@pytest.mark.parametrize("padding_idx", [None, 2])
def test_bags_of_different_lengths_are_torchs_with_offsets(mode: Mode, padding_idx: int | None) -> None:
    """What stands behind a bag's end changes nothing, and gets no gradient."""
    generator = np.random.default_rng(0)
    indices, lengths = generator.integers(0, 4, (4, 5)), np.array([2, 5, 1, 3])
    model = Sequential(PaddedEmbeddingBag(5, 3, mode=mode, padding_idx=padding_idx), dtype="float64", seed=1)
    weight = torch.nn.Parameter(torch.from_numpy(model.state_dict()["0.weight"].copy()))
    module = torch.nn.EmbeddingBag(5, 3, mode=mode, padding_idx=padding_idx, _weight=weight)
    flat = np.concatenate([bag[:length] for bag, length in zip(indices, lengths, strict=True)])
    expected = module(torch.from_numpy(flat), torch.tensor([0, 2, 7, 8]))
    grad_output = generator.standard_normal((4, 3))
    expected.backward(torch.from_numpy(grad_output))
    indices[np.arange(5) >= lengths[:, np.newaxis]] = 4
    output, saved = model.forward(Padded(indices, lengths))
    assert_equal(output, expected.detach().numpy(), tolerance=TOLERANCES["float64"], scale=1)
    model.backward(saved, grad_output)
    assert module.weight.grad is not None
    grad = vars(model.grad)["0.weight"]
    assert_equal(grad, module.weight.grad.numpy(), tolerance=TOLERANCES["float64"], scale=1)
    assert not grad[4].any()
    np.testing.assert_array_equal(model(Padded(indices, lengths)), output)
