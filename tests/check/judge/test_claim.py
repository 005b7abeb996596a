"""Rounding beyond the tolerance is excused, and nothing else is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from nets import break_gradient, net, replace_method
from slow_cases import crossed

from nn_manual import (
    SGD,
    BatchNorm1d,
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    Flatten,
    GradientChecker,
    GradientMismatch,
    Layer,
    Linear,
    Loss,
    MaxPool2d,
    MSELoss,
    PoissonNLLLoss,
    ReLU,
    Sequential,
    Sigmoid,
    Tanh,
    Trainer,
    check_gradients,
)
from nn_manual.arrays import DTYPES, Array, Shape
from nn_manual.check.compare.comparison import Pair, Quantity
from nn_manual.check.judge.claim import Claim, Values
from nn_manual.check.judge.rounding import Rounding
from nn_manual.check.step.reference import Move
from nn_manual.errors import NotFiniteError
from nn_manual.run_directory.step_line import record_of


def cancelling(model: Sequential, num_examples: int = 64) -> tuple[Array, Array]:
    """A batch whose second half cancels the first in the last bias's gradient, but for rounding."""
    input = np.random.default_rng(0).standard_normal((num_examples, 3)).astype(np.float32)
    prediction = model(input)
    sign = np.repeat([1, -1], num_examples // 2)[:, np.newaxis].astype(np.float32)
    error = np.abs(np.random.default_rng(1).standard_normal((num_examples // 2, prediction.shape[1])))
    return input, prediction + sign * np.concatenate([error, error]).astype(np.float32)


def test_a_sum_that_cancels_is_rounding() -> None:
    model = net()
    report = check_gradients(model, MSELoss(), *cancelling(model))
    assert report.rounding == {"4.grad_bias"}
    assert report.passed
    (bias,) = (comparison for comparison in report.comparisons if comparison.name == "4.grad_bias")
    assert bias.relative > 1e-3, "far beyond the tolerance"
    assert "rounding" in str(report)
    assert "WRONG" not in str(report)


def test_a_training_step_records_rounding_and_goes_on() -> None:
    model = net()
    optimizer = SGD(model, lr=0.1)
    checker = GradientChecker(model, MSELoss(), optimizer)
    input, target = cancelling(model)
    with checker.recording():
        checker.run(input, target)
        optimizer.step()
    check = checker.compare()
    assert check.rounding == {"4.grad_bias"}
    assert record_of(1, check)["rounding"] == ["4.grad_bias"]


@pytest.mark.parametrize(
    ("tensor", "factor"), crossed(["4.grad_weight", "2.grad_bias", "1.grad_input"], [1.001, 2, -1])
)
def test_beside_rounding_a_wrong_formula_stays_wrong(tensor: str, factor: float) -> None:
    model = net()
    input, target = cancelling(model)
    place, name = tensor.split(".")
    break_gradient(model.layers[int(place)], name, lambda grad: grad * grad.dtype.type(factor))
    report = check_gradients(model, MSELoss(), input, target)
    assert tensor in [failure.name for failure in report.failures]
    assert "4.grad_bias" not in [failure.name for failure in report.failures] or report.rounding == frozenset()


@pytest.mark.parametrize("factor", [2, -1, 1.01])
def test_a_wrong_formula_of_the_cancelling_sum_itself_is_no_rounding(factor: float) -> None:
    """In float64 the digits are there, and the factor shows."""
    model = net()
    input, target = cancelling(model)
    break_gradient(model.layers[4], "grad_bias", lambda grad: grad * grad.dtype.type(factor))
    report = check_gradients(model, MSELoss(), input, target)
    assert report.failures[0].name == "4.grad_bias"


def test_a_layer_that_is_wrong_in_float32_only_is_wrong() -> None:
    """A formula that loses digits which torch's keeps: right in float64, and no rounding that the step must have."""
    model = Sequential(Linear(3, 4), Tanh(), Linear(4, 4))

    def coarse(grad: Array) -> Array:
        return grad if grad.dtype == np.float64 else grad.astype(np.float16).astype(np.float32)

    break_gradient(model.layers[1], "grad_input", coarse)
    generator = np.random.default_rng(0)
    input, target = generator.standard_normal((8, 3)), generator.standard_normal((8, 4))
    report = check_gradients(model, MSELoss(), input.astype(np.float32), target.astype(np.float32))
    assert report.failures[0].name == "1.grad_input"


def test_a_layer_that_can_only_do_float32_is_not_excused() -> None:
    model = net()
    input, target = cancelling(model)
    replace_method(model.layers[1], "forward", lambda right, layer, input: right(layer, input.astype(np.float32)))
    report = check_gradients(model, MSELoss(), input, target)
    assert report.rounding == frozenset()
    assert [failure.name for failure in report.failures] == ["4.grad_bias"]
    checker = GradientChecker(model, MSELoss())
    with checker.recording():
        checker.run(input, target)
    with pytest.raises(GradientMismatch, match=r"wrong first in 4 \(Linear\): 4\.grad_bias"):
        checker.compare()


def test_an_output_that_is_off_by_less_than_float32_sees_is_named_where_a_derivative_shows_it() -> None:
    """1e-8 too much is nothing beside outputs of 1. But torch's rectifier, anchored at it, passes every gradient."""
    model = Sequential(Linear(3, 4), ReLU(), Linear(4, 4))
    raised = np.float32(1e-8)
    replace_method(model.layers[1], "forward", lambda right, *a: (right(*a)[0] + raised, right(*a)[1]))
    generator = np.random.default_rng(0)
    input, target = generator.standard_normal((8, 3)), generator.standard_normal((8, 4))
    report = check_gradients(model, MSELoss(), input.astype(np.float32), target.astype(np.float32))
    assert report.failures[0].name == "1.output"


def test_a_loss_that_is_cut_to_an_integer_is_wrong() -> None:
    model, loss = net(), MSELoss()
    replace_method(loss, "forward", lambda right, *a: (np.int64(right(*a)[0]), right(*a)[1]))
    report = check_gradients(model, loss, *cancelling(model))
    assert report.failures[0].name == "loss"


@pytest.mark.parametrize("lead", [20, 100, 300, 590, 730])
def test_a_loss_of_which_torch_has_no_digit_is_rounding(lead: float) -> None:
    """log1p(exp(-lead)), which is positive, is log(1 + exp(-lead)) = 0 to torch."""
    model = Sequential(Linear(2, 2, bias=False), dtype="float64")
    model.layers[0].param.weight[...] = [[lead, 0], [0, 1]]
    input, target = np.array([[1.0, 0]]), np.array([0])
    report = check_gradients(model, CrossEntropyLoss(), input, target)
    assert report.agrees
    assert "loss" in report.rounding
    replace_method(model.layers[0], "backward_parameters", lambda *_: model.layers[0].grad.weight.fill(1e-9))
    assert not check_gradients(model, CrossEntropyLoss(), input, target).agrees


@pytest.mark.parametrize("prediction", [-28.036789297658864, -25.74, -31.5, -40.0])
def test_what_torchs_own_loss_rounds_away_is_rounding(prediction: float) -> None:
    """log1p(exp(-28)) = 7e-13 is the difference of 28 and its log_sigmoid to torch. No move shows that: each changes
    both by the same.
    """
    model = Sequential(Linear(1, 1, bias=False), dtype="float64")
    model.param_arena[0] = 1
    input, target = np.array([[prediction]]), np.zeros((1, 1))
    assert check_gradients(model, BCEWithLogitsLoss(), input, target).agrees
    break_gradient(model.layers[0], "grad_weight", lambda grad: 1.001 * grad)
    assert check_gradients(model, BCEWithLogitsLoss(), input, target).failures[0].name == "0.grad_weight"


def test_rounding_of_values_that_float32_can_not_hold_is_rounding() -> None:
    """1 - tanh(13)**2 = 2e-11 has lost 11 digits, and what torch rounds once, we may round twice: one part in 10**6."""
    model = Sequential(Linear(1, 1, bias=False), Tanh(), dtype="float64")
    break_gradient(model.layers[1], "grad_input", lambda grad: (1 + 1e-6) * grad)
    model.param_arena[0] = 13
    input = np.random.default_rng(0).uniform(0.9, 1.1, (64, 1))
    target = 1e131 * np.random.default_rng(1).standard_normal((64, 1))
    report = check_gradients(model, MSELoss(), input, target)
    assert report.agrees
    assert "1.grad_input" in report.rounding
    break_gradient(model.layers[1], "grad_input", lambda grad: 1.001 * grad)
    assert check_gradients(model, MSELoss(), input, target).failures[0].name == "1.grad_input"


@dataclass(eq=False)
class Largest(Layer):
    """The largest of each row, (batch, features) to (batch, 1). torch divides its gradient evenly among ties."""

    shares: bool = True

    def output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape[:-1], 1)

    def forward(self, input: Array) -> tuple[Array, Array]:
        output = input.max(axis=-1, keepdims=True)
        return output, input == output

    def backward(self, saved: Array, grad_output: Array) -> Array:
        share = saved / saved.sum(axis=-1, keepdims=True) if self.shares else saved
        grad_input: Array = (grad_output * share).astype(grad_output.dtype)
        return grad_input

    def reference(self, input: Any) -> Any:
        return input.amax(dim=-1, keepdim=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_wrong_formula_for_ties_is_no_rounding(dtype: str) -> None:
    """A tie that rounding moves breaks, and changes the gradient by as much as a wrong formula does."""
    for shares in (True, False):
        model = Sequential(Linear(3, 4), Largest(shares), Linear(1, 2), dtype=dtype)
        model.layers[0].param.weight[1] = model.layers[0].param.weight[0]
        model.layers[0].param.bias[:2] = 5
        generator = np.random.default_rng(0)
        input, target = generator.standard_normal((8, 3)).astype(dtype), generator.standard_normal((8, 2)).astype(dtype)
        report = check_gradients(model, MSELoss(), input, target)
        assert report.agrees == shares
        if not shares:
            assert report.failures[0].name == "1.grad_input"


def wrong_in_float32(grad: Array) -> Array:
    """As compiled code can be."""
    return grad * np.float32(1.9) if grad.dtype == np.float32 else grad


def pooling() -> tuple[Sequential, Array]:
    """A pool with a tie in four of its patches."""
    input = np.random.default_rng(0).random((8, 1, 4, 4), np.float32)
    input[:4, 0, :2, :2] = 1
    return Sequential(MaxPool2d(2), Flatten(), Linear(4, 2), seed=0), input


class AtMost(Layer):
    """min(x, 0.1). float32(0.1) is above the kink. In float32 a formula may find it below: divided by 0.1 it is 1."""

    def forward(self, input: Array) -> tuple[Array, Array]:
        return np.minimum(input, 0.1), input / input.dtype.type(0.1) <= 1

    def backward(self, saved: Array, grad_output: Array) -> Array:
        grad_input: Array = grad_output * saved
        return grad_input

    def reference(self, input: Any) -> Any:
        return input.where(input < 0.1, 0.1)


def clipping() -> tuple[Sequential, Array]:
    """A clip, of whose inputs one lies at the kink, as float32 has it."""
    input = np.random.default_rng(0).uniform(-0.5, 0.5, (16, 3)).astype(np.float32)
    input[0, 0] = 0.1
    return Sequential(AtMost(), Linear(3, 2), seed=0), input


class Maxout(Layer):
    """max(x @ weight.T) of each row. Where two are equal but for rounding, float32 takes another than float64."""

    def parameter_shapes(self) -> dict[str, Shape]:
        return {"weight": (3, 5)}

    def output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape[:-1], 1)

    def forward(self, input: Array) -> tuple[Array, tuple[Array, Array]]:
        every = input @ self.param.weight.T
        chosen = every * (1 - 8 * np.finfo(np.float32).eps * (np.arange(3) == 0) * (input.dtype == np.float32))
        place = np.arange(3) == chosen.argmax(-1)[:, np.newaxis]
        return every.max(-1, keepdims=True), (input, place)

    def backward(self, saved: tuple[Array, Array], grad_output: Array) -> Array:
        input, place = saved
        of_each = (grad_output * place).astype(input.dtype)
        self.grad.weight[...] = of_each.T @ input
        grad_input: Array = of_each @ self.param.weight
        return grad_input

    def reference(self, input: Any, weight: Any) -> Any:
        return (input @ weight.T).max(-1, keepdim=True).values


def maximum() -> tuple[Sequential, Array]:
    """Of positive inputs, the first two rows of the weight make neighbouring numbers of float32, without rounding."""
    input = np.random.default_rng(0).choice(np.array([1, 1.25], np.float32), (8, 5))
    input[:, 0] = 1
    input[4:] *= -1
    model = Sequential(Maxout(), Linear(1, 2), seed=0)
    weight = model.layers[0].param.weight
    weight[...] = [[1], [1], [0.5]]
    weight[0, 0] += 4 * np.finfo(np.float32).eps
    return model, input


@pytest.mark.parametrize(
    ("net", "name", "is_rounded"),
    [(pooling, "grad_input", False), (clipping, "grad_input", True), (maximum, "grad_weight", True)],
)
def test_a_number_that_jumps_excuses_no_other(net: Any, name: str, is_rounded: bool) -> None:
    """What is at a kink or tied may be anybody's choice in float32. All other numbers have their own rounding."""
    model, input = net()
    target = np.random.default_rng(1).standard_normal((len(input), 2)).astype(np.float32)
    report = check_gradients(model, MSELoss(), input, target)
    assert report.agrees, report
    assert report.rounding == ({f"0.{name}"} if is_rounded else set())
    break_gradient(model.layers[0], name, wrong_in_float32)
    report = check_gradients(model, MSELoss(), input, target)
    assert f"0.{name}" in [failure.name for failure in report.failures]


def test_in_training_a_number_that_jumps_excuses_no_other() -> None:
    model = Sequential(Linear(3, 3, bias=False), *clipping()[0].layers, seed=0)
    model.layers[0].param.weight[...] = np.eye(3)
    target = np.random.default_rng(1).standard_normal((16, 2)).astype(np.float32)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=1e-3))
    check = trainer.train_step(clipping()[1], target).check
    assert check is not None
    assert "1.grad_input" in check.rounding
    model.layers[0].param.weight[...] = np.eye(3)
    break_gradient(model.layers[1], "grad_input", wrong_in_float32)
    with pytest.raises(GradientMismatch, match=r"wrong first in 1 \(AtMost\): 1\.grad_input"):
        trainer.train_step(clipping()[1], target)


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_moved_stays_in_the_domain_of_the_loss(dtype: str) -> None:
    """A probability that is exactly 1 can't be moved up: torch's loss refuses more, and nothing would be rounding."""
    model = Sequential(Linear(2, 2), Sigmoid(), dtype=dtype, seed=0)
    model.load_state_dict({"0.weight": np.array([[100.0, 0], [0, 1]]), "0.bias": np.zeros(2)})
    rows = np.stack([np.full(32, 10.0), np.random.default_rng(0).uniform(-1, 1, 32)], axis=1).astype(dtype)
    input = np.concatenate([rows, rows])
    prediction = model(input)
    assert (prediction[:, 0] == 1).all()
    error = 0.1 * np.random.default_rng(1).random((32, 2)) * [0, 1]
    target = prediction + np.concatenate([error, -error]).astype(dtype)
    report = check_gradients(model, BCELoss(), input, target)
    assert report.passed, str(report)
    assert "0.grad_bias" in report.rounding


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (BCELoss(), "BCELoss takes predictions from 0 to 1, not -3"),
        (PoissonNLLLoss(log_input=False), "PoissonNLLLoss takes predictions from 0 to inf, not -3"),
    ],
)
def test_a_prediction_that_the_loss_does_not_take_is_no_mismatch(loss: Loss, words: str) -> None:
    model = Sequential(Linear(1, 1), seed=0)
    model.load_state_dict({"0.weight": np.ones((1, 1)), "0.bias": np.zeros(1)})
    trainer = Trainer(model, loss, SGD(model))
    with pytest.raises(NotFiniteError, match=f"^{words} at step 1$"):
        trainer.train_step(np.array([[0.5], [-3]], np.float32), np.ones((2, 1), np.float32))


