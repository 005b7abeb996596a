"""SGD's trajectory and clipping are torch's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from comparing import TOLERANCES, assert_equal
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_cases import crossed
from trajectories import trajectory

from nn_manual import SGD, Linear, Sequential, clip_grad_norm
from nn_manual.arrays import BLOCK_SIZE, Array

each_dtype = pytest.mark.parametrize("dtype", TOLERANCES)

SETTINGS = [
    {"momentum": momentum, "dampening": dampening, "weight_decay": decay, "nesterov": nesterov, "maximize": maximize}
    for momentum, dampening, decay, nesterov, maximize in itertools.product(
        (0.0, 0.9), (0.0, 0.3), (0.0, 0.1), (False, True), (False, True)
    )
    if not nesterov or (momentum and not dampening)
]

#: Beyond one block, which ends in the middle of the first weight.
LARGE = (520, 520)
assert LARGE[0] * LARGE[1] > BLOCK_SIZE


@each_dtype
@pytest.mark.parametrize("options", SETTINGS, ids=lambda options: ",".join(k for k, v in options.items() if v))
def test_the_trajectory_is_torchs(dtype: str, options: dict[str, Any]) -> None:
    for ours, theirs in zip(*trajectory("SGD", (3, 4), dtype, options), strict=True):
        assert_equal(ours, theirs)


@each_dtype
@pytest.mark.parametrize("nesterov", [False, True])
def test_the_trajectory_of_several_blocks_is_torchs(dtype: str, nesterov: bool) -> None:
    options = {"momentum": 0.9, "weight_decay": 0.1, "nesterov": nesterov, "maximize": True}
    for ours, theirs in zip(*trajectory("SGD", LARGE, dtype, options), strict=True):
        assert_equal(ours, theirs)


def test_defaults_are_torchs() -> None:
    ours, theirs = SGD(Sequential()), torch.optim.SGD([torch.zeros(1)])
    for name, value in vars(ours).items():
        if name in theirs.defaults:
            assert value == theirs.defaults[name]


def test_counts_its_steps_and_keeps_no_vector_it_does_not_need() -> None:
    model = Sequential(Linear(2, 3))
    for momentum in (0.0, 0.9):
        optimizer = SGD(model, momentum=momentum)
        assert list(optimizer.vectors) == (["momentum_buffer"] if momentum else [])
        assert not any(vector.any() for vector in optimizer.vectors.values())
        for count in range(3):
            assert optimizer.num_steps == count
            optimizer.step()


def test_the_momentum_buffer_is_torchs() -> None:
    model = Sequential(Linear(2, 3), dtype="float64")
    model.grad_arena[...] = np.arange(9.0)
    optimizer = SGD(model, momentum=0.5, dampening=0.25)
    for _ in range(2):
        optimizer.step()
    np.testing.assert_array_equal(optimizer.vectors["momentum_buffer"], (0.5 + 0.75) * np.arange(9.0))


@pytest.mark.parametrize("name", ["lr", "momentum", "weight_decay"])
@pytest.mark.parametrize("value", [-0.1, float("nan")])
def test_values_out_of_range_are_named(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"^{name} must be at least 0, not {value}$"):
        SGD(Sequential(), **{name: value})  # type: ignore[arg-type]  # a float by each of the names


@pytest.mark.parametrize("name", ["momentum", "dampening"])
def test_what_the_first_step_multiplies_by_0_is_finite(name: str) -> None:
    """torch takes inf: it doesn't multiply in the first step."""
    settings: dict[str, Any] = {"momentum": 0.9, name: float("inf")}
    with pytest.raises(ValueError, match=f"^{name} must be finite, not inf$"):
        SGD(Sequential(Linear(2, 3)), **settings)


@pytest.mark.parametrize("options", [{}, {"momentum": 0.9, "dampening": 0.1}, {"dampening": 0.1}])
def test_nesterov_without_plain_momentum_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"^nesterov needs a momentum above 0 and a dampening of 0$"):
        SGD(Sequential(), nesterov=True, **options)  # type: ignore[arg-type]  # floats by the names of floats


