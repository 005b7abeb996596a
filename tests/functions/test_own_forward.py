"""A function without a reference, beside differences of its own forward."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from products import Cube
from slow_cases import slow

from nn_manual import HandwrittenClass, check_function
from nn_manual.functions.forward_slopes import MOST_SLOPES

ROWS = ["retain_graph", "kinds tied", "inputs transposed"]


def affine(x: Any, w: Any, b: Any) -> Any:
    return np.maximum(x @ w + b, 0), (x, w, x @ w + b)


def affine_back(saved: Any, upstream: Any) -> Any:
    x, w, z = saved
    upstream = upstream * (z > 0)
    return upstream @ w.T, x.T @ upstream, upstream.sum(0)


def inputs() -> list[Any]:
    generator = np.random.default_rng(0)
    return [generator.standard_normal(shape) for shape in ((4, 3), (3, 2), (2,))]


@pytest.mark.slow
def test_a_right_pair_passes_and_the_report_says_what_was_shown() -> None:
    """It alone has a right pair without a reference."""
    report = check_function((affine, affine_back), None, inputs())
    assert report.passed, report
    assert str(report).startswith("7 tensors fit its own forward; worst ")
    assert "only that forward and backward fit was shown" in " ".join(str(report).split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (lambda grads: (grads[0], grads[1], grads[2] / 4), "grad_b"),
        (lambda grads: (grads[0], grads[1] * 1.00001, grads[2]), "grad_w"),
        (lambda grads: (np.zeros_like(grads[0]), *grads[1:]), "grad_x"),
    ],
)
def test_a_wrong_gradient_is_named(wrong: Any, name: str) -> None:
    """It alone has wrong pairs without a reference."""
    report = check_function((affine, lambda s, g: wrong(affine_back(s, g))), None, inputs(), only=["retain_graph"])
    assert not report.agrees
    assert f": {name}," in str(report)
    assert "differences give" in str(report)


def drawn(generator: torch.Generator, N: int, D: int) -> list[Any]:
    return [torch.randn(N, D, generator=generator)]


def test_float32_inputs_are_computed_in_float64_and_large_ones_along_directions() -> None:
    sizes = {"N": 3, "D": 4 * MOST_SLOPES}
    report = check_function(Cube, None, drawn, sizes=sizes, only=["full size", "sizes N=2", "sizes N=0"])
    assert report.passed, report
    assert [row.verdict for row in report.rows if row.note != "as asked for"] == ["right"] * 3


def test_one_wrong_element_among_many_is_seen() -> None:
    class Wrong(Cube):
        @staticmethod
        def backward(context: Any, grad: Any) -> Any:
            (x,) = context.saved_tensors
            wrong = 3 * grad * x**2
            if x.numel() > 4 * MOST_SLOPES:
                wrong[1, 7] *= 1.01
            return wrong

    report = check_function(Wrong, None, drawn, sizes={"N": 3, "D": 4 * MOST_SLOPES}, only=["full size"])
    assert not report.passed
    assert [row.name for row in report.wrong] == ["full size float64"]


def test_a_class() -> None:
    class Scale:
        def __init__(self, factor: Any) -> None:
            self.factor = factor

        def forward(self, x: Any) -> Any:
            self.x = x
            return self.factor * x

        def backward(self, dout: Any) -> Any:
            self.grad = (dout * self.x).sum()
            return dout * self.factor

    given = [np.random.default_rng(0).standard_normal((4, 3)), np.array(2.0)]
    report = check_function(HandwrittenClass(Scale, {"factor": "grad"}), None, given, only=ROWS)
    assert report.passed, report
    names = [comparison.name for comparison in report.comparisons]
    assert names[:3] == ["output", "grad_x, random upstream", "grad_factor, random upstream"]


def test_a_gradient_that_is_zero_by_cancellation_is_right() -> None:
    """A softmax summed is 1: what differences and backward have is rounding."""

    def softmax_sum(x: Any) -> Any:
        p = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
        return (p, p.sum(-1)), p

    def back(p: Any, grad_p: Any, grad_sum: Any) -> Any:
        grad = grad_p + grad_sum[..., None]
        return p * (grad - (p * grad).sum(-1, keepdims=True))

    report = check_function((softmax_sum, back), None, [inputs()[0]], only=["retain_graph"])
    assert report.agrees, report


def test_a_forward_in_a_smaller_dtype_needs_a_reference() -> None:
    def single(x: Any) -> Any:
        return np.float32(x), None

    def inside(x: Any) -> Any:
        return np.float64(np.float32(x) ** 2), x

    with pytest.raises(ValueError, match="without a reference, forward must compute in float64: output is float32"):
        check_function((single, lambda _, grad: grad), None, [inputs()[0]])
    with pytest.raises(ValueError, match="forward must compute in float64: here it has too few digits"):
        check_function((inside, lambda x, grad: 2 * x * grad), None, [inputs()[0]])


def test_a_forward_that_a_scale_leaves_as_it_is() -> None:
    """The moves that try its digits scale each row of this shape: what changes is rounding."""

    def normalize(x: Any) -> Any:
        norm = np.sqrt((x * x).sum(-1, keepdims=True))
        return x / norm, (x / norm, norm)

    def back(saved: Any, grad: Any) -> Any:
        direction, norm = saved
        return (grad - direction * (direction * grad).sum(-1, keepdims=True)) / norm

    x = np.random.default_rng(0).standard_normal((4, 3))
    report = check_function((normalize, back), None, [x], only=["retain_graph"])
    assert report.agrees, report


def test_what_needs_a_reference() -> None:
    with pytest.raises(ValueError, match="without a reference, everything is computed in float64"):
        check_function(Cube, None, [torch.randn(3)], dtypes=["float32"])
    with pytest.raises(ValueError, match="Linear is a module: its reference must be one"):
        check_function(torch.nn.Linear(2, 2), None, [torch.randn(3, 2)])


def ascending(x: Any) -> Any:
    order = np.argsort(x, -1, kind="stable")
    return np.take_along_axis(x, order, -1), order


def to_their_places(order: Any, upstream: Any) -> Any:
    grad = np.zeros_like(upstream)
    np.put_along_axis(grad, order, upstream, -1)
    return grad


def with_ties(of_equal: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """The gradients of the first three entries, which are equal, become what this makes of them."""

    def backward(order: Any, upstream: Any) -> Any:
        grad = to_their_places(order, upstream)
        grad[:, :3] = of_equal(grad[:, :3])
        return grad

    return backward


@pytest.mark.slow
@pytest.mark.parametrize(
    ("of_equal", "agrees"),
    [
        (lambda grad: grad, True),
        (lambda grad: grad[:, ::-1], True),
        (lambda grad: grad.mean(-1, keepdims=True), True),
        (lambda grad: 1.001 * grad, False),
        (lambda grad: np.maximum(grad.max(-1, keepdims=True), grad), False),
        # The sum is right, but the largest counts twice.
        (lambda grad: np.stack([grad.max(-1)] * 2 + [grad.sum(-1) - 2 * grad.max(-1)], -1), False),
    ],
)
def test_entries_that_tie_in_a_sort(of_equal: Any, agrees: bool) -> None:
    """Each may have the slope of any of their places, but all together have these slopes once each.
    It alone sorts equal entries without a reference.
    """
    tied = np.array([[1.0, 1.0, 1.0, 0.0, 2.0]])
    report = check_function((ascending, with_ties(of_equal)), None, [tied], only=["retain_graph"])
    assert report.agrees == agrees, report


@pytest.mark.slow
@pytest.mark.parametrize("is_sum", [False, True])
def test_six_entries_that_tie_may_be_sorted_in_any_order(is_sum: bool) -> None:
    """There are 720 orders of their slopes. A sort that isn't stable takes any of them. It alone has so many ties."""

    def backward(order: Any, upstream: Any) -> Any:
        grad = to_their_places(order, upstream)[:, [3, 0, 5, 1, 4, 2]]
        return grad + np.array([0.1, -0.1, 0, 0, 0, 0]) if is_sum else grad

    report = check_function((ascending, backward), None, [np.zeros((1, 6))], only=["retain_graph"])
    assert report.agrees != is_sum, report


