"""check_function: right and wrong code of every kind that it takes, and what it says about each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import check_function
from nn_manual.arrays import Array
from nn_manual.functions.battery.families import FAMILIES
from nn_manual.functions.callables import Function
from nn_manual.functions.function_report import FunctionReport


class Square(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(context: Any, grad_output: torch.Tensor) -> torch.Tensor:
        (x,) = context.saved_tensors
        return slope(x, grad_output)


def slope(x: torch.Tensor, grad_output: torch.Tensor) -> torch.Tensor:
    return 2 * x * grad_output


def square(x: torch.Tensor) -> torch.Tensor:
    return x**2


def values(*shape: int, dtype: str = "float64", seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def product(x: Any, weight: Any) -> Any:
    return x @ weight


def forward(x: Any, weight: Any) -> tuple[Any, Any]:
    return x @ weight, (x, weight)


def backward(saved: Any, grad_output: Any) -> tuple[Any, Any]:
    x, weight = saved
    return grad_output @ weight.T, x.T @ grad_output


def check_pair(backward: Function, forward: Function = forward) -> FunctionReport:
    return check_function((forward, backward), product, [values(4, 3), values(3, 3)])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", [Square, Square.apply, lambda x: x * x])
def test_a_right_function_passes(function: Function, dtype: str) -> None:
    report = check_function(function, square, [torch.from_numpy(values(4, 3, dtype=dtype))])
    assert report.passed
    assert [c.name for c in report.comparisons] == ["output", "grad_x, random upstream", "grad_x, negative upstream"]
    assert {c.tolerance for c in report.comparisons} == {{"float32": 1e-5, "float64": 1e-12}[dtype]}


@pytest.mark.parametrize("as_input", [np.asarray, torch.from_numpy])
def test_a_right_pair_passes_on_arrays_and_on_tensors(as_input: Function) -> None:
    report = check_function((forward, backward), product, [as_input(values(4, 3)), as_input(values(3, 3))])
    assert report.passed
    assert len(report.comparisons) == 5


@pytest.mark.parametrize(("error", "dtype"), [(1e-4, "float32"), (1e-10, "float64")])
def test_a_small_factor_is_caught(error: float, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "slope", lambda x, grad_output: 2 * (1 + error) * x * grad_output)
    report = check_function(Square, square, [values(4, 3, dtype=dtype)])
    assert [c.name for c in report.failures] == ["grad_x, random upstream", "grad_x, negative upstream"]
    assert report.failures[0].relative == pytest.approx(error, rel=0.05)  # float32 rounds by 1e-7, of an error of 1e-4


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda x, grad_output: 4 * x * grad_output, "2 times the reference"),
        (lambda x, grad_output: -2 * x * grad_output, "sign"),
        (lambda x, grad_output: torch.zeros_like(x * grad_output), "zero everywhere"),
        (lambda x, grad_output: 2 * x * grad_output.abs(), "7 of 9 positions: (0, 0), (0, 1), (0, 2), (1, 2)"),
        (lambda x, _: 2 * x, "the gradient of the output is ignored"),
    ],
    ids=["factor", "sign", "zero", "absolute", "no upstream"],
)
def test_a_wrong_gradient_is_described(wrong: Function, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "slope", wrong)
    report = check_function(Square, square, [values(4, 3)], skip=[*FAMILIES])
    assert str(report).startswith("gradient check failed: wrong first in Square: grad_x, random upstream")
    assert words in report.diagnosis


def test_each_input_is_compared_by_its_name() -> None:
    def transposed(saved: Any, grad_output: Any) -> tuple[Any, Any]:
        grad_x, grad_weight = backward(saved, grad_output)
        return grad_x, grad_weight.T

    report = check_pair(transposed)
    assert {c.name.split(",")[0] for c in report.failures} == {"grad_weight"}
    assert report.failures[0].layer == "forward and transposed"
    assert "transpose" in report.diagnosis


def test_a_forward_without_a_context_has_all_the_names() -> None:
    """torch's newer form of a Function gives the context to setup_context."""

    class Multiply(torch.autograd.Function):
        @staticmethod
        def forward(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            return x * weight

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:  # noqa: ARG004 - torch passes it by its name
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, grad_output: torch.Tensor) -> Any:
            x, weight = ctx.saved_tensors
            return 2 * grad_output * weight, grad_output * x

    inputs = [torch.randn(4, 5), torch.randn(4, 5)]
    report = check_function(Multiply, torch.mul, inputs, only=["settings"])
    assert str(report).startswith("gradient check failed: wrong first in Multiply: grad_x, random upstream")


