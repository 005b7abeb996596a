"""WeightNorm and SpectralNorm: torch's own parametrizations agree, step by step; and what a weight begins as."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from comparing import DIFFERENCE_TOLERANCE, TOLERANCES, assert_equal, central_differences
from torch.nn.utils import parametrizations

from nn_manual import (
    LSTM,
    Conv1d,
    Conv2d,
    ConvTranspose2d,
    Embedding,
    Layer,
    Linear,
    MSELoss,
    Sequential,
    SpectralNorm,
    Tanh,
    WeightNorm,
    check_gradients,
)
from nn_manual.arrays import Array, Shape
from nn_manual.model.initializers import Constant, Normal, Orthogonal

#: A layer, torch's, and the shape of an input.
LAYERS: dict[str, tuple[Callable[[], Layer], Callable[[], torch.nn.Module], Shape]] = {
    "Linear": (lambda: Linear(3, 2), lambda: torch.nn.Linear(3, 2), (4, 3)),
    "one feature": (lambda: Linear(1, 1, bias=False), lambda: torch.nn.Linear(1, 1, bias=False), (1, 1)),
    "Conv2d": (lambda: Conv2d(4, 6, 3, 2, 1, 1, 2), lambda: torch.nn.Conv2d(4, 6, 3, 2, 1, 1, 2), (2, 4, 5, 4)),
    "ConvTranspose2d": (
        lambda: ConvTranspose2d(2, 3, 2, 2),
        lambda: torch.nn.ConvTranspose2d(2, 3, 2, 2),
        (1, 2, 3, 2),
    ),
    "Embedding": (lambda: Embedding(5, 3), lambda: torch.nn.Embedding(5, 3), (4, 2)),
}
each_dtype = pytest.mark.parametrize("dtype", TOLERANCES)


def agree_for_steps(ours: Layer, theirs: torch.nn.Module, shape: Shape, dtype: str) -> None:
    """Four steps, and an evaluation after each, from the same state: the parameters move along their gradients."""
    generator = np.random.default_rng(0)
    model, theirs = Sequential(ours, dtype=dtype, seed=1), theirs.to(getattr(torch, dtype))
    assert [f"0.{name}" for name in theirs.state_dict()] == list(model.state_dict())
    for name in model.parameter_shapes():
        vars(model.param)[name][...] = generator.uniform(-1, 1, vars(model.param)[name].shape)
    theirs.load_state_dict({name[2:]: torch.from_numpy(array) for name, array in model.state_dict().items()})
    for _ in range(4):
        is_index = isinstance(ours.domain, range)
        input = generator.integers(0, 5, shape) if is_index else generator.standard_normal(shape).astype(dtype)
        leaf = torch.from_numpy(input.copy()).requires_grad_(not is_index)
        theirs.train()
        output = theirs(leaf)
        grad_output = generator.standard_normal(tuple(output.shape)).astype(dtype)
        output.backward(torch.from_numpy(grad_output))
        ours_output, saved = model.forward(input)
        grad_input = model.backward(saved, grad_output)
        model.update_buffers(saved)
        assert_equal(ours_output, output.detach().numpy())
        if leaf.grad is not None:
            assert_equal(grad_input, leaf.grad.numpy())
        for name, parameter in theirs.named_parameters():
            assert parameter.grad is not None
            assert_equal(vars(model.grad)[f"0.{name}"], parameter.grad.numpy(), scale=1)  # one weight never turns
        for name, buffer in theirs.named_buffers():
            assert_equal(vars(model.buffer)[f"0.{name}"], buffer.numpy())
        assert_equal(model(input), theirs.eval()(torch.from_numpy(input)).detach().numpy())
        model.param_arena -= 0.1 * model.grad_arena
        theirs.load_state_dict({name[2:]: torch.from_numpy(array) for name, array in model.state_dict().items()})
        theirs.zero_grad()


@each_dtype
@pytest.mark.parametrize("dim", [0, 1, None, -1, -2, 3])
@pytest.mark.parametrize("kind", LAYERS)
def test_torch_agrees_on_weight_norm(kind: str, dim: int | None, dtype: str) -> None:
    layer, theirs, shape = LAYERS[kind]
    if dim == 3 and len(shape) != 4:
        pytest.skip("its weight has fewer dimensions")
    of_torch = parametrizations.weight_norm(theirs(), dim=-1 if dim is None else dim)
    agree_for_steps(WeightNorm(layer(), dim=dim), of_torch, shape, dtype)


@each_dtype
@pytest.mark.parametrize(
    "settings", [{}, {"n_power_iterations": 3}, {"dim": 1}, {"dim": -2, "eps": 0.3}]
)
@pytest.mark.parametrize("kind", LAYERS)
def test_torch_agrees_on_spectral_norm(kind: str, settings: dict[str, Any], dtype: str) -> None:
    layer, theirs, shape = LAYERS[kind]
    of_torch = parametrizations.spectral_norm(theirs(), **settings)
    agree_for_steps(SpectralNorm(layer(), **settings), of_torch, shape, dtype)


@each_dtype
def test_torch_agrees_on_a_weight_of_a_recurrent_net(dtype: str) -> None:
    theirs = parametrizations.weight_norm(torch.nn.LSTM(2, 3), "weight_hh_l0")
    model, generator = Sequential(WeightNorm(LSTM(2, 3), "weight_hh_l0"), dtype=dtype), np.random.default_rng(0)
    assert set(model.state_dict()) == {f"0.{name}" for name in theirs.state_dict()}
    batch = generator.standard_normal((4, 2, 2)).astype(dtype), generator.standard_normal((4, 2, 3)).astype(dtype)
    report = check_gradients(model, MSELoss(), *batch)
    assert report.passed, str(report)
    assert "0.grad_parametrizations.weight_hh_l0.original0" in [each.name for each in report.comparisons]


def test_a_length_and_a_direction_by_hand() -> None:
    """A weight of length 10 in the direction (0.6, 0.8); only what is across the direction turns it."""
    model = Sequential(WeightNorm(Linear(2, 1, bias=False)), dtype="float64")
    prefix = "0.parametrizations.weight.original"
    model.load_state_dict({f"{prefix}0": np.array([[10.0]]), f"{prefix}1": np.array([[3.0, 4.0]])})
    output, saved = model.forward(np.array([[1.0, 0.5]]))
    np.testing.assert_allclose(output, [[10.0]])
    np.testing.assert_allclose(model.backward(saved, np.array([[2.0]])), [[12.0, 16.0]])
    grad_length, grad_direction = vars(model.grad).values()  # the weight's gradient is (2, 1)
    np.testing.assert_allclose(grad_length, [[2.0]])
    np.testing.assert_allclose(grad_direction, [[2 * (2 - 1.2), 2 * (1 - 1.6)]])


def test_a_singular_value_by_hand() -> None:
    """The largest singular value of a diagonal matrix is its largest entry, here 4: the weight is (1/2, 1)."""
    layer = SpectralNorm(Linear(2, 2, bias=False), n_power_iterations=100)
    model = Sequential(layer, dtype="float64")
    vars(model.param)["0.parametrizations.weight.original"][...] = np.diag([2.0, 4.0])
    output, saved = model.forward(np.array([[1.0, 3.0]]))
    np.testing.assert_allclose(output, [[0.5, 3.0]])
    np.testing.assert_allclose(model.backward(saved, np.array([[1.0, 1.0]])), [[0.5, 1.0]])
    # The weight's gradient is [[1, 3], [1, 3]]. total = 1 / 2 + 3, and outer has a 1 at the entry of 4 alone.
    (grad,) = vars(model.grad).values()
    np.testing.assert_allclose(grad, [[0.25, 0.75], [0.25, (3 - 3.5) / 4]], atol=1e-12)


@pytest.mark.parametrize(
    "layer",
    [
        WeightNorm(Linear(3, 2)),
        WeightNorm(Conv1d(2, 2, 2), dim=None),
        SpectralNorm(Linear(3, 2), n_power_iterations=99),
    ],
    ids=["WeightNorm", "all together", "SpectralNorm"],
)
def test_differences_agree(layer: Layer) -> None:
    """Also where torch takes the singular vectors for constants: at the exact ones, they move in second order only."""
    model, generator = Sequential(layer, dtype="float64", seed=2), np.random.default_rng(0)
    input = generator.standard_normal((4, 2, 3))
    output, saved = model.forward(input)
    grad_output = generator.standard_normal(output.shape)
    grad_input = model.backward(saved, grad_output)
    for array, grad in [(input, grad_input), *zip(vars(model.param).values(), vars(model.grad).values(), strict=True)]:

        def value(moved: Array, array: Array = array) -> Any:
            before = array.copy()
            array[...] = moved
            result = (model.forward(input)[0] * grad_output).sum()
            array[...] = before
            return result

        expected = central_differences(value, array.copy())
        assert_equal(grad, expected, tolerance=DIFFERENCE_TOLERANCE)


@pytest.mark.parametrize("initializer", [None, Normal(std=0.1), Constant(0.5)], ids=repr)
@pytest.mark.parametrize("dim", [0, 1, None])
def test_the_weight_begins_as_without_weight_norm(initializer: Any, dim: int | None) -> None:
    plain = Sequential(Linear(4, 3), Tanh(), Linear(3, 2), seed=3, dtype="float64", initializer=initializer)
    normed = [WeightNorm(Linear(4, 3), dim=dim), Tanh(), WeightNorm(Linear(3, 2), dim=dim)]
    model = Sequential(*normed, seed=3, dtype="float64", initializer=initializer)
    input = np.random.default_rng(0).standard_normal((5, 4))
    np.testing.assert_allclose(model(input), plain(input), rtol=1e-13)
    np.testing.assert_array_equal(
        vars(model.param)["2.parametrizations.weight.original1"], vars(plain.param)["2.weight"]
    )


@pytest.mark.parametrize("initializer", [None, Orthogonal(3.0), Constant(0.5)], ids=repr)
@pytest.mark.parametrize("seed", range(5))
def test_the_first_singular_value_is_near_the_largest(initializer: Any, seed: int) -> None:
    """Fifteen iterations: where the second singular value is 0.9 of the first, 0.9**30 = 4% of it are left."""
    layer = SpectralNorm(Linear(20, 10, bias=False))
    Sequential(layer, seed=seed, dtype="float64", initializer=initializer)
    original = vars(layer.param)["parametrizations.weight.original"]
    left, right = vars(layer.buffer).values()
    np.testing.assert_allclose([left @ left, right @ right], 1)
    assert 0.93 <= left @ original @ right / np.linalg.norm(original, 2) <= 1 + 1e-12
    np.testing.assert_allclose(layer.infer(np.eye(20)).T * (left @ original @ right), original, atol=1e-12)


def test_directions_differ_from_layer_to_layer() -> None:
    first, second = SpectralNorm(Linear(4, 4)), SpectralNorm(Linear(4, 4))
    Sequential(first, second, initializer=Orthogonal())  # all directions are singular vectors
    for name, vector in vars(first.buffer).items():
        assert (vector != vars(second.buffer)[name]).all()


def test_a_direction_of_zeros_is_not_a_number_as_in_torch() -> None:
    theirs = parametrizations.weight_norm(torch.nn.Linear(2, 2, bias=False))
    torch.nn.init.zeros_(theirs.parametrizations.weight.original1)
    assert theirs(torch.ones(1, 2)).isnan().all()
    model = Sequential(WeightNorm(Linear(2, 2, bias=False)))
    vars(model.param)["0.parametrizations.weight.original1"][...] = 0
    with np.errstate(invalid="ignore", divide="ignore"):
        assert np.isnan(model.forward(np.ones((1, 2), np.float32))[0]).all()