@pytest.mark.slow
def test_a_sort_is_right_on_all_kinds_that_tie_or_lie_close() -> None:
    rows = [f"kinds {kind}" for kind in ("tied", "zero", "tiny", "shifted")]
    report = check_function((ascending, to_their_places), None, [inputs()[0]], only=rows)
    assert report.passed, report
    assert [row.verdict for row in report.rows if row.name in rows] == ["right"] * 4


def jumping(x: Any) -> Any:
    return x * x + (x > 0), (x,)


def jumping_back(saved: Any, upstream: Any, slope_at_1: float = 2.0) -> Any:
    return np.where(saved[0] == 1, slope_at_1, 2 * saved[0]) * upstream


def test_at_a_jump_nothing_is_judged_and_elsewhere_everything() -> None:
    given = [np.array([0.0, 1.0, -2.0])]
    report = check_function((jumping, jumping_back), None, given, only=["retain_graph"])
    assert report.agrees
    assert not report.passed
    assert report.vacuous == (
        "jumping and jumping_back: differences can't judge grad_x everywhere, their error is 8 times its size; does "
        "forward jump there? a reference could judge it",
    )
    wrong = check_function((jumping, partial(jumping_back, slope_at_1=2.1)), None, given, only=["retain_graph"])
    assert [(failure.name, failure.index) for failure in wrong.failures] == [
        ("grad_x, random upstream", (1,)),
        ("grad_x, negative upstream", (1,)),
    ]
    # In a row that draws such values, nothing is said of what may be wrong.
    kinds = check_function((jumping, jumping_back), None, [inputs()[0]], only=["kinds tied"])
    (row,) = [row for row in kinds.skipped if row.name == "kinds tied"]
    assert row.note == report.vacuous[0]


