"""RMSprop, Adagrad, Adadelta, Adamax, RAdam, NAdam, ASGD, Rprop and Lion: torch's trajectories, and what is special."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from comparing import TOLERANCES, assert_equal
from trajectories import largest_difference, start_as, train_beside, trajectory

from nn_manual import L1Loss, Linear, MSELoss, Sequential, Tanh, Trainer, optim
from nn_manual.optim import ASGD, Lion, NAdam, Optimizer, RAdam, RMSprop, Rprop

#: torch keeps numbers of a whole tensor, as NAdam's product of shares, in its default dtype.
in_float64 = pytest.mark.usefixtures("numbers_in_float64")
each_dtype = pytest.mark.parametrize("dtype", TOLERANCES)


@pytest.fixture
def numbers_in_float64() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def _every(**choices: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Every combination of these settings."""
    return [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]


SETTINGS = {
    "RMSprop": _every(
        alpha=(0.99, 0.5), eps=(1e-3,), momentum=(0, 0.9), centered=(False, True), weight_decay=(0, 0.1),
        maximize=(False, True),
    ),
    "Adagrad": _every(
        lr_decay=(0, 0.1), initial_accumulator_value=(0, 0.5), eps=(1e-10, 0.1), weight_decay=(0, 0.1),
        maximize=(False, True),
    ),
    "Adadelta": _every(rho=(0.9, 0.5, 0.0, 1.0), eps=(1e-6, 0.1), weight_decay=(0, 0.1), maximize=(False, True)),
    "Adamax": _every(betas=((0.9, 0.999), (0.0, 0.5)), eps=(1e-8, 0.1), weight_decay=(0, 0.1), maximize=(False, True)),
    "RAdam": _every(
        betas=((0.9, 0.999), (0.0, 0.8)), eps=(1e-8, 0.1), weight_decay=(0, 0.1), decoupled_weight_decay=(False, True),
        maximize=(False, True),
    ),
    "NAdam": _every(
        betas=((0.9, 0.999), (0.0, 0.5)), eps=(1e-8, 0.1), weight_decay=(0, 0.1), momentum_decay=(4e-3, 1),
        decoupled_weight_decay=(False, True), maximize=(False, True),
    ),
    "ASGD": _every(
        lambd=(1e-4, 0.5), alpha=(0.75, 1), t0=(1e6, 0, 3.5), weight_decay=(0, 0.1), maximize=(False, True)
    ),
    "Rprop": _every(etas=((0.5, 1.2), (0.1, 3.0)), step_sizes=((1e-6, 50), (0.02, 0.5)), maximize=(False, True)),
}  # fmt: skip - settings in lines
CLASSES = [*SETTINGS, "Lion"]


@in_float64
@each_dtype
@pytest.mark.parametrize("name", SETTINGS)
def test_the_trajectory_is_torchs(name: str, dtype: str) -> None:
    for options in SETTINGS[name]:
        for ours, theirs in zip(*trajectory(name, (3, 4), dtype, options), strict=True):
            assert_equal(ours, theirs)


@pytest.mark.parametrize("name", SETTINGS)
def test_defaults_are_torchs(name: str) -> None:
    ours = getattr(optim, name)(Sequential())
    theirs = getattr(torch.optim, name)([torch.zeros(1)]).defaults
    assert {own: getattr(ours, own) for own in ours.setting_names()}.items() <= theirs.items()


@in_float64
@pytest.mark.parametrize("name", SETTINGS)
def test_200_steps_end_where_torchs_do(name: str) -> None:
    """The same weights and batches, each side with its own gradients."""
    generator = np.random.default_rng(0)
    model = Sequential(Linear(4, 8), Tanh(), Linear(8, 3), dtype="float64")
    layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).double()
    start_as(model, layers)
    start = model.param_arena.copy()
    # With Rprop's steps, two gradients of rounding's size would part ways: their signs decide.
    num_steps = 20 if name == "Rprop" else 200
    trainer = Trainer(model, MSELoss(), getattr(optim, name)(model, lr=0.01), check_every=0)
    optimizer = getattr(torch.optim, name)(layers.parameters(), lr=0.01)
    batches = [(generator.normal(size=(16, 4)), generator.normal(size=(16, 3))) for _ in range(num_steps)]
    train_beside(trainer, layers, torch.nn.MSELoss(), optimizer, None, batches)
    assert largest_difference(model, layers) < 1e-9
    assert np.abs(model.param_arena - start).max() > 1e-3


