"""A broken Sequential is caught and named, and a step that leaves something out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from nets import batch, net, run

from nn_manual import SGD, GradientChecker, GradientMismatch, Linear, MSELoss, Sequential, check_gradients
from nn_manual.arrays import DTYPES, Array


def forward(model: Sequential, input: Array, order: list[int]) -> tuple[Array, list[Any]]:
    saved: list[Any] = [None] * len(model.layers)
    for i in order:
        input, saved[i] = model.layers[i].forward(input)
    return input, saved


def backward(model: Sequential, saved: list[Any], grad_output: Array, order: list[int]) -> Array:
    for i in order:
        grad_output = model.layers[i].backward(saved[i], grad_output)
    return grad_output


def returns_another_array(model: Sequential, input: Array) -> tuple[Array, list[Any]]:
    output, saved = forward(model, input, [0, 1, 2, 3, 4])
    return 2 * output, saved


def returns_an_inner_output(model: Sequential, input: Array) -> tuple[Array, list[Any]]:
    _, saved = forward(model, input, [0, 1, 2, 3, 4])
    return saved[4], saved


def changes_between_layers(model: Sequential, input: Array) -> tuple[Array, list[Any]]:
    output, saved = forward(model, input, [0, 1, 2])
    rest = [layer.forward(output * 2) for layer in model.layers[3:4]]
    output, last = model.layers[4].forward(rest[0][0])
    return output, [*saved[:3], rest[0][1], last]


BROKEN_FORWARDS: list[tuple[Callable[[Sequential, Array], Any], str]] = [
    (lambda model, input: forward(model, input, [0, 1, 2, 4]), "ran 3 (ReLU) forward never instead of once"),
    (lambda model, input: forward(model, input, [0, 2, 1, 3, 4]), "gave 1 (Tanh) another array than the output of the"),
    (lambda model, input: forward(model, input, [0, 1, 2, 3, 3, 4]), "ran 3 (ReLU) forward 2 times instead of once"),
    (lambda model, input: forward(model, input, [1, 2, 3, 4]), "never ran its first layer, 0 (Linear)"),
    (lambda model, input: (input, []), "never ran its first layer, 0 (Linear)"),  # noqa: ARG005
    (lambda model, input: forward(model, input, [0, 4, 1, 2, 3]), "gave 1 (Tanh) another array than the output of the"),
    (returns_another_array, "returned another array than the output of its last layer, 4 (Linear)"),
    (returns_an_inner_output, "returned another array than the output of its last layer, 4 (Linear)"),
    (changes_between_layers, "gave 3 (ReLU) another array than the output of the layer before it"),
]


@pytest.mark.parametrize(("broken", "words"), BROKEN_FORWARDS)
def test_a_broken_forward_of_sequential_is_named(
    broken: Callable[[Sequential, Array], Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sequential, "forward", broken)
    monkeypatch.setattr(Sequential, "backward", lambda *_: None)
    report = check_gradients(net(), MSELoss(), *batch())
    assert report.problem is not None
    assert f"Sequential {words}" in report.problem


def doubles_between_layers(model: Sequential, saved: list[Any], grad_output: Array) -> Array:
    grad_output = backward(model, saved, grad_output, [4, 3])
    return backward(model, saved, 2 * grad_output, [2, 1, 0])


def hands_the_loss_gradient_to_all(model: Sequential, saved: list[Any], grad_output: Array) -> Array:
    backward(model, saved, grad_output, [4])
    return backward(model, saved, grad_output, [3, 2, 1, 0])


def hands_on_ones(model: Sequential, saved: list[Any], grad_output: Array) -> Array:
    return backward(model, saved, np.ones_like(grad_output), [4, 3, 2, 1, 0])


BROKEN_BACKWARDS: list[tuple[Callable[[Sequential, list[Any], Array], Any], str]] = [
    (lambda m, saved, grad: backward(m, saved, grad, [4, 3, 1, 0]), "ran 2 (Linear) backward never instead of once"),
    (lambda m, saved, grad: backward(m, saved, grad, [4, 2, 3, 1, 0]), "gave 3 (ReLU) another gradient than 4 (Line"),
    (lambda m, saved, grad: backward(m, saved, grad, [0, 1, 2, 3, 4]), "ran 4 (Linear) backward never instead of once"),
    (lambda m, saved, grad: backward(m, saved, grad, [4, 3, 2, 1]), "ran 0 (Linear) backward never instead of once"),
    (lambda m, saved, grad: grad, "ran 4 (Linear) backward never instead of once"),  # noqa: ARG005
    (
        lambda m, saved, grad: backward(m, [*saved[:2], saved[4], *saved[3:]], grad, [4, 3, 2, 1, 0]),
        "gave 2 (Linear) back another `saved` than its forward had returned",
    ),
    (lambda m, saved, grad: backward(m, saved, backward(m, saved, grad, [4, 3]), [3, 2, 1, 0]), "gave 3 (ReLU) anoth"),
    (doubles_between_layers, "gave 2 (Linear) another gradient than 3 (ReLU) returned"),
    (hands_the_loss_gradient_to_all, "gave 3 (ReLU) another gradient than 4 (Linear) returned"),
    (hands_on_ones, "gave 4 (Linear) another gradient than the loss returned"),
]


@pytest.mark.parametrize(("broken", "words"), BROKEN_BACKWARDS)
def test_a_broken_backward_of_sequential_is_named(
    broken: Callable[[Sequential, list[Any], Array], Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sequential, "backward", broken)
    report = check_gradients(net(), MSELoss(), *batch())
    assert report.problem is not None
    assert f"Sequential {words}" in report.problem
    assert str(report).startswith("gradient check failed: Sequential ")


@pytest.mark.parametrize(("broken", "words"), [BROKEN_BACKWARDS[0], BROKEN_BACKWARDS[1], BROKEN_BACKWARDS[7]])
def test_a_broken_sequential_ends_a_training_step(
    broken: Callable[[Sequential, list[Any], Array], Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sequential, "backward_parameters", broken)
    model = net()
    optimizer = SGD(model)
    checker = GradientChecker(model, MSELoss(), optimizer)
    with pytest.raises(GradientMismatch) as caught:
        run(checker, optimizer)
    assert f"Sequential {words}" in caught.value.report.problem


def test_a_broken_inner_sequential_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Sequential.backward

    def drops_the_last(model: Sequential, saved: list[Any], grad_output: Array) -> Array:
        layers, model.layers = model.layers, model.layers[: len(model.layers) - (len(model.layers) == 5)]
        try:
            return right(model, saved[: len(model.layers)], grad_output)
        finally:
            model.layers = layers

    monkeypatch.setattr(Sequential, "backward", drops_the_last)
    report = check_gradients(Sequential(net()), MSELoss(), *batch())
    assert report.problem == "Sequential ran 0.4 (Linear) backward never instead of once"


def test_a_step_that_runs_no_loss_or_no_backward_is_told() -> None:
    model, (input, target) = net(), batch()
    checker = GradientChecker(model, MSELoss())
    with checker.recording():
        model.forward(input)
    with pytest.raises(GradientMismatch, match="the step never ran the loss"):
        checker.compare()
    with checker.recording():
        checker.loss.forward(model.forward(input)[0], target)
    with pytest.raises(GradientMismatch, match="loss: backward never ran, or returned None"):
        checker.compare()
    with checker.recording():
        pass
    with pytest.raises(GradientMismatch, match="Sequential never ran its first layer"):
        checker.compare()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_value_of_the_loss_has_the_dtype_of_the_prediction(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number of Python's has no dtype of numpy's, and passes."""
    right, other = MSELoss.forward, "float64" if dtype == "float32" else "float32"
    model, input = Sequential(Linear(3, 2), seed=0, dtype=dtype), np.ones((4, 3), dtype)
    refusal = f"loss: forward's value is {other}, it must be {dtype}, as the prediction"

    def converted(convert: Callable[[Any], Any]) -> Callable[..., tuple[Any, Array]]:
        def forward(loss: MSELoss, prediction: Array, target: Array) -> tuple[Any, Array]:
            value, saved = right(loss, prediction, target)
            return convert(value), saved

        return forward

    conversions: list[tuple[Callable[[Any], Any], str | None]] = [
        (float, None),
        (lambda value: value, None),
        (np.dtype(other).type, refusal),
        (lambda value: np.array(value, other), refusal),
    ]
    for convert, problem in conversions:
        monkeypatch.setattr(MSELoss, "forward", converted(convert))
        assert check_gradients(model, MSELoss(), input, np.zeros((4, 2), dtype)).problem == problem