def test_a_forward_may_raise_close_to_the_inputs() -> None:
    def logarithm(x: Any) -> Any:
        if (x <= 0).any():
            raise ArithmeticError
        return np.log(x), x

    given = [np.array([0.005, 1.0])]
    report = check_function((logarithm, lambda x, grad: grad / x), None, given, only=["retain_graph"])
    assert report.passed, report


@pytest.mark.parametrize("size", [0.5, 1e-9])
def test_a_random_forward_is_called_so(size: float) -> None:
    def noisy(x: Any) -> Any:
        return x + size * np.random.standard_normal(x.shape), None

    report = check_function((noisy, lambda _, grad: grad), None, [inputs()[0]], only=["retain_graph", "two forwards"])
    assert report.problem == (
        "noisy and <lambda>: output differs when forward runs twice on the same inputs; "
        "if it is random by design, give it a seed or a mask"
    )
    assert report.wrong == ()


@pytest.mark.slow
def test_the_sum_of_entries_that_tie_is_said_to_be_a_sum() -> None:
    """A maximum that gives each of four equal entries the whole gradient: no slope of one of them is known.
    It alone gives every entry that ties the whole gradient.
    """

    def backward(saved: Any, grad_output: Any) -> Any:
        return (saved == saved.max(-1, keepdims=True)) * grad_output[:, None]

    x = np.random.default_rng(0).standard_normal((3, 4))
    report = check_function((lambda x: (x.max(-1), x), backward), None, [x], only=["kinds zero"])
    (row,) = report.wrong
    words = "at ties and kinks, only the sum of 12 entries can be measured: it is -9.80947, differences give -2.45237"
    assert row.note.endswith(f"{words}, of which each entry has an equal part here")


@pytest.mark.parametrize(
    ("of_equal", "agrees"),
    [slow((1.0, 0.0), True), slow((0.25, 0.75), True), ((1.0, 1.0), False), slow((0.0, 0.0), False)],
)
def test_entries_of_two_inputs_that_tie_share_one_gradient(of_equal: tuple[float, float], agrees: bool) -> None:
    """maximum(x, y): each of two equal numbers has slopes from 0 to 1, both together have 1."""

    def backward(saved: Any, grad_output: Any) -> Any:
        x, y = saved
        return tuple(grad_output * np.where(x == y, of_equal[i], [x > y, y > x][i]) for i in range(2))

    x, y = np.random.default_rng(0).standard_normal((2, 1, 3))
    pair = (lambda x, y: (np.maximum(x, y), (x, y)), backward)
    assert (not check_function(pair, None, [x, y], only=["kinds tied"]).wrong) == agrees


@pytest.mark.slow
def test_two_inputs_at_kinks_that_do_not_tie() -> None:
    """relu(x) - relu(-y): at zero, 0 is a slope of each, though both together have 1 and no other. It alone has such
    kinks.
    """

    def backward(saved: Any, grad_output: Any) -> Any:
        x, y = saved
        return grad_output * (x > 0), grad_output * (y < 0)

    x, y = np.random.default_rng(0).standard_normal((2, 1, 2))
    pair = (lambda x, y: (np.maximum(x, 0) - np.maximum(-y, 0), (x, y)), backward)
    assert not check_function(pair, None, [x, y], only=["kinds zero"]).wrong


@pytest.mark.parametrize(
    ("returned", "words"), [(lambda x: 2 * x, "ndarray"), (lambda _: None, "None"), (lambda x: float(x.sum()), "float")]
)
def test_a_forward_that_saves_nothing_ends_in_a_report(returned: Any, words: str) -> None:
    report = check_function((returned, lambda dout, _: 2 * dout), None, [inputs()[0]])
    assert report.problem == f"<lambda>: forward returned {words}: it must return (output, saved)"
    assert report.rows == ()


def test_what_forward_returned_is_not_said_of_a_reference() -> None:
    with pytest.raises(ValueError, match=r"^<lambda> returned str: it must return a tensor"):
        check_function((lambda x: ("a", x), lambda dout, _: dout), None, [inputs()[0]])


def test_an_error_at_drawn_inputs_is_said_of_forward() -> None:
    def backward(saved: Any, grad_output: Any) -> Any:
        return -saved.T @ grad_output @ saved.T

    square = np.random.default_rng(0).standard_normal((3, 3))
    report = check_function((lambda x: (np.linalg.inv(x),) * 2, backward), None, [square], only=["kinds zero"])
    row = next(row for row in report.rows if row.name == "kinds zero")
    assert row.note.startswith("forward raised LinAlgError: Singular matrix")


def test_what_differences_give_is_said_of_them() -> None:
    x = inputs()[0]
    report = check_function((lambda x: (x**2, x), lambda dout, x: dout * x**3), None, [x], only=["kinds zero"])
    assert "differences give" in report.diagnosis
    assert "the reference has" not in str(report)