def test_every_output_and_other_arguments() -> None:
    def both(x: torch.Tensor, dim: int, index: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return x.amax(dim), x.argmax(dim), x[index]

    def wrong(x: torch.Tensor, dim: int, index: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return x.amax(dim), x.argmin(dim), x[index]

    inputs = [values(4, 3), 1, torch.tensor([0, 0, 2])]
    report = check_function(both, both, inputs)
    assert report.passed
    assert [c.name for c in report.comparisons][:4] == ["output 0", "output 1", "output 2", "grad_x, random upstream"]
    assert [c.name for c in check_function(wrong, both, inputs, skip=[*FAMILIES]).failures] == ["output 1"]


def test_an_input_that_nothing_depends_on_is_left_out() -> None:
    report = check_function(lambda x, _: x**2, lambda x, unused: x**2 + 0 * len(unused), [values(3), values(2)])
    assert report.passed
    assert {c.name for c in report.comparisons} == {"output", "grad_x, random upstream", "grad_x, negative upstream"}


def test_a_gradient_that_is_missing_is_zero() -> None:
    inputs = [values(3), values(3)]
    report = check_function(lambda x, b: x + b.detach(), lambda x, b: x + b, inputs, skip=[*FAMILIES])
    assert report.failures[0].name == "grad_b, random upstream"
    assert "not passed on" in report.diagnosis


def test_a_gradient_of_zero_proves_nothing() -> None:
    report = check_function(torch.relu, torch.relu, [-np.abs(values(4, 3))])
    assert report.agrees
    assert not report.passed
    assert report.vacuous == ("relu: output is zero everywhere", "relu: grad_input_0 is zero everywhere")


def _writes(saved: Any, grad_output: Any) -> tuple[Any, Any]:
    grads = backward(saved, grad_output)
    grad_output *= 2
    return grads


def _writes_input(x: Any, weight: Any) -> tuple[Any, Any]:
    returned = forward(x.copy(), weight)
    x += 1
    return returned


@pytest.mark.parametrize(
    ("wrong_backward", "wrong_forward", "problem"),
    [
        (
            lambda s, g: backward(s, g)[0],
            forward,
            "backward returned 1 gradient instead of 2: grad_x, grad_weight; an input without one is held fixed: check "
            "lambda x: forward(x, weight)",
        ),
        (lambda s, g: (backward(s, g)[0][:2], g), forward, "grad_x, random upstream: "),
        (lambda s, g: tuple(a.astype("float32") for a in backward(s, g)), forward, "float32, the reference's float64"),
        (lambda s, g: 1 / 0, forward, "backward raised ZeroDivisionError: division by zero"),  # noqa: ARG005
        (backward, lambda x, w: x @ w, "forward returned ndarray: it must return (output, saved)"),
        (backward, lambda x, w: ((x, w), 0), "2 outputs, the reference has 1"),
        (backward, lambda x, w: ((x @ w)[:, :2], 0), "output: "),
    ],
)
def test_a_function_that_misbehaves_is_named(wrong_backward: Function, wrong_forward: Function, problem: str) -> None:
    report = check_pair(wrong_backward, wrong_forward)
    assert not report.passed
    assert problem in (report.problem or "")


@pytest.mark.parametrize(
    ("wrong_backward", "wrong_forward", "row", "words"),
    [
        (_writes, forward, "writes grad_output", "backward wrote into the gradient of its output"),
        (backward, _writes_input, "writes inputs", "forward wrote into x"),
    ],
)
def test_who_writes_where_it_must_not_is_named_with_the_line(
    wrong_backward: Function, wrong_forward: Function, row: str, words: str
) -> None:
    """All values are judged all the same, and no other row is wrong."""
    report = check_pair(wrong_backward, wrong_forward)
    assert report.agrees
    assert not report.passed
    assert [each.name for each in report.wrong] == [row]
    assert report.wrong[0].note.startswith(f"{words} at {__file__}:")


def test_an_output_outside_of_autograd_is_named() -> None:
    report = check_function(lambda x: (x**2).detach(), square, [values(3)])
    assert "output carries no gradient" in (report.problem or "")


def test_an_empty_output_is_named() -> None:
    assert "all that was returned is empty" in (check_function(square, square, [values(0, 3)]).problem or "")


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ([np.arange(3)], ValueError, "none of the inputs is a floating"),
        ([torch.ones(3).to(torch.float8_e4m3fn)], TypeError, "x is float8_e4m3fn: floating inputs must be"),
    ],
)
def test_bad_inputs(inputs: list[Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        check_function(square, square, inputs)


def test_a_reference_without_gradients() -> None:
    with pytest.raises(ValueError, match="no output of the reference depends"):
        check_function(square, lambda x: x.detach(), [values(3)])


@pytest.mark.parametrize(
    ("returned", "words"),
    [(None, "None"), ([], "nothing"), ((None, "text"), "None and str"), ({"loss": None}, "None")],
)
def test_a_reference_that_returns_no_tensor(returned: Any, words: str) -> None:
    with pytest.raises(ValueError, match="the reference returned") as caught:
        check_function(square, lambda x: returned, [values(3)])  # noqa: ARG005
    assert str(caught.value) == f"the reference returned {words}: it must return a tensor, or several"


@pytest.mark.parametrize(("seed", "shown"), [("x", "'x'"), (-1, "-1"), (2**63, "9223372036854775808"), (0.5, "0.5")])
def test_what_is_no_seed(seed: Any, shown: str) -> None:
    with pytest.raises(ValueError, match="seed") as caught:
        check_function(square, square, [values(3)], seed=seed)
    assert str(caught.value) == f"seed must be a whole number from 0 to 2**63 - 1, not {shown}"


def test_the_forward_of_a_class_is_not_the_function() -> None:
    with pytest.raises(TypeError, match="forward") as caught:
        check_function(Square.forward, square, [values(3)])
    assert str(caught.value) == "Square.forward takes a context: pass the class, Square"


def test_inputs_stay_and_a_seed_gives_the_same_numbers() -> None:
    x = torch.from_numpy(values(4, 3))
    first, again = (check_function(Square, square, [x], seed=3, skip=["cost"]) for _ in range(2))
    assert str(first) == str(again)
    assert not x.requires_grad
    assert np.array_equal(x.numpy(), values(4, 3))


@pytest.mark.parametrize("reference", [lambda x: x.nothing, lambda x, y: x + y])
def test_a_reference_that_raises_is_named_as_the_one_that_raised(reference: Any) -> None:
    with pytest.raises((TypeError, AttributeError)) as caught:
        check_function(lambda x: 2 * x, reference, [np.ones(2)])
    assert caught.value.__notes__ == ["raised by the reference"]


def test_only_some_rows() -> None:
    """All others are left out as if they were asked to be; the values are compared, and `skip` counts, too."""
    x = torch.randn(3, 4, dtype=torch.float64)
    report = check_function(Square, square, [x], only=["inputs", "kinds tied"], skip=["inputs expanded"])
    ran = {row.name for row in report.rows if row.verdict == "right"}
    assert report.passed
    assert "kinds tied" in ran
    assert {name.partition(" ")[0] for name in ran} == {"inputs", "kinds"}
    assert {name for name in ran if name.startswith("kinds")} == {"kinds tied"}
    assert "inputs expanded" not in ran
    assert report.comparisons
    wrong = (lambda x: (x * x, x), lambda saved, grad: [3 * saved * grad])
    assert not check_function(wrong, square, [x], only=["cost"]).passed
