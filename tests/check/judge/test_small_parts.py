"""Parts of a tensor that are much smaller than the rest: compared at their own scale, float64 deciding."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from nets import break_gradient
from slow_cases import slow

from nn_manual import (
    CrossEntropyLoss,
    Layer,
    Linear,
    Loss,
    MSELoss,
    ReLU,
    Sequential,
    Tanh,
    TraceLoss,
    check_gradients,
)
from nn_manual.arrays import DTYPES, Array, Shape
from nn_manual.check.catalogue.input_kinds import KINDS, draw
from nn_manual.check.catalogue.upstream import UpstreamLoss
from nn_manual.check.compare.comparison import Pair, Quantity
from nn_manual.check.judge.small_parts import doubtful_parts


def pair(ours: Any, reference: Any, dtype: str = "float32", tolerance: float = 1e-5) -> Pair:
    values = torch.from_numpy(np.array(reference, dtype))
    return Pair(Quantity("0.grad_weight", "0 (Linear)", tolerance), np.array(ours, dtype), values)


def names(found: Pair) -> list[str]:
    return [part.pair.quantity.name for part in doubtful_parts(found)]


def test_rows_and_columns() -> None:
    right = [[1.0, 2e-7, 3.0], [4e-7, 5e-9, 6e-7]]
    assert names(pair(right, right)) == []
    wrong = [[1.0, 2e-7, 3.0], [4e-7, 5e-9, 7e-7]]
    assert names(pair(wrong, right)) == ["0.grad_weight[1, :]"]
    wrong = [[1.0, 3e-7, 3.0], [4e-7, 5e-9, 6e-7]]
    assert names(pair(wrong, right)) == ["0.grad_weight[:, 1]"]
    wrong = [[1.0, 2e-7, 3.1], [4e-7, 5e-9, 6e-7]]
    assert names(pair(wrong, right)) == []  # no small part: that is for the tensor's own tolerance


def test_blocks_of_a_vector() -> None:
    right = [1.0, 20.0, 3e-6, 4e-6, 5.0, 0.0, 0.0]
    assert names(pair(right, right)) == []
    assert names(pair([1.0, 20.0, 3e-6, 5e-6, 5.0, 0.0, 0.0], right)) == ["0.grad_weight[2:4]"]
    assert names(pair([1.0, 20.0, 3e-6, 4e-6, 5.0, 0.0, 1e-9], right)) == ["0.grad_weight[5:7]"]


def test_where_there_are_no_parts() -> None:
    assert names(pair(1.0, 1.0)) == []
    assert names(pair([[0.0, 0.0]], [[0.0, 0.0]])) == []


@dataclass(eq=False)
class Packed(Layer):
    """A Linear of three features and two outputs whose bias lies beside its weight, a matrix of one column more."""

    def parameter_shapes(self) -> dict[str, Shape]:
        return {"packed": (2, 4)}

    def reset_parameters(self, generator: np.random.Generator) -> None:
        self.param.packed[...] = generator.standard_normal((2, 4))

    def output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape[:-1], 2)

    def with_ones(self, input: Array) -> Array:
        return np.append(input, np.ones((len(input), 1), input.dtype), axis=1)

    def forward(self, input: Array) -> tuple[Array, Array]:
        return self.with_ones(input) @ self.param.packed.T, input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        self.grad.packed[...] = grad_output.T @ self.with_ones(saved)
        grad_input: Array = grad_output @ self.param.packed[:, :3]
        return grad_input

    def reference(self, input: Any, packed: Any) -> Any:
        return input @ packed[:, :3].T + packed[:, 3]


@dataclass(eq=False)
class Flat(Packed):
    """The same with weight and bias in one vector."""

    def parameter_shapes(self) -> dict[str, Shape]:
        return {"packed": (8,)}

    def reset_parameters(self, generator: np.random.Generator) -> None:
        self.param.packed[...] = generator.standard_normal(8)

    def forward(self, input: Array) -> tuple[Array, Array]:
        return input @ self.param.packed[:6].reshape(2, 3).T + self.param.packed[6:], input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        self.grad.packed[:6] = (grad_output.T @ saved).ravel()
        self.grad.packed[6:] = grad_output.sum(axis=0)
        grad_input: Array = grad_output @ self.param.packed[:6].reshape(2, 3)
        return grad_input

    def reference(self, input: Any, packed: Any) -> Any:
        return input @ packed[:6].reshape(2, 3).T + packed[6:]


@pytest.mark.parametrize("layer_class", [Packed, Flat])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_doubled_bias_gradient_beside_a_weight_gradient_a_million_times_larger(
    layer_class: type[Packed], dtype: str
) -> None:
    generator = np.random.default_rng(0)
    input = 1e6 * draw("random", (5, 3), dtype, generator)
    grad_output = draw("random", (5, 2), dtype, generator)
    model = Sequential(layer_class(), seed=0, dtype=dtype)
    right = check_gradients(model, UpstreamLoss(), input, grad_output)
    assert right.passed, str(right)

    class Doubled(layer_class):  # type: ignore[misc, valid-type]  # a class that is given
        def backward(self, saved: Array, grad_output: Array) -> Array:
            grad_input: Array = super().backward(saved, grad_output)
            self.grad.packed[..., -1:] *= 2
            return grad_input

    wrong = check_gradients(Sequential(Doubled(), seed=0, dtype=dtype), UpstreamLoss(), input, grad_output)
    assert not wrong.agrees
    assert [failure.name for failure in wrong.failures] == ["0.grad_packed"]
    assert wrong.failures[0].layer == "0 (Doubled)"


def small_row(dtype: str) -> tuple[Sequential, Array, Array]:
    """A net, and a batch that makes one row of its weight's gradient 1e-7 of the others."""
    generator = np.random.default_rng(0)
    grad_output = draw("random", (6, 4), dtype, generator) * np.array([1, 1, 1e-7, 1], dtype)
    return Sequential(Linear(3, 4), seed=0, dtype=dtype), draw("random", (6, 3), dtype, generator), grad_output


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_of_1e_7_ten_times_too_large(dtype: str) -> None:
    model, input, grad_output = small_row(dtype)
    assert check_gradients(model, UpstreamLoss(), input, grad_output).passed
    factor = np.array([[1], [1], [10], [1]], dtype)
    break_gradient(model.layers[0], "grad_weight", lambda right: right * factor.astype(right.dtype))
    report = check_gradients(model, UpstreamLoss(), input, grad_output)
    assert [failure.name for failure in report.failures] == ["0.grad_weight"]
    assert "only index 2 of axis 0 differs; there: 10 times the reference" in str(report)