def stepped(optimizer_class: Any, grads: list[float], **options: Any) -> tuple[list[float], Optimizer]:
    """A parameter, 1 at first, after each step along one of these gradients."""
    model = Sequential(Linear(1, 1, bias=False), dtype="float64")
    model.param_arena[0] = 1.0
    optimizer, found = optimizer_class(model, **options), []
    for grad in grads:
        model.grad_arena[0] = grad
        optimizer.step()
        found.append(float(model.param_arena[0]))
    return found, optimizer


def test_a_variance_below_0_is_rounding() -> None:
    """torch takes its root, which is NaN, or is divided by nearly nothing."""
    found, _ = stepped(RMSprop, [0.7] * 300, lr=1e-3, alpha=0.5, eps=1.0, centered=True)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(np.diff(found)[-50:], -7e-4, rtol=1e-6)


@each_dtype
@pytest.mark.parametrize("alpha", [0.5, 0.8, 0.9])
def test_a_variance_that_is_rounding_is_no_wrong_formula(alpha: float, dtype: str) -> None:
    """The gradient of an L1Loss far from its targets is the same in each step. torch has NaN where ours has 0."""
    generator = np.random.default_rng(0)
    input = generator.standard_normal((64, 3)).astype(dtype)
    model = Sequential(Linear(3, 1), seed=0, dtype=dtype)
    trainer = Trainer(model, L1Loss(), RMSprop(model, lr=1e-5, centered=True, alpha=alpha))
    for _ in range(80):
        trainer.train_step(input, np.full((64, 1), 1e3, dtype))
    assert np.isfinite(model.param_arena).all()


def test_radam_is_not_rectified_before_the_sixth_step() -> None:
    found, _ = stepped(RAdam, [0.25] * 7, lr=0.1)
    np.testing.assert_allclose(np.diff([1.0, *found])[:5], -0.1 * 0.25, rtol=1e-12)
    assert abs(found[5] - found[4]) < 0.01



def test_nadam_looks_ahead_by_the_share_of_the_next_step() -> None:
    found, _ = stepped(NAdam, [0.5, 0.5], lr=0.1, betas=(0.5, 0.0), eps=0.0, momentum_decay=1e9)
    # 0.96**(1e9) is 0, so each share is 0.5; the directions are 0.5, and so are the roots of their mean squares.
    first = 0.5 * 0.25 / 0.75 + 0.5 * 0.5 / 0.5
    second = 0.5 * 0.375 / 0.875 + 0.5 * 0.5 / 0.75
    np.testing.assert_allclose(found, [1 - 0.2 * first, 1 - 0.2 * (first + second)], rtol=1e-14)


@in_float64
def test_a_schedule_may_move_nadams_betas() -> None:
    """Its product of shares remembers them."""
    model = Sequential(Linear(3, 2), dtype="float64")
    ours = NAdam(model, lr=0.05)
    parameter = torch.nn.Parameter(torch.from_numpy(model.param_arena.copy()))
    theirs = torch.optim.NAdam([parameter], lr=0.05)
    generator = np.random.default_rng(0)
    for step in range(12):
        ours.betas = theirs.param_groups[0]["betas"] = (0.95 - 0.05 * step, 0.99)
        model.grad_arena[...] = generator.normal(size=model.num_parameters)
        parameter.grad = torch.from_numpy(model.grad_arena.copy())
        ours.step()
        theirs.step()
        np.testing.assert_allclose(model.param_arena, parameter.detach().numpy(), rtol=1e-13)
    np.testing.assert_allclose(ours.vectors["mu_product"], theirs.state[parameter]["mu_product"], rtol=1e-13)


def test_asgd_by_hand() -> None:
    found, optimizer = stepped(ASGD, [2.0, 2.0, 2.0], lr=0.1, lambd=1.0, alpha=1.0, t0=0.0)
    # each step takes off its size as a share; the sizes are 0.1, then 0.1 / 1.1 and 0.1 / 1.2
    expected = [0.9 - 0.2]
    for rate in (0.1 / 1.1, 0.1 / 1.2):
        expected.append(expected[-1] * (1 - rate) - 2 * rate)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    # the mean begins anew at the second step, whose mu is 1
    np.testing.assert_allclose(optimizer.vectors["ax"], (expected[1] + expected[2]) / 2, rtol=1e-14)


