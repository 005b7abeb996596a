"""Gradients that are zero in theory: compared on the scale of their terms, and the report says what that proves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from nets import break_gradient

from nn_manual import (
    SGD,
    BatchNorm1d,
    CausalSelfAttention,
    CrossEntropyLoss,
    Embedding,
    Flatten,
    GradientMismatch,
    Layer,
    Linear,
    Loss,
    MSELoss,
    Sequential,
    Sigmoid,
    Tanh,
    Trainer,
    check_gradients,
)
from nn_manual.arrays import DTYPES, Array
from nn_manual.check.judge import vacuous, zeros
from nn_manual.check.judge.judge import Judge
from nn_manual.check.judge.vacuous import MOST_ROWS
from nn_manual.check.step.recording import run_step
from nn_manual.data import Examples

each_dtype = pytest.mark.parametrize("dtype", DTYPES)


@dataclass(eq=False)
class Normalized(Layer):
    """Batch normalization without parameters: whatever bias comes before it is subtracted again."""

    def forward(self, input: Array) -> tuple[Array, Any]:
        deviation = np.sqrt(input.var(axis=0) + 1e-5)
        output = (input - input.mean(axis=0)) / deviation
        return output, (output, deviation)

    def backward(self, saved: Any, grad_output: Array) -> Array:
        output, deviation = saved
        grad: Array = grad_output - grad_output.mean(axis=0) - output * (grad_output * output).mean(axis=0)
        grad_input: Array = grad / deviation
        return grad_input

    def reference(self, input: Any) -> Any:
        return (input - input.mean(0)) / (input.var(0, unbiased=False) + 1e-5).sqrt()


@dataclass(eq=False)
class Exponential(Layer):
    """output = exp(input)."""

    def forward(self, input: Array) -> tuple[Array, Array]:
        output = np.exp(input)
        return output, output

    def backward(self, saved: Array, grad_output: Array) -> Array:
        return grad_output * saved

    def reference(self, input: Any) -> Any:
        return input.exp()


@dataclass(eq=False)
class Logarithm(Layer):
    """output = log(input)."""

    domain = "positive"

    def forward(self, input: Array) -> tuple[Array, Array]:
        return np.log(input), input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        return grad_output / saved

    def reference(self, input: Any) -> Any:
        return input.log()


def trainer_of(dtype: str = "float32") -> Trainer:
    model = Sequential(Linear(3, 4), Normalized(), Tanh(), Linear(4, 2), seed=1, dtype=dtype)
    return Trainer(model, MSELoss(), SGD(model, lr=0.1, momentum=0.9))


def batch(dtype: str, seed: int) -> tuple[Array, Array]:
    generator = np.random.default_rng(seed)
    return generator.standard_normal((16, 3)).astype(dtype), generator.standard_normal((16, 2)).astype(dtype)


@pytest.fixture
def num_judged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one with each step that is judged."""
    calls: list[int] = []
    right = Judge.judge

    def counted(judge: Judge, *arguments: Any) -> Any:
        calls.append(1)
        return right(judge, *arguments)

    monkeypatch.setattr(Judge, "judge", counted)
    return calls


@each_dtype
def test_it_is_judged_once_and_then_compared_on_the_scale_of_its_terms(dtype: str, num_judged: list[int]) -> None:
    trainer = trainer_of(dtype)
    for seed in range(60):
        check = trainer.train_step(*batch(dtype, seed)).check
        assert check is not None
        assert check.rounding == frozenset()
        bias = check.tensors.index("0.grad_bias")
        assert check.severity[bias] < 0.1
        assert trainer.checker is not None
        grad_output = trainer.checker.recorded.layers[0].grad_output
        assert grad_output is not None
        assert check.scale[bias] > 0.1 * np.abs(grad_output).max(), "terms, and not what is left of them"
    assert len(num_judged) == 1


def test_its_scale_is_measured_anew(num_judged: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zeros, "ZEROS_MEASURED_EVERY", 10)
    trainer = trainer_of()
    for seed in range(35):
        trainer.train_step(*batch("float32", seed))
    assert len(num_judged) == 4


