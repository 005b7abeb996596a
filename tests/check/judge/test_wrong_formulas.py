"""Formulas that people derive wrongly: each is caught, the tensor named, and the mistake described."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from nets import batch, net, replace_method
from slow_cases import crossed

from nn_manual import CrossEntropyLoss, Linear, Loss, MSELoss, ReLU, Tanh, TraceLoss, check_gradients
from nn_manual.arrays import DTYPES, Array
from nn_manual.losses.cross_entropy import Saved

each_dtype = pytest.mark.parametrize("dtype", DTYPES)


def relu_of_the_output(layer: ReLU, saved: Array, grad_output: Array) -> Array:  # noqa: ARG001 - a method's signature
    return grad_output * (saved >= 0)


def relu_by_gradient(layer: ReLU, saved: Array, grad_output: Array) -> Array:  # noqa: ARG001
    return grad_output * (grad_output > 0)


def relu_without_mask(layer: ReLU, saved: Array, grad_output: Array) -> Array:  # noqa: ARG001
    return grad_output.copy()


def tanh_not_squared(layer: Tanh, saved: Array, grad_output: Array) -> Array:  # noqa: ARG001
    grad_input: Array = grad_output * (1 - saved)
    return grad_input


def tanh_of_its_output(layer: Tanh, saved: Array, grad_output: Array) -> Array:  # noqa: ARG001
    grad_input: Array = grad_output * (1 - np.tanh(saved) ** 2)
    return grad_input


def linear_input_with_the_transpose(layer: Linear, saved: Array, grad_output: Array) -> Array:
    layer.backward_parameters(saved, grad_output)
    grad_input: Array = grad_output @ layer.param.weight.T
    return grad_input


def linear_bias_over_the_wrong_axis(layer: Linear, saved: Array, grad_output: Array) -> None:
    layer.grad.weight[...] = grad_output.T @ saved
    layer.grad.bias[...] = grad_output.sum(axis=1)


def linear_weight_transposed(layer: Linear, saved: Array, grad_output: Array) -> None:
    layer.grad.weight[...] = saved.T @ grad_output
    layer.grad.bias[...] = grad_output.sum(axis=0)


def linear_bias_forgotten(layer: Linear, saved: Array, grad_output: Array) -> None:
    layer.grad.weight[...] = grad_output.T @ saved


def linear_weight_added_up(layer: Linear, saved: Array, grad_output: Array) -> None:
    layer.grad.weight += grad_output.T @ saved
    layer.grad.bias[...] = grad_output.sum(axis=0)


WRONG_FORMULAS: list[tuple[str, Callable[..., Any], str, str]] = [
    ("backward", relu_of_the_output, "3.grad_input", "positions"),
    ("backward", relu_by_gradient, "3.grad_input", "positions"),
    ("backward", relu_without_mask, "3.grad_input", "positions"),
    ("backward", tanh_not_squared, "1.grad_input", "positions"),
    ("backward", tanh_of_its_output, "1.grad_input", "positions"),
    ("backward", linear_input_with_the_transpose, "4.grad_input", "positions"),
    ("backward_parameters", linear_bias_over_the_wrong_axis, "4.grad_bias", "positions"),
    ("backward_parameters", linear_weight_transposed, "4.grad_weight", "the transpose of the reference"),
    ("backward_parameters", linear_bias_forgotten, "4.grad_bias", "never written"),
    ("backward_parameters", linear_weight_added_up, "4.grad_weight", "added to what was there"),
]


@pytest.mark.parametrize(("formula", "dtype"), crossed(WRONG_FORMULAS, list(DTYPES)))
def test_a_wrong_formula_is_caught_named_and_described(
    formula: tuple[str, Callable[..., Any], str, str], dtype: str
) -> None:
    method, wrong, tensor, words = formula
    model = net(dtype)
    replace_method(model.layers[int(tensor[0])], method, lambda _, *arguments: wrong(*arguments))
    report = check_gradients(model, MSELoss(), *batch(dtype))
    assert report.failures[0].name == tensor
    assert words in report.diagnosis


@each_dtype
def test_a_wrong_slope_at_the_kink_is_caught_and_described(dtype: str) -> None:
    model = net(dtype)
    relu = model.layers[3]
    replace_method(relu, "forward", lambda right, layer, input: (right(layer, input)[0], input))
    replace_method(relu, "backward", lambda _, layer, input, grad_output: grad_output * (input >= 0))  # noqa: ARG005
    assert check_gradients(model, MSELoss(), *batch(dtype)).passed, "no input is 0"
    model.layers[2].param.weight[1] = model.layers[2].param.bias[1] = 0
    report = check_gradients(model, MSELoss(), *batch(dtype))
    assert report.failures[0].name == "3.grad_input"
    assert report.diagnosis.splitlines() == [
        "differs at ties or kinks only, 4 of 16 positions: (0, 1), (1, 1), (2, 1), (3, 1)",
        "the input is 0 from a kink there; the nearest is 0, at (0, 1)",
    ]


def mse_n_is_the_batch(loss: MSELoss, saved: Array) -> Array:  # noqa: ARG001
    grad_prediction: Array = saved * (2 / len(saved))
    return grad_prediction


def mse_without_the_two(loss: MSELoss, saved: Array) -> Array:  # noqa: ARG001
    grad_prediction: Array = saved / saved.size
    return grad_prediction


def trace_of_the_mean(loss: TraceLoss, saved: Array) -> Array:  # noqa: ARG001
    return 2 * saved / saved.size


def cross_entropy_without_the_target(loss: CrossEntropyLoss, saved: Saved) -> Array:  # noqa: ARG001
    grad_prediction: Array = saved.exponential / saved.exponential_sum[:, np.newaxis] / len(saved.exponential)
    return grad_prediction


def cross_entropy_without_smoothing(loss: CrossEntropyLoss, saved: Saved) -> Array:
    return CrossEntropyLoss(loss.reduction).backward(saved._replace(q_at_place=np.ones_like(saved.q_at_place), q=None))


@each_dtype
@pytest.mark.parametrize(
    ("loss", "wrong", "words"),
    [
        (MSELoss(), mse_n_is_the_batch, "4 times the reference: the size of axis 0 or the size of axis 1"),
        (MSELoss(), mse_without_the_two, "1/2 of the reference: lost once of twice, or the slope of a square"),
        (TraceLoss(), trace_of_the_mean, "1/16 of the reference: divided by the number of entries"),
        (CrossEntropyLoss(), cross_entropy_without_the_target, "positions"),
        (CrossEntropyLoss("sum", 0.1), cross_entropy_without_smoothing, "positions"),
    ],
)
def test_a_wrong_loss_is_caught_named_and_described(
    loss: Loss, wrong: Callable[..., Any], words: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    input, target = batch(dtype)
    if isinstance(loss, CrossEntropyLoss):
        target = np.array([0, 3, 1, 1])
    monkeypatch.setattr(loss, "backward", wrong.__get__(loss))
    report = check_gradients(net(dtype), loss, input, target)
    assert (report.failures[0].name, report.failures[0].layer) == ("loss.grad_prediction", "loss")
    assert words in report.diagnosis