@in_float64
@pytest.mark.parametrize("t0", [0, 3.5, 1e6])
def test_asgds_mean_is_torchs(t0: float) -> None:
    model = Sequential(Linear(3, 2), dtype="float64")
    ours = ASGD(model, lr=0.05, t0=t0, lambd=0.1)
    parameter = torch.nn.Parameter(torch.from_numpy(model.param_arena.copy()))
    theirs = torch.optim.ASGD([parameter], lr=0.05, t0=t0, lambd=0.1)
    generator = np.random.default_rng(0)
    for step in range(12):
        ours.lr = theirs.param_groups[0]["lr"] = 0.1 / (1 + step)
        model.grad_arena[...] = generator.normal(size=model.num_parameters)
        parameter.grad = torch.from_numpy(model.grad_arena.copy())
        ours.step()
        theirs.step()
        for name in ("ax", "eta"):
            of_torch = theirs.state[parameter][name]
            np.testing.assert_allclose(ours.vectors[name], of_torch.expand(parameter.shape), rtol=1e-13, err_msg=name)


def test_rprop_stands_still_where_the_sign_changes() -> None:
    found, optimizer = stepped(Rprop, [3.0, 0.1, -5.0, -5.0, 1e-200, 1e-200], lr=0.1)
    # 0.1; then 0.12; the sign changes: 0.06, and no step; 0.06 again; it changes; 0.03.
    np.testing.assert_allclose(found, [0.9, 0.78, 0.78, 0.84, 0.84, 0.81], rtol=1e-14)
    np.testing.assert_allclose(optimizer.vectors["step_size"], 0.03, rtol=1e-14)


@pytest.mark.parametrize(("dtype", "small"), [("float64", 1e-200), ("float32", 1e-30)])
def test_rprop_is_torchs_where_the_product_of_two_gradients_vanishes(dtype: str, small: float) -> None:
    """The step doesn't grow there, though the signs agree."""
    model = Sequential(Linear(1, 4, bias=False), dtype=dtype)
    model.param_arena[...] = 1
    param = torch.ones(4, dtype=getattr(torch, dtype))
    ours, theirs = Rprop(model, lr=0.1), torch.optim.Rprop([param], lr=0.1)
    for grads in ([small, -small, small, 1], [small, -small, -small, 1], [1, 1, small, -1]):
        model.grad_arena[...] = grads
        param.grad = torch.tensor(grads, dtype=param.dtype)
        ours.step()
        theirs.step()
        np.testing.assert_array_equal(model.param_arena, param.numpy())
        np.testing.assert_array_equal(ours.vectors["step_size"], theirs.state[param]["step_size"].numpy())
    np.testing.assert_allclose(ours.vectors["step_size"], [0.12, 0.05, 0.1, 0.06], rtol=1e-6)


def test_lion_by_hand() -> None:
    found, optimizer = stepped(Lion, [2.0, -1.0], lr=0.1, betas=(0.5, 0.75), weight_decay=0.5)
    # exp_avg 0.5: the second direction is 0.25 - 0.5, below 0
    np.testing.assert_allclose(found, [0.95 - 0.1, 0.85 * 0.95 + 0.1], rtol=1e-15)
    np.testing.assert_allclose(optimizer.vectors["exp_avg"], 0.5 * 0.75 - 0.25, rtol=1e-15)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        *((name, {"lr": -0.1}, "lr must be at least 0, not -0.1") for name in CLASSES),
        ("RMSprop", {"alpha": float("nan")}, "alpha must be at least 0, not nan"),
        ("RMSprop", {"momentum": -1}, "momentum must be at least 0, not -1"),
        ("Adagrad", {"initial_accumulator_value": -1}, "initial_accumulator_value must be at least 0, not -1"),
        ("Adadelta", {"rho": 1.5}, "rho must be at most 1, not 1.5"),
        ("Adamax", {"betas": (0.9, 1)}, r"betas must be at least 0 and below 1, not [0.9, 1]"),
        ("Lion", {"betas": (-0.1, 0.9)}, r"betas must be at least 0 and below 1, not [-0.1, 0.9]"),
        ("NAdam", {"momentum_decay": -1}, "momentum_decay must be at least 0, not -1"),
        ("NAdam", {"betas": (0.9, 1)}, r"betas must be at least 0 and below 1, not [0.9, 1]"),
        ("ASGD", {"lambd": -0.1}, "lambd must be at least 0, not -0.1"),
        ("ASGD", {"alpha": float("nan")}, "alpha must be at least 0, not nan"),
        ("ASGD", {"t0": -1}, "t0 must be at least 0, not -1"),
        ("Rprop", {"etas": (0.5, 1)}, "etas must be a number between 0 and 1 and one above 1, not [0.5, 1]"),
        ("Rprop", {"step_sizes": (2, 1)}, "step_sizes must be two numbers from 0 on, in order, not [2, 1]"),
    ],
)
def test_values_out_of_range_are_named(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole text is compared
        getattr(optim, name)(Sequential(), **options)
    assert str(caught.value) == message
