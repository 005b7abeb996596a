"""What rounding amounts to: values are moved by about one eps, kinks aren't crossed, effects are in units of eps."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nn_manual import Linear, MSELoss, Sequential
from nn_manual.check.compare.tolerances import JUMP, MARGIN, SATURATED
from nn_manual.check.judge.in_float64 import Again
from nn_manual.check.judge.rounding import (
    FURTHER,
    NEARER,
    Rounding,
    eps_of,
    move_as_in_float32,
    move_but_ties,
    move_by_eps,
)
from nn_manual.check.judge.step_claim import StepClaim
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.proof import prove
from nn_manual.check.step.recording import Recording, run_step
from nn_manual.check.twin.model import Twin

EPS = eps_of(np.dtype(np.float64))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_value_is_moved_by_about_an_eps_but_zeros_and_integers(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    moved = move_by_eps(torch.full((1000,), 1.5, dtype=dtype), generator)
    assert moved.dtype == dtype
    steps = ((moved - 1.5) / torch.finfo(dtype).eps).tolist()
    assert set(steps) == {-2, -1, 1, 2}
    assert 400 < steps.count(1) + steps.count(2) < 600
    assert not move_by_eps(torch.zeros(3, dtype=dtype), generator).any()
    infinite = torch.tensor([torch.inf, -torch.inf], dtype=dtype)
    assert torch.equal(move_by_eps(infinite, generator), infinite)
    labels = torch.arange(3)
    assert move_by_eps(labels, generator) is labels


def test_one_of_two_opposite_moves_crosses_a_kink() -> None:
    values = torch.full((100,), 0.7)
    there, again = (move_by_eps(values, torch.Generator().manual_seed(1), back=back) for back in (False, True))
    assert torch.equal(there > 0.7, again < 0.7)


def test_ties_are_not_broken() -> None:
    values = torch.from_numpy(np.random.default_rng(0).standard_normal(1000))
    moved = move_but_ties(torch.cat([values, values.flip(0), -values]), seed=1)
    assert torch.equal(moved[:1000], moved[1000:2000].flip(0))
    assert torch.equal(moved[:1000], -moved[2000:])
    steps = (moved[:1000] - values) / (values * EPS)
    assert 0.2 < steps.abs().min() < steps.abs().max() < 2.1
    assert 400 < (steps > 0).sum() < 600
    assert not torch.equal(moved[:1000], move_but_ties(values, seed=2))
    kinks = torch.tensor([0, 1, -0.5, 6, 1 / 1024, torch.inf], dtype=torch.float64)
    assert torch.equal(move_but_ties(kinks, seed=1), kinks)


def test_a_jump_is_no_rounding() -> None:
    """A gradient that jumps from 0 to 1 where a value is moved by one eps, whichever the dtype."""
    rounding = Rounding({"jump": np.zeros(1), "rounded": np.zeros(1)})
    single, double = np.ones(1, np.float32), np.ones(1)
    rounding.measure({"jump": single, "rounded": 1e-12 * single})
    rounding.measure({"jump": double, "rounded": 500 * 1e-12 * EPS / eps_of(single.dtype) * double})
    assert rounding.effect("jump", single.dtype) == pytest.approx(JUMP / eps_of(single.dtype))
    assert not rounding.explains("jump", np.full(1, 0.01))
    assert rounding.effect("rounded", single.dtype) == pytest.approx(500 * 1e-12 / eps_of(single.dtype))


def test_what_saturates_in_float32_says_nothing_of_float64() -> None:
    """A gradient that one eps of float32 moves as far as it can go, and one eps of float64 by one eps."""
    rounding = Rounding({"gradient": np.ones(1)})
    rounding.measure({"gradient": np.full(1, 2, np.float32)})
    assert not rounding.explains("gradient", np.full(1, 1 + 1e-12))  # until float64 has been measured
    assert rounding.explains("gradient", np.full(1, 3, np.float32))
    rounding.measure({"gradient": np.ones(1)})
    assert rounding.explains("gradient", np.full(1, 1 + 1e-12))  # float64 shows nothing, not even its rounding
    rounding.measure({"gradient": np.full(1, 1 + EPS)})
    assert rounding.effect("gradient", np.dtype(np.float64)) == SATURATED
    assert rounding.explains("gradient", np.full(1, 1 + 0.9 * MARGIN * SATURATED * EPS))
    assert not rounding.explains("gradient", np.full(1, 1 + 1.1 * MARGIN * SATURATED * EPS))
    assert rounding.explains("gradient", np.full(1, 3, np.float32))


def test_values_that_float32_can_not_square_have_no_bound_by_it() -> None:
    rounding = Rounding({"jump": np.zeros(1)})
    rounding.jump = np.inf
    rounding.measure({"jump": np.full(1, 1e-30, np.float32)})
    rounding.measure({"jump": np.ones(1)})
    assert rounding.effect("jump", np.dtype(np.float32)) == 1 / EPS


def test_a_number_that_jumps_is_allowed_its_own_effect_alone() -> None:
    """A tie, a kink within reach, a rounded number, and one that rounds more than it jumps."""
    eps = eps_of(np.dtype(np.float32))
    rounding = Rounding({"gradient": np.zeros(4)})
    single = np.array([1, 0.5, 2 * eps, 3 * eps], np.float32)
    rounding.measure({"gradient": single})
    allowed = MARGIN * eps * single / eps
    assert rounding.explains("gradient", np.full(4, 0.9, np.float32) * allowed.max())
    assert not rounding.explains("gradient", np.full(4, 0.9, np.float32) * allowed.max(), each=True)
    smooth, jump = np.array([eps, eps, 2 * eps, 2 * eps]), np.array([1, 0.5, 0, eps])
    tied = np.array([1, 0, 0, 1])
    rounding.find_jumps({"gradient": FURTHER * smooth + jump}, {"gradient": NEARER * smooth + tied * jump})
    rounding.find_jumps({"gradient": FURTHER * smooth}, {"gradient": NEARER * smooth})  # these moves break nothing
    most = np.maximum(allowed, MARGIN * 3 * eps)
    for each in (False, True):
        assert rounding.explains("gradient", (0.99 * most if not each else 0.99 * allowed).astype("f4"), each=each)
    for i in range(4):
        beyond = 0.99 * most
        beyond[i] = 1.01 * most[i]
        assert not rounding.explains("gradient", beyond.astype("f4"))
    assert rounding.is_far("gradient", np.array([0, 0, 1e7 * MARGIN * 3 * eps, 0], np.float32))
    assert rounding.effect("gradient", np.dtype(np.float32)) == pytest.approx(3)


def test_in_float64_moves_as_of_float32() -> None:
    values = torch.from_numpy(np.random.default_rng(0).random(1000, np.float32)).double()

    def move(tensor: torch.Tensor) -> torch.Tensor:
        return move_by_eps(tensor, torch.Generator().manual_seed(0))

    whole, quarter = (move_as_in_float32(values, move, times) for times in (1, 0.25))
    assert torch.equal(whole, move(values.float()).double())
    assert torch.equal(quarter - values, (whole - values) / 4)
    labels = torch.arange(3)
    assert move_as_in_float32(labels, move, 1) is labels
    large = torch.tensor([1e300, torch.inf], dtype=torch.float64)
    assert torch.equal(move_as_in_float32(large, move, 1), large)


@pytest.mark.parametrize(("scale", "jump"), [(1e9, JUMP), (1e10, np.inf)])
def test_a_claim_takes_the_bound_away_where_values_are_large(scale: float, jump: float) -> None:
    model, loss = Sequential(Linear(1, 1, bias=False), dtype="float64"), MSELoss()
    model.param_arena[0] = 1
    input, target = np.full((2, 1), scale), np.zeros((2, 1))
    with Recording(model, loss) as recorded:
        run_step(model, loss, input, target, input_grad=False)
    twins = Twin(model, loss, np.float64), Twin(model, loss, np.float32)
    step = prove(twins[0], recorded, Plan(model, recorded, input_grad=False))
    claim = StepClaim(twins, step, Again(model, loss, input_grad=False))
    assert claim.measured().jump == jump  # the loss is scale**2


def test_a_few_eps_of_the_largest_value_are_always_rounding() -> None:
    """No move may show: the sum of 32 equal numbers stays as it is if each is moved by one eps."""
    rounding = Rounding({"sum": np.array([1.0, 1e-9]), "overflow": np.array([np.inf])})
    assert rounding.explains("sum", np.array([1, 1e-9 + MARGIN * EPS / 2]))
    assert not rounding.explains("sum", np.array([1, 1e-9 + MARGIN * EPS * 2]))
    assert not rounding.explains("overflow", np.array([1.0]))


def test_what_float32_does_not_show_float64_does() -> None:
    rounding = Rounding({"sum": np.array([1.0])})
    rounding.measure({"sum": np.ones(1, np.float32)})
    assert not rounding.explains("sum", np.array([1 + (MARGIN + 1) * EPS]))
    assert not rounding.is_far("sum", np.array([1 + 1e6 * MARGIN * EPS]))
    assert rounding.is_far("sum", np.array([1 + 1e7 * MARGIN * EPS]))
    rounding.measure({"sum": np.array([1 + 2 * EPS])})
    assert rounding.explains("sum", np.array([1 + 2 * MARGIN * EPS]))
    assert not rounding.explains("sum", np.array([1 + (2 * MARGIN + 2) * EPS]))
    assert rounding.is_far("sum", np.array([2.0]))
    assert rounding.is_far("sum", np.array([np.nan]))
    assert rounding.is_far("sum", np.ones(1, np.int64))


def test_what_overflowed_or_vanished_says_nothing() -> None:
    rounding = Rounding({"sum": np.array([1.0]), "tiny": np.array([1e-60])})
    for value in (np.inf, np.nan):
        rounding.measure({"sum": np.array([value], np.float32), "tiny": np.zeros(1, np.float32)})
    assert rounding.effect("sum", np.dtype(np.float64)) == rounding.effect("tiny", np.dtype(np.float64)) == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_below_the_smallest_normal_number_digits_are_lost(dtype: str) -> None:
    rounding = Rounding({"sum": np.zeros(1)})
    assert rounding.explains("sum", np.array([1e-39 if dtype == "float32" else 1e-309], dtype))
    assert not rounding.explains("sum", np.array([1e-37 if dtype == "float32" else 1e-307], dtype))
    assert not rounding.explains("sum", np.zeros(1, np.int64))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_product_with_what_lost_its_digits_loses_as_many(dtype: str) -> None:
    """The slope of a sigmoid at -710 is 4e-309; 1 / (1 + exp(710)) is 0. The loss comes times the upstream gradient."""
    tiny, dtype_of = (1e-38 if dtype == "float32" else 1e-308), np.dtype(dtype)
    truth = {"grad_input": np.array([100 * tiny]), "grad_output": np.array([-200.0, np.inf])}
    assert Rounding(truth).explains("grad_input", np.zeros(1, dtype_of))
    assert not Rounding(truth).is_far("grad_input", np.zeros(1, dtype_of))
    smaller = truth | {"grad_output": np.array([-20.0, np.nan])}
    assert not Rounding(smaller).explains("grad_input", np.zeros(1, dtype_of))