@each_dtype
def test_the_report_says_that_it_proves_nothing(dtype: str) -> None:
    model = trainer_of(dtype).model
    for factor in (1, 3):
        report = check_gradients(model, MSELoss(), *batch(dtype, 0))
        assert report.passed, str(report)
        assert "0.grad_bias is zero in theory, its terms cancel: a wrong factor would not show" in report.sources
        if factor == 1:
            break_gradient(model.layers[0], "grad_bias", lambda grad: 3 * grad)


@each_dtype
@pytest.mark.parametrize("seed", range(10))
def test_one_that_comes_out_as_zero_is_not_vacuous(seed: int, dtype: str) -> None:
    """Of a batch of 2 the normalized outputs are 1 and -1, whatever the bias: often not even rounding is left of it."""
    model = Sequential(Linear(3, 2), Normalized(), Tanh(), Linear(2, 2), seed=seed, dtype=dtype)
    input, target = (array[:2] for array in batch(dtype, seed))
    assert not [line for line in check_gradients(model, MSELoss(), input, target).vacuous if "0.grad_bias" in line]


@each_dtype
@pytest.mark.parametrize("memory", [0, 64_000_000])
@pytest.mark.parametrize("factor", [1, 3])
def test_in_training_it_is_listed_as_unproven(factor: int, memory: int, dtype: str) -> None:
    """Proven one by one, or together: a gradient that is rounding alone is compared, and three times that agrees."""
    trainer = replace(trainer_of(dtype), check_memory=memory)
    break_gradient(trainer.model.layers[0], "grad_bias", lambda grad: factor * grad)
    input, target = (np.concatenate(arrays) for arrays in zip(*(batch(dtype, seed) for seed in range(8)), strict=True))
    for _ in trainer.epoch(Examples(input, target), 16, seed=0, epoch=0):
        pass
    assert trainer.checker is not None
    assert trainer.checker.unproven() == ("0 (Linear): 0.grad_bias is zero in theory and rounding alone",)
    assert trainer.checker.vacuous() == (), "a right net may have it"


def test_the_bias_of_keys_is_listed() -> None:
    """A number that is added to all scores of a row changes no probability."""
    model = Sequential(CausalSelfAttention(4, 2), Linear(4, 2), seed=1)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1))
    generator = np.random.default_rng(0)
    input, target = generator.standard_normal((3, 5, 4)), generator.standard_normal((3, 5, 2))
    trainer.train_step(input.astype(np.float32), target.astype(np.float32))
    assert trainer.checker is not None
    name = "0.grad_in_proj_bias[4:8]"
    assert trainer.checker.unproven() == (f"0 (CausalSelfAttention): {name} is zero in theory and rounding alone",)


def test_the_gradient_of_what_never_occurs_is_no_rounding() -> None:
    """It is zero exactly: a wrong one would show."""
    model = Sequential(Embedding(9, 3), Flatten(), Linear(6, 2), seed=1)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1))
    trainer.train_step(np.array([[0, 1], [1, 4]]), batch("float32", 0)[1][:2])
    assert trainer.checker is not None
    assert trainer.checker.unproven() == ()


def test_a_layer_that_takes_positive_numbers_alone() -> None:
    """The logarithm of a negative number is none: such draws say nothing, others do."""
    model = Sequential(Linear(3, 4), Normalized(), Exponential(), Logarithm(), Linear(4, 2), seed=1)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1))
    trainer.train_step(*batch("float32", 0))
    assert trainer.checker is not None
    assert trainer.checker.unproven() == ("0 (Linear): 0.grad_bias is zero in theory and rounding alone",)


def test_no_other_gradient_is_said_to_be_zero() -> None:
    report = check_gradients(Sequential(Linear(3, 4), Tanh(), Linear(4, 2)), MSELoss(), *batch("float32", 0))
    assert report.passed
    assert report.sources == ()


