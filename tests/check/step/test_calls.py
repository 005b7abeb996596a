"""A layer or a loss that raises, or returns what it must not, is named."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nets import batch, net, replace_method, run
from problems import problem_and_place

from nn_manual import SGD, GradientChecker, GradientMismatch, Layer, Linear, MSELoss, Sequential, check_gradients
from nn_manual.arrays import Array, Shape

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
    assert report.problem is not None
    words, _, place = report.problem.partition(" (")
    assert words == "loss: backward raised AttributeError: 'numpy.ndarray' object has no attribute 'nothing'"
    assert re.fullmatch(r".*test_calls\.py:\d+\)", place)


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


class Large(Layer):
    """Takes more memory than there is."""

    def forward(self, input: Array) -> tuple[Array, Array]:  # noqa: ARG002 - it raises
        raise MemoryError("58 TiB")

    def backward(self, saved: Array, grad_output: Array) -> Array:  # noqa: ARG002 - it never runs
        return grad_output

    def reference(self, input: Any) -> Any:
        """Itself."""
        return input


def test_no_formula_is_to_blame_for_memory_that_is_not_there() -> None:
    model = Sequential(Linear(2, 2), Large(), dtype="float64")
    with pytest.raises(MemoryError, match=r"^58 TiB$"):
        check_gradients(model, MSELoss(), np.ones((2, 2)), np.ones((2, 2)))
