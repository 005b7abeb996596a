"""Classes with forward, backward, and gradients in attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from slow_cases import slow

from nn_manual import HandwrittenClass, check_function


class Affine:
    def __init__(self, W: Any, b: Any, scale: float = 1.0) -> None:
        self.W, self.b, self.scale = W, b, scale
        self.params = [W, b]
        self.grads = [np.zeros_like(W), np.zeros_like(b)]
        self.gradients: dict[str, Any] = {}

    def forward(self, x: Any) -> Any:
        self.x = x
        return x @ self.W + self.b

    def backward(self, dout: Any) -> Any:
        self.dW, self.db = self.x.T @ dout, dout.sum(0)
        self.grads[0][...], self.grads[1][...] = self.dW, self.db
        self.gradients = {"W": self.dW, "b": self.db}
        return dout @ self.W.T


class WithoutReturn(Affine):
    def backward(self, dout: Any) -> None:
        self.dinputs = super().backward(dout)


class KeepsItsOutput(WithoutReturn):
    def forward(self, x: Any) -> None:
        self.output = super().forward(x)


class AddsUp(Affine):
    def backward(self, dout: Any) -> Any:
        self.grads[0] += self.x.T @ dout
        self.grads[1] += dout.sum(0)
        return dout @ self.W.T


def reference(x: Any, weight: Any, bias: Any) -> Any:
    return x @ weight + bias


def inputs() -> list[Any]:
    generator = np.random.default_rng(0)
    return [generator.standard_normal(shape) for shape in ((4, 3), (3, 2), (2,))]


IN_ATTRIBUTES = {"W": "dW", "b": "db"}
IN_A_LIST = {"W": "grads[0]", "b": "grads[1]"}


@pytest.mark.parametrize(
    ("made", "gradients"),
    [
        (Affine, IN_ATTRIBUTES),
        slow(Affine, IN_A_LIST),
        (Affine, {"W": "gradients['W']", "b": 'gradients["b"]'}),
        (WithoutReturn, {"x": "dinputs", **IN_ATTRIBUTES}),
        (AddsUp, IN_A_LIST),
        slow(lambda W, b: Affine(W, b, 1.0), IN_ATTRIBUTES),
    ],
)
def test_where_gradients_stand(made: Any, gradients: dict[str, str]) -> None:
    report = check_function(HandwrittenClass(made, gradients), reference, inputs())
    assert report.passed, report
    assert len(report.comparisons) == 7


def test_an_output_in_an_attribute() -> None:
    gradients = {"x": "dinputs", **IN_ATTRIBUTES}
    report = check_function(HandwrittenClass(KeepsItsOutput, gradients, output="output"), reference, inputs())
    assert report.passed, report
    assert [row.name for row in report.comparisons[:2]] == ["output", "grad_x, random upstream"]
    report = check_function(HandwrittenClass(KeepsItsOutput, gradients), reference, inputs())
    assert report.problem == (
        "KeepsItsOutput: forward returned nothing: if the object keeps the output, output='output' says where; the "
        "object has W, b, scale, params, grads, gradients, x, output"
    )
    assert not report.wrong
    report = check_function(HandwrittenClass(KeepsItsOutput, gradients, output="out"), reference, inputs())
    assert "after forward the object has no out (" in (report.problem or "")
    assert "did you mean 'output'?" in (report.problem or "")
    with pytest.raises(ValueError, match=r"^output is '1': write 'dW'"):
        HandwrittenClass(KeepsItsOutput, gradients, output="1")


@pytest.mark.parametrize("gradients", [IN_ATTRIBUTES, IN_A_LIST])
def test_a_wrong_gradient_is_named(gradients: dict[str, str]) -> None:
    class Wrong(Affine):
        def backward(self, dout: Any) -> Any:
            grad = super().backward(dout)
            self.db = self.grads[1] = self.db / 4
            return grad

    report = check_function(HandwrittenClass(Wrong, gradients), reference, inputs(), only=["retain_graph"])
    assert "wrong first in Wrong: grad_bias" in str(report)


def test_inputs_by_name() -> None:
    x, weight, bias = inputs()
    given = {"b": bias, "x": x, "W": weight}
    report = check_function(HandwrittenClass(Affine, IN_ATTRIBUTES), lambda x, W, b: x @ W + b, given)
    assert report.passed, report


@pytest.mark.slow
def test_habits_of_classes_are_notes() -> None:
    """It alone has every habit of a class."""
    rows = {row.name: row for row in check_function(HandwrittenClass(AddsUp, IN_A_LIST), reference, inputs()).rows}
    assert (rows["retain_graph"].verdict, rows["retain_graph"].note) == (
        "right",
        "its gradients add up from call to call",
    )
    of_one = rows["two forwards of one object"]
    assert of_one.verdict == "right"
    assert of_one.note == "one cache for all calls: backward belongs to the last forward of its object"
    rows = {
        row.name: row
        for row in check_function(HandwrittenClass(Affine, IN_ATTRIBUTES), reference, inputs()).rows
    }
    assert rows["retain_graph"].note == ""


def test_other_names_of_the_methods_and_a_loss_without_upstream() -> None:
    class Squares:
        def __call__(self, x: Any, y: Any) -> Any:
            self.difference = x - y
            return (self.difference**2).sum()

        def back(self) -> Any:
            return 2 * self.difference, -2 * self.difference

    loss = HandwrittenClass(Squares, {}, forward="__call__", backward="back")
    generator = np.random.default_rng(0)
    given = [generator.standard_normal((4, 3)) for _ in range(2)]
    report = check_function(loss, lambda x, y: ((x - y) ** 2).sum(), given)
    assert report.passed, report


def test_a_place_that_the_object_lacks_is_named() -> None:
    report = check_function(HandwrittenClass(Affine, {"W": "dw", "b": "db"}), reference, inputs())
    assert report.problem is not None
    assert "after backward the object has no dw" in report.problem
    assert "did you mean 'dW'?" in report.problem
    report = check_function(HandwrittenClass(Affine, {"W": "grads[2]", "b": "db"}), reference, inputs())
    assert report.problem is not None
    assert "no grads[2] (IndexError: list index out of range)" in report.problem


def test_a_method_that_is_missing_is_named() -> None:
    report = check_function(HandwrittenClass(Affine, IN_ATTRIBUTES, backward="back"), reference, inputs())
    assert report.problem is not None
    assert "'Affine' object has no attribute 'back'" in report.problem


@pytest.mark.parametrize("place", ["", "dW[", "f()", "1 + 1", "grads[i]"])
def test_a_place_that_cannot_be_read(place: str) -> None:
    with pytest.raises(ValueError, match="gradients\\['W'\\] is"):
        HandwrittenClass(Affine, {"W": place, "b": "db"})


def test_an_object_is_no_class() -> None:
    make: Any = 3
    with pytest.raises(TypeError, match=r"^make must be a class, or a function that makes an object, not 3$"):
        HandwrittenClass(make, {})


def test_a_class_or_its_object_alone_is_told_what_it_needs() -> None:
    words = r"pass HandwrittenClass\(Affine, gradients\)"
    alone: list[Any] = [Affine, Affine(np.ones((3, 2)), np.ones(2))]
    for function in alone:
        with pytest.raises(TypeError, match=words):
            check_function(function, lambda x: x, [np.ones((4, 3))])
    with pytest.raises(TypeError, match=r"pass a tuple, \(forward, backward\)"):
        check_function([np.sin, np.cos], lambda x: x, [np.ones((4, 3))])  # type: ignore[arg-type] # a mistake


def test_an_argument_without_a_gradient() -> None:
    with pytest.raises(ValueError, match="Affine takes b, and gradients names only W"):
        HandwrittenClass(Affine, {"W": "dW"})


def test_how_to_leave_out_an_argument() -> None:
    words = "make can be a function that sets it: lambda W, b: Affine(W, b, decay=...)"

    class Decaying(Affine):
        def __init__(self, W: Any, b: Any, decay: Any) -> None:
            super().__init__(W, b)
            self.decay = decay

    Decaying.__name__ = "Affine"
    with pytest.raises(ValueError, match="Affine takes decay, and gradients names only W, b; ") as caught:
        HandwrittenClass(Decaying, IN_ATTRIBUTES)
    assert str(caught.value).endswith(words)
    with pytest.raises(ValueError, match="Affine takes W, and gradients names only b") as caught:
        HandwrittenClass(Affine, {"b": "db"})
    assert str(caught.value).endswith("lambda b: Affine(W=..., b=b, scale=...)")


def test_an_attribute_with_another_gradient_than_the_returned_one() -> None:
    class Both(Affine):
        def backward(self, dout: Any) -> Any:
            self.dinputs = super().backward(dout)
            return self.dinputs / 2

    places = {"x": "dinputs", **IN_ATTRIBUTES}
    report = check_function(HandwrittenClass(Both, places), reference, inputs(), only=["retain_graph"])
    assert report.problem == (
        "Both: backward returned another gradient of x than dinputs has; without x in gradients, the returned one is "
        "checked"
    )
    report = check_function(HandwrittenClass(Both, IN_ATTRIBUTES), reference, inputs(), only=["retain_graph"])
    assert "wrong first in Both: grad_x" in str(report)