def test_a_row_that_is_wrong_in_float32_only() -> None:
    model, input, grad_output = small_row("float32")

    def in_float32(right: Array) -> Array:
        wrong = right.copy()
        wrong[2] *= 10 if right.dtype == np.float32 else 1
        return wrong

    break_gradient(model.layers[0], "grad_weight", in_float32)
    report = check_gradients(model, UpstreamLoss(), input, grad_output)
    (failure,) = report.failures
    assert failure.name == "0.grad_weight[2, :]"
    assert failure.shape == (3,)
    assert failure.relative == pytest.approx(9, rel=1e-4)
    assert str(report).startswith("gradient check failed: wrong first in 0 (Linear): 0.grad_weight[2, :]\n")
    assert "10 times the reference" in report.diagnosis


@dataclass(eq=False)
class MeanSubtracted(Layer):
    """The mean over the batch subtracted: the gradient of a bias before it is rounding alone."""

    def forward(self, input: Array) -> tuple[Array, None]:
        return input - input.mean(axis=0), None

    def backward(self, saved: None, grad_output: Array) -> Array:  # noqa: ARG002 - the contract's signature
        grad_input: Array = grad_output - grad_output.mean(axis=0)
        return grad_input

    def reference(self, input: Any) -> Any:
        return input - input.mean(0)


