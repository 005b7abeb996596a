"""Pairs of functions on arrays, in the forms that gradients are returned in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import check_function


def forward(x: Any, W: Any, b: Any) -> Any:
    return x @ W + b, (x, W)


def grads(saved: Any, dout: Any) -> tuple[Any, Any, Any]:
    x, W = saved
    return dout @ W.T, x.T @ dout, dout.sum(0)


def reference(x: Any, weight: Any, bias: Any) -> Any:
    return x @ weight + bias


def inputs() -> list[Any]:
    generator = np.random.default_rng(0)
    return [generator.standard_normal(shape) for shape in ((4, 3), (3, 2), (2,))]


def report_of(backward: Any) -> Any:
    return check_function((forward, backward), reference, inputs(), only=["retain_graph"])


@pytest.mark.parametrize(
    "names",
    [
        ("dx", "dW", "db"),
        ("x", "W", "b"),
        ("grad_x", "grad_W", "grad_b"),
        ("d_x", "d_W", "d_b"),
        ("grad_x", "grad_weight", "grad_bias"),
    ],
)
def test_gradients_in_a_dict(names: tuple[str, ...]) -> None:
    """By the names of forward, or of the reference, whatever their order."""
    report = report_of(lambda saved, dout: dict(reversed(list(zip(names, grads(saved, dout), strict=True)))))
    assert report.passed, report
    wrong = report_of(lambda saved, dout: dict(zip(names, (*grads(saved, dout)[:2], dout[0]), strict=True)))
    assert "wrong first in forward and <lambda>: grad_bias" in str(wrong)


def test_a_gradient_that_the_dict_lacks_is_named() -> None:
    report = report_of(lambda saved, dout: {"dx": grads(saved, dout)[0], "dw": grads(saved, dout)[1]})
    assert report.problem == "forward and <lambda>: backward returned no gradient for W, only 'dx', 'dw'"


def test_two_gradients_for_one_input_are_named() -> None:
    def twice(saved: Any, dout: Any) -> Any:
        found = dict(zip(("dx", "dW", "db"), grads(saved, dout), strict=True))
        return {**found, "grad_W": found["dW"] / 2}

    report = report_of(twice)
    assert report.problem == "forward and twice: backward returned 2 gradients for W: 'grad_W', 'dW'"


@pytest.mark.parametrize("prefix", ["d", "grad_", ""])
def test_an_input_that_is_called_as_the_gradient_of_another(prefix: str) -> None:
    def back(saved: Any, dout: Any) -> Any:
        t, dt = saved
        return {f"{prefix}dt": dout * t, f"{prefix}t": dout * 2 * dt}

    given = [np.arange(1.0, 5), np.arange(3.0, 7)]
    pair = (lambda t, dt: (t * dt, (t, dt)), back)
    report = check_function(pair, lambda t, dt: t * dt, given, only=["retain_graph"])
    assert {failure.name.partition(",")[0] for failure in report.failures} == {"grad_t"}


def test_gradients_have_the_names_of_forward_where_the_reference_has_others() -> None:
    """`w` of forward is `x` of the reference."""


    def back(saved: Any, dout: Any) -> Any:
        w, x = saved
        return {"dx": w * w * dout, "dw": 2 * w * x * dout}

    pair = (lambda w, x: (w * w * x, (w, x)), back)
    report = check_function(pair, lambda x, w: x * x * w, [inputs()[0], inputs()[0] + 1], only=["retain_graph"])
    assert report.agrees, report


def test_gradients_in_a_list() -> None:
    assert report_of(lambda saved, dout: list(grads(saved, dout))).passed


def test_too_few_gradients() -> None:
    problem = report_of(lambda saved, dout: grads(saved, dout)[:2]).problem
    assert problem is not None
    assert problem == (
        "forward and <lambda>: backward returned 2 gradients instead of 3: grad_x, grad_weight, grad_bias; an input "
        "without one is held fixed: check lambda x, W: forward(x, W, b)"
    )


def test_a_gradient_for_each_input_integers_too() -> None:
    """As courses return them, with None for the labels."""

    def lookup(indices: Any, table: Any) -> Any:
        return table[indices], (indices, table.shape)

    def back(saved: Any, dout: Any) -> Any:
        indices, shape = saved
        grad = np.zeros(shape)
        np.add.at(grad, indices, dout)
        return None, grad

    given = [np.array([0, 2, 2]), np.random.default_rng(0).standard_normal((3, 2))]
    report = check_function((lookup, back), lambda indices, table: table[indices], given, only=["retain_graph"])
    assert report.passed, report


def test_an_output_that_the_reference_does_not_differentiate_gets_no_gradient() -> None:
    """In no row: a mask that is returned beside the values has none."""

    def masked(x: Any) -> Any:
        mask = (x > 0).astype(x.dtype)
        return x * mask, mask, mask

    def definition(x: torch.Tensor) -> Any:
        mask = (x > 0).to(x)
        return x * mask, mask

    report = check_function((masked, lambda dout, cache: dout * cache), definition, inputs()[:1], skip=["cost"])
    assert report.passed, report

    def into_upstream(dout: Any, cache: Any) -> Any:
        dout *= cache
        return dout

    report = check_function((masked, into_upstream), definition, inputs()[:1], only=["writes"])
    assert [row.name for row in report.wrong] == ["writes grad_output"]
    assert f" at {__file__}:" in report.wrong[0].note


def cross_entropy(x: Any, y: Any) -> Any:
    """A loss that returns its gradient beside it, as courses write it."""
    shifted = x - x.max(1, keepdims=True)
    probabilities = np.exp(shifted) / np.exp(shifted).sum(1, keepdims=True)
    rows = np.arange(len(x))
    grad = probabilities.copy()
    grad[rows, y] -= 1
    return -np.log(probabilities[rows, y]).mean(), grad / len(x)


def classes() -> list[Any]:
    return [np.random.default_rng(0).standard_normal((4, 3)), np.array([0, 1, 2, 1])]


def test_a_loss_whose_backward_takes_no_upstream_gradient() -> None:
    rows = ["retain_graph", "grad_output large", "two forwards"]
    loss = torch.nn.functional.cross_entropy
    report = check_function((cross_entropy, lambda grad: grad), loss, classes(), only=rows)
    assert report.passed, report
    wrong = check_function((cross_entropy, lambda grad: grad * 4), loss, classes(), only=rows)
    assert "wrong first in cross_entropy and <lambda>: grad_input," in str(wrong)
    assert "4 times the reference" in str(wrong)


def test_without_an_upstream_gradient_the_output_must_be_a_scalar() -> None:
    report = check_function((forward, lambda saved: grads(saved, 1)), reference, inputs(), only=["retain_graph"])
    assert report.problem is not None
    assert "backward takes no gradient of the output, and the output is no scalar" in report.problem


def test_numpy_code_that_makes_float64_of_everything_is_judged_in_float64() -> None:
    given = [array.astype("float32") for array in inputs()]

    def wide(x: Any, W: Any, b: Any) -> Any:
        return x.astype("float64") @ W + b, (x.astype("float64"), W.astype("float64"))

    report = check_function((wide, grads), reference, given)
    assert report.passed, report
    assert "NumPy makes float64 of its float32 inputs, so it is judged in float64" in " ".join(str(report).split())
    assert {comparison.tolerance for comparison in report.comparisons} == {1e-12}
    asked = check_function((wide, grads), reference, given, dtypes=["float32"], only=["retain_graph"])
    assert asked.problem == "wide and grads: output is float64, the reference's float32"
    narrow = check_function((forward, grads), reference, given, only=["retain_graph"])
    assert {comparison.tolerance for comparison in narrow.comparisons} == {1e-5}


@pytest.mark.parametrize("saved_first", [True, False])
def test_the_gradients_of_several_outputs_may_be_one_tuple(saved_first: bool) -> None:
    def last(grads: Any, saved: Any) -> Any:
        grad_sum, grad_product = grads
        x, y = saved
        return grad_sum + grad_product * y, grad_sum + grad_product * x

    def first(saved: Any, grads: Any) -> Any:
        return last(grads, saved)

    def wrong(grads: Any, saved: Any) -> Any:
        return last((grads[0], 2 * grads[1]), saved)

    x, y = np.random.default_rng(0).standard_normal((2, 3, 4))
    for backward, agrees in ((first if saved_first else last, True), (wrong, False)):
        pair = (lambda x, y: (x + y, x * y, (x, y)), backward)
        report = check_function(pair, lambda x, y: (x + y, x * y), [x, y], only=["kinds tied", "two forwards"])
        assert report.passed == agrees, report
