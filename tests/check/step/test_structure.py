"""A broken Sequential is caught and named, and a layer that raises or returns what it must not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nets import batch, net, replace_method
from problems import problem_and_place

from nn_manual import SGD, GradientChecker, GradientMismatch, Layer, Linear, MSELoss, Sequential, check_gradients
from nn_manual.arrays import Array, Shape


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


def run(checker: GradientChecker, optimizer: SGD) -> None:
    with checker.recording():
        checker.run(*batch())
        optimizer.step()
    checker.compare()


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


WRONG_RETURNS: list[Any] = [
    ("backward", lambda grad: grad.T[:3], "2 (Linear): grad_input has shape (3, 4), it must have (4, 4)"),
    ("backward", lambda grad: grad.astype(np.float64), "2 (Linear): grad_input is float64, it must be float32"),
    ("backward", lambda grad: None, "2 (Linear): grad_input is None, not an array"),  # noqa: ARG005
    ("backward", lambda grad: grad.tolist(), "2 (Linear): grad_input is list, not an array"),
    ("forward", lambda pair: (pair[0][0], pair[1]), "2 (Linear): the output has shape (4,), it must have (4, 4)"),
    ("forward", lambda pair: (pair[0] * np.ones(1), pair[1]), "2 (Linear): the output is float64, it must be float32"),
    ("forward", lambda pair: (pair[0].tolist(), pair[1]), "2 (Linear): the output is list, not an array"),
    (
        "forward",
        lambda pair: pair[0],
        "2 (Linear): forward must return `output, saved`, it returned an array of shape (4, 4) alone",
    ),
    (
        "forward",
        lambda pair: pair[0][:2],
        "2 (Linear): forward must return `output, saved`, it returned an array of shape (2, 4) alone",
    ),
    ("forward", lambda pair: None, "2 (Linear): forward must return `output, saved`, it returned None"),  # noqa: ARG005
    ("forward", lambda pair: (*pair, 1), "2 (Linear): forward must return `output, saved`, it returned 3 values"),
    pytest.param(
        "forward",
        lambda pair: (np.asmatrix(pair[0]), pair[1]),
        "2 (Linear): the output is matrix, not an array",
        # numpy's warning; scipy's sparse arrays return a matrix of their own accord.
        marks=pytest.mark.filterwarnings("ignore:the matrix subclass"),
    ),
    ("forward", lambda pair: (np.ma.array(pair[0]), pair[1]), "2 (Linear): the output is MaskedArray, not an array"),
]


@pytest.mark.parametrize(("method", "change", "words"), WRONG_RETURNS)
def test_what_a_layer_must_not_return_is_its_own_fault(method: str, change: Callable[[Any], Any], words: str) -> None:
    """And not that of the next one, which may raise on it."""
    model = net()
    replace_method(model.layers[2], method, lambda right, *arguments: change(right(*arguments)))
    assert problem_and_place(check_gradients(model, MSELoss(), *batch()))[0] == words
    with pytest.raises(GradientMismatch) as caught:
        run(GradientChecker(model, MSELoss(), optimizer := SGD(model)), optimizer)
    assert problem_and_place(caught.value.report)[0] == words


@pytest.mark.parametrize("method", ["forward", "backward", "backward_parameters"])
@pytest.mark.parametrize("error", [KeyError("weights"), SystemExit(0), SystemExit("bye"), RecursionError("deep")])
def test_a_layer_that_raises_is_named(method: str, error: BaseException) -> None:
    def raises(*_: Any) -> None:
        raise error

    model = net()
    replace_method(model.layers[2], method, raises)
    problem, file, _ = problem_and_place(check_gradients(model, MSELoss(), *batch()))
    called = "backward" if method == "backward_parameters" else method  # Linear's backward runs both
    assert problem == f"2 (Linear): {called} raised {type(error).__name__}: {error}"
    assert file is not None
    assert file.name == "nets.py"  # where replace_method makes the method


def test_a_gradient_of_another_shape_from_the_loss_is_the_losss_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MSELoss, "backward", lambda _, saved: saved.sum(axis=0))
    report = check_gradients(net(), MSELoss(), *batch())
    assert report.problem == "loss: grad_prediction has shape (4,), it must have (4, 4)"


def test_a_loss_that_raises_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MSELoss, "backward", lambda _, saved: saved.nothing)
    report = check_gradients(net(), MSELoss(), *batch())
    assert report.problem == "loss: backward raised AttributeError: 'numpy.ndarray' object has no attribute 'nothing'"


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


class Halve(Layer):
    """Every other column, by an author who forgot `output_shape`."""

    def forward(self, input: Array) -> tuple[Array, Array]:
        return input[:, ::2].copy(), input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        grad_input = np.zeros_like(saved)
        grad_input[:, ::2] = grad_output
        return grad_input


@pytest.mark.parametrize("after", [[], [Linear(2, 2)]])
def test_a_forgotten_output_shape_is_named(after: list[Layer]) -> None:
    model = Sequential(Linear(3, 4), Halve(), *after)
    report = check_gradients(model, MSELoss(), batch()[0], np.zeros((4, 2), np.float32))
    problem, file, line = problem_and_place(report)
    assert (file, line) == (Path(__file__), Halve.forward.__code__.co_firstlineno)
    assert problem == (
        "1 (Halve): forward made (4, 2) of (4, 4), and Halve has the default output_shape, which says that the shape "
        "stays as it is: override output_shape"
    )


class RaisesInOutputShape(Halve):
    def output_shape(self, input_shape: Shape) -> Shape:
        return (input_shape[0], input_shape[2] // 2)


def test_an_output_shape_that_raises_is_named() -> None:
    model = Sequential(Linear(3, 4), RaisesInOutputShape())
    report = check_gradients(model, MSELoss(), batch()[0], np.zeros((4, 2), np.float32))
    problem, file, line = problem_and_place(report)
    assert (file, line) == (Path(__file__), RaisesInOutputShape.output_shape.__code__.co_firstlineno)
    assert problem == "1 (RaisesInOutputShape): output_shape raised IndexError: tuple index out of range"