@pytest.mark.parametrize("error", [0.0, 1e-6])
def test_a_finite_loss_outside_of_its_domain_is_judged(error: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check draws logarithms of rates up to 80, and a training may meet 100: it excuses no mistake."""
    right = PoissonNLLLoss.derivative
    monkeypatch.setattr(PoissonNLLLoss, "derivative", lambda self, saved: right(self, saved) * (1 + error))
    model = Sequential(Linear(1, 1), dtype="float64", seed=0)
    model.load_state_dict({"0.weight": np.ones((1, 1)), "0.bias": np.zeros(1)})
    report = check_gradients(model, PoissonNLLLoss(), np.array([[100.0], [99.0]]), np.ones((2, 1)))
    assert report.passed == (not error)
    assert [failure.name for failure in report.failures][:1] == (["loss.grad_prediction"] if error else [])


@pytest.mark.parametrize(("num_rows", "number"), [(24, 6.407605805591899e45), (18, 2.3043353412515686e149)])
def test_equal_numbers_beyond_float32_have_a_variance_of_rounding(num_rows: int, number: float) -> None:
    """In float32 they overflow, and moves that keep ties leave the variance at 0: only a random move in float64 shows
    what the rounding of their mean makes of it.
    """
    model = Sequential(BatchNorm1d(1), dtype="float64", seed=0)
    trainer = Trainer(model, MSELoss("sum"), SGD(model, lr=1e-3))
    step = trainer.train_step(np.full((num_rows, 1), number), np.zeros((num_rows, 1)))
    assert step.check is not None


class Drawn(Claim):
    """A claim whose values rounding moves by an eps, but not in the first `num_exact` measurements."""

    def __init__(self, dtype: str, ours: float, num_exact: int) -> None:
        self.dtype, self.num_exact, self.num_moves = np.dtype(dtype), num_exact, 0
        self.pairs = [Pair(Quantity("output", "0 (Linear)", 1e-5), np.full(3, ours, dtype), torch.ones(3))]

    def in_float64(self) -> Claim:
        raise NotImplementedError

    def measured(self) -> Rounding:
        return Rounding({"output": np.ones(3)})

    def moved(self, dtype: np.dtype[Any], move: Move, move_grad: Move) -> Values:  # noqa: ARG002 - each moves alike
        self.num_moves += 1
        return {"output": np.full(3, 1 if self.num_moves <= self.num_exact else 1 + np.finfo(dtype).eps, dtype)}


@pytest.mark.parametrize(
    ("dtype", "ours", "num_exact", "num_moves"),
    [
        ("float64", 1.001, 0, 3),  # one measurement: float32 twice, float64 once
        ("float64", 1.001, 3, 6),  # the first shows nothing
        ("float64", 1.001, 99, 12),  # none does: four
        ("float64", 1 + 1e-11, 0, 96),  # 1,500 times as far as rounding: another measurement might show more
        ("float32", 1000, 0, 12),  # the next may show a jump
    ],
)
def test_how_often_rounding_is_measured(dtype: str, ours: float, num_exact: int, num_moves: int) -> None:
    claim = Drawn(dtype, ours, num_exact)
    assert claim.rounding(claim.pairs) == frozenset()
    assert claim.num_moves == num_moves