@each_dtype
@pytest.mark.parametrize("error", [1e-3, -1e-4])
def test_terms_that_do_not_cancel_show(error: float, dtype: str) -> None:
    trainer = trainer_of(dtype)
    trainer.train_step(*batch(dtype, 0))
    first = trainer.model.layers[0]
    break_gradient(first, "grad_bias", lambda grad: grad + grad.dtype.type(error))
    with pytest.raises(GradientMismatch, match=r"wrong first in 0 \(Linear\): 0\.grad_bias"):
        trainer.train_step(*batch(dtype, 1))


def test_a_report_on_another_tensor_does_not_call_a_known_zero_wrong() -> None:
    trainer = trainer_of()
    for number in range(3):
        trainer.train_step(*batch("float32", number))
    break_gradient(trainer.model.layers[0], "grad_weight", lambda grad: 1.1 * grad)
    with pytest.raises(GradientMismatch) as raised:
        trainer.train_step(*batch("float32", 3))
    assert [comparison.name for comparison in raised.value.report.failures] == ["0.grad_weight"]
    assert "0.grad_bias" in raised.value.report.rounding


@pytest.mark.parametrize("input_scale", [1e-16, 1, 1e3, 1e6])
@pytest.mark.parametrize("target_scale", [1, 1e14])
def test_a_gradient_that_is_small_for_another_reason_is_not_listed(input_scale: float, target_scale: float) -> None:
    """Small inputs, saturated units, a loss far above its gradients, and gradients that vanish in 30 layers."""
    hidden = [layer for _ in range(30) for layer in (Sigmoid(), Linear(8, 8))]
    model = Sequential(Linear(6, 8), *hidden, Linear(8, 4), dtype="float64", seed=0)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=1e-9 / target_scale))
    generator = np.random.default_rng(0)
    trainer.train_step(
        input_scale * generator.standard_normal((5, 6)), target_scale * generator.standard_normal((5, 4))
    )
    assert trainer.checker is not None
    assert not [sentence for sentence in trainer.checker.unproven() if "in theory" in sentence]


@pytest.mark.parametrize("input_scale", [1e-16, 1, 1e6])
def test_what_is_zero_in_theory_is_listed_at_every_scale(input_scale: float) -> None:
    model = Sequential(Linear(6, 4), Normalized(), Linear(4, 2), dtype="float64", seed=0)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=1e-9))
    generator = np.random.default_rng(0)
    trainer.train_step(input_scale * generator.standard_normal((5, 6)), generator.standard_normal((5, 2)))
    assert trainer.checker is not None
    assert "0 (Linear): 0.grad_bias is zero in theory and rounding alone" in trainer.checker.unproven()


@pytest.mark.parametrize("num_counted", [3 * MOST_ROWS, MOST_ROWS, 0])
def test_what_is_zero_in_theory_is_found_in_some_rows_of_a_large_batch(
    num_counted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In float64 all rows would take several times the memory of the step. All are taken if the first don't count."""
    model = Sequential(Linear(6, 4), BatchNorm1d(4), Linear(4, 3), seed=0)
    trainer = Trainer(model, CrossEntropyLoss(ignore_index=0), SGD(model, lr=1e-9))
    generator = np.random.default_rng(0)
    target = generator.integers(1, 3, 3 * MOST_ROWS)
    target[num_counted:-1] = 0
    trainer.train_step(generator.standard_normal((3 * MOST_ROWS, 6)).astype(np.float32), target)
    assert trainer.checker is not None
    num_rows = set[int]()

    def noted(model: Sequential, loss: Loss, input: Array, target: Array, **others: bool) -> None:
        num_rows.add(len(input))
        run_step(model, loss, input, target, **others)

    monkeypatch.setattr(vacuous, "run_step", noted)
    assert "0 (Linear): 0.grad_bias is zero in theory and rounding alone" in trainer.checker.unproven()
    assert num_rows == {MOST_ROWS if num_counted else 3 * MOST_ROWS}