def clipped(grad: Array, max_norm: float) -> tuple[float, float]:
    """Our norm and torch's, once `grad` is found to be clipped as torch clips it."""
    parameter = torch.nn.Parameter(torch.zeros(grad.shape, dtype=torch.from_numpy(grad).dtype))
    parameter.grad = torch.from_numpy(grad.copy())
    norm = float(torch.nn.utils.clip_grad_norm_([parameter], max_norm))
    our_norm = clip_grad_norm(grad, max_norm)
    assert_equal(grad, parameter.grad.numpy())
    return our_norm, norm


@each_dtype
@pytest.mark.parametrize("size", [1, 7, BLOCK_SIZE, 2 * BLOCK_SIZE + 1])
@pytest.mark.parametrize(("scale", "max_norm"), crossed([0.0, 1e-12, 1e-3, 1.0, 1e15], [0.0, 1e-7, 1.0, 1e4]))
def test_clipping_is_torchs(dtype: str, size: int, scale: float, max_norm: float) -> None:
    grad = (scale * np.random.default_rng(0).normal(size=size)).astype(dtype)
    before = grad.copy()
    our_norm, norm = clipped(grad, max_norm)
    assert our_norm == pytest.approx(norm, rel=TOLERANCES[dtype], abs=0)
    if norm < max_norm - 1e-6:
        np.testing.assert_array_equal(grad, before)
    else:
        assert np.linalg.norm(grad) <= max_norm * (1 + 1e-6)  # float32's rounding


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.floats(1e-3, 1e6))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_clipping_any_gradient(values: list[float], max_norm: float) -> None:
    our_norm, norm = clipped(np.array(values), max_norm)
    # Of a single element torch takes the magnitude itself. Ours is squared, which underflows below 1e-154.
    assert our_norm == pytest.approx(norm, rel=1e-12, abs=1e-153)


@pytest.mark.filterwarnings("ignore:overflow encountered")  # numpy's, which is right
@pytest.mark.parametrize("value", [1e30, -3e38])
def test_squares_that_overflow_are_torchs_infinity(value: float) -> None:
    assert clipped(np.full(5, value, np.float32), 1.0) == (np.inf, np.inf)


@each_dtype
def test_squares_that_underflow_are_torchs_zero(dtype: str) -> None:
    assert clipped(np.full(5, 1e-30 if dtype == "float32" else 1e-200, dtype), 1.0) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"exp_avg": np.zeros(9)}, "unexpected 'exp_avg' in the optimizer's state"),
        ({"num_steps": None}, "missing 'num_steps' in the optimizer's state"),
        ({"momentum_buffer": np.ones(8)}, r"'momentum_buffer' has shape \(9,\), the state's has \(8,\)"),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(change: dict[str, Any], message: str) -> None:
    optimizer = SGD(Sequential(Linear(2, 3)), momentum=0.9)
    state = {**optimizer.state(), "num_steps": np.array(5), "momentum_buffer": np.ones(9), **change}
    with pytest.raises(ValueError, match=f"^{message}$"):
        optimizer.load_state({name: value for name, value in state.items() if value is not None})
    assert optimizer.num_steps == 0
    assert not optimizer.vectors["momentum_buffer"].any()


def test_the_first_step_is_not_dampened() -> None:
    optimizer = SGD(Sequential(), lr=0.5, momentum=0.9, dampening=0.25)
    assert optimizer.coefficients(1)["undampened"] == 1
    assert optimizer.coefficients(2)["undampened"] == 0.75


def test_the_examples_use_every_setting_with_and_without_momentum() -> None:
    examples = SGD.examples()
    fields = {"momentum", "dampening", "weight_decay", "nesterov", "maximize"}
    assert set().union(*examples) == fields
    assert {} in examples
    for example in examples:
        SGD(Sequential(), **example)