def test_a_small_row_beside_a_gradient_that_is_rounding_alone() -> None:
    """That another tensor is beyond its tolerance, by rounding, excuses nothing here. Of six numbers, two orders of
    summation may give the same bits, so the test makes the difference.
    """
    _, input, grad_output = small_row("float32")
    model = Sequential(Linear(3, 4), MeanSubtracted(), Linear(4, 4), seed=0)

    def summed_in_another_order(grad: Array) -> Array:
        moved: Array = grad + (2.0**-24 if grad.dtype == np.float32 else 0)
        return moved

    break_gradient(model.layers[0], "grad_bias", summed_in_another_order)
    right = check_gradients(model, UpstreamLoss(), input, grad_output)
    assert right.passed
    assert "0.grad_bias" in right.rounding

    def in_float32(grad: Array) -> Array:
        wrong: Array = grad * np.array([[1], [1], [10 if grad.dtype == np.float32 else 1], [1]], grad.dtype)
        return wrong

    break_gradient(model.layers[2], "grad_weight", in_float32)
    report = check_gradients(model, UpstreamLoss(), input, grad_output)
    assert [failure.name for failure in report.failures] == ["2.grad_weight[2, :]"]
    assert "0.grad_bias" in report.rounding


def test_a_step_that_float64_cannot_judge_is_left_alone() -> None:
    model, input, grad_output = small_row("float32")

    def refusing(right: Array) -> Array:
        if right.dtype == np.float64:
            raise TypeError("float32 only")
        wrong = right.copy()
        wrong[2] *= 1.001
        return wrong

    break_gradient(model.layers[0], "grad_weight", refusing)
    assert check_gradients(model, UpstreamLoss(), input, grad_output).passed


@dataclass(eq=False)
class Centered(Layer):
    """Each row divided by its standard deviation, its mean subtracted first. Compared with central differences."""

    def forward(self, input: Array) -> tuple[Array, tuple[Array, Array]]:
        centered = input - input.mean(axis=1, keepdims=True)
        rstd = 1 / np.sqrt((centered * centered).mean(axis=1, keepdims=True) + 1e-5)
        return centered * rstd, (centered * rstd, rstd)

    def backward(self, saved: tuple[Array, Array], grad_output: Array) -> Array:
        output, rstd = saved
        along = (grad_output * output).mean(axis=1, keepdims=True)
        grad_input: Array = rstd * (grad_output - grad_output.mean(axis=1, keepdims=True) - output * along)
        return grad_input


@pytest.mark.parametrize("seed", range(30))
def test_what_is_compared_with_central_differences_is_compared_as_a_whole(seed: int) -> None:
    """They don't round as float32 does, so nothing shows what rounding amounts to in a part that cancels."""
    generator = np.random.default_rng(seed)
    input, grad_output = (draw("scattered", (4, 3), "float32", generator) for _ in range(2))
    report = check_gradients(Sequential(Centered()), UpstreamLoss(), input, grad_output)
    assert report.agrees, str(report)


LOSSES = (CrossEntropyLoss(), CrossEntropyLoss(label_smoothing=0.1), MSELoss(), MSELoss("sum"), TraceLoss())


def random_step(seed: int) -> tuple[Sequential, Loss, Array, Array]:
    """A net, a loss and a batch of any kind: many a row of it cancels to rounding, or is small."""
    generator = np.random.default_rng(seed)
    widths = generator.choice([1, 2, 3, 5, 8, 16], 4)
    layers = [(Linear(int(n), int(m)), (ReLU, Tanh)[generator.integers(2)]()) for n, m in pairwise(widths)]
    dtype = str(generator.choice(list(DTYPES)))
    model = Sequential(*(layer for both in layers for layer in both), seed=seed, dtype=dtype)
    batch_size = int(generator.choice([1, 2, 7, 32]))
    kind, target_kind = generator.choice([*KINDS, "scattered", "scattered", "spread"], 2)
    input = draw(kind, (batch_size, int(widths[0])), dtype, generator)
    loss = LOSSES[generator.integers(len(LOSSES))]
    if isinstance(loss, CrossEntropyLoss):
        return model, loss, input, generator.integers(0, widths[-1], batch_size)
    return model, loss, input, draw(target_kind, (batch_size, int(widths[-1])), dtype, generator)


@pytest.mark.parametrize("first", [0, *map(slow, range(50, 200, 50))])
def test_no_false_alarm(first: int) -> None:
    for seed in range(first, first + 50):
        with np.errstate(all="ignore"):  # of scattered inputs some are too large for float32
            report = check_gradients(*random_step(seed))
        assert report.agrees, f"{seed}: {report}"
