"""check and check_tensors, as a notebook calls them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import layers, ops, optim
from nn_manual.errors import ConfigError
from nn_manual.exercises import check, check_tensors
from nn_manual.ops.operation import Differentiated, Tensor, operation


class MyLinear(layers.Linear):
    def backward(self, saved: Any, grad_output: Any) -> Any:  # noqa: ARG002 - what a reader has begun
        return grad_output @ self.param.weight


def test_a_class_of_any_name_is_the_exercise_of_its_base() -> None:
    verdict = check(MyLinear)
    assert not verdict.passed
    assert str(verdict).splitlines() == [
        "Linear in MyLinear, 41 inputs",
        "  output       right",
        "  grad_input   right",
        "  grad_weight  not a number",
        "  grad_bias    not a number",
        "grad_weight is not a number anywhere: it was never written there, or added with",
        "  += to what was there. The memory is not 0 before backward runs. Write into it:",
        "  self.grad.weight[...] = ...",
        "It is wrong on every input.",
    ]
    shown = verdict._repr_html_()
    assert shown.count("<tr") == 5
    assert "✗ Linear: grad_weight is not a number" in shown


def test_right() -> None:
    verdict = check(layers.Tanh, "tanh_layer")
    assert verdict.explanation == ["Tanh: Tanh has no derivative of its own: write it"]

    class Mine(layers.Tanh):
        def derivative(self, saved: Any) -> Any:
            return (1 - saved) * (1 + saved)

    assert check(Mine).passed
    assert "✓ Tanh: right: 2 tensors" in check(Mine)._repr_html_()


def test_an_error_has_its_line() -> None:
    class Mine(layers.Tanh):
        def derivative(self, saved: Any) -> Any:
            return saved.no_such_thing

    line = Mine.derivative.__code__.co_firstlineno + 1
    assert check(Mine).explanation[0] == (
        f"Mine:{line}: AttributeError: 'numpy.ndarray' object has no attribute 'no_such_thing'"
    )


@pytest.mark.usefixtures("unhurried")
def test_an_operation() -> None:
    @operation(analytic=True)
    def square(input: Tensor, /) -> Differentiated:
        return input * input, lambda grad_answer: grad_answer * input

    verdict = check(square)
    assert verdict.explanation[0].startswith("grad_input is wrong. This is the right grad_input without")
    assert check(operation(analytic=True)(ops.tanh.rule), "tanh").passed


def test_what_is_of_no_exercise() -> None:
    with pytest.raises(ConfigError, match="is of no exercise: derive a class from one of nn_manual's"):
        check(dict)


def net() -> dict[str, Any]:
    """Tensors of a small net, and their gradients by hand."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4, 3, generator=generator)
    w = torch.randn(3, 5, generator=generator).requires_grad_()
    b = torch.randn(5, generator=generator).requires_grad_()
    h = x @ w + b
    a = h.tanh()
    for inner in (h, a):
        inner.retain_grad()
    (a * a).mean().backward()  # type: ignore[no-untyped-call]  # torch's
    da = 2 * a.detach() / a.numel()
    dh = (1 - a.detach() ** 2) * da
    return {"w": w, "b": b, "h": h, "a": a, "da": da, "dh": dh, "dw": x.T @ dh, "db": dh.sum(0)}


def test_each_gradient_in_the_order_in_which_a_mistake_spreads() -> None:
    tensors = net()
    w, b, h, a = (tensors[name] for name in "wbha")
    report = check_tensors(b=tensors["db"], w=tensors["dw"].numpy(), h=tensors["dh"], a=tensors["da"])
    assert report.passed
    assert [tensor.name for tensor in report.tensors][:2] == ["a", "h"]
    assert str(report).startswith("4 gradients, each right\na  right\nh  right\n")
    report = check_tensors(b=2 * tensors["db"], w=tensors["dw"], a=tensors["da"], h=-tensors["dh"])
    assert not report.passed
    assert str(report).splitlines()[0] == "2 of 4 gradients wrong, the first is that of h"
    assert [tensor.complaint for tensor in report.tensors if tensor.name == "h"] == [
        "the wrong sign"
    ]
    assert "✗ 2 of 4 gradients wrong" in report._repr_html_()
    assert all(each.grad is not None for each in (w, b, h, a))


def test_a_pair_names_its_tensor() -> None:
    tensors = net()
    assert check_tensors(anything=(tensors["da"], tensors["a"])).passed
    assert check_tensors(anything=(tensors["da"][:1], tensors["a"])).tensors[0].complaint == (
        "shape (1, 5), the reference has (4, 5)"
    )
    assert check_tensors(anything=([1.0], tensors["a"])).tensors[0].complaint == "a list, and no array"


def test_names_without_a_gradient() -> None:
    known = torch.ones(2)
    number = 3  # noqa: F841 - check_tensors looks here for it
    with pytest.raises(ConfigError, match=r"^check_tensors takes gradients by the names"):
        check_tensors()
    with pytest.raises(ConfigError, match=r"^unknown is not there: a name here is that of the torch tensor"):
        check_tensors(unknown=np.ones(2))
    with pytest.raises(ConfigError, match=r"^number is a int: "):
        check_tensors(number=np.ones(2))
    with pytest.raises(ConfigError, match=r"^known has no gradient yet: call loss\.backward\(\)"):
        check_tensors(known=np.ones(2))
    inner = torch.ones(2, requires_grad=True) * known
    assert not inner.retains_grad
    with pytest.raises(ConfigError, match=r"call inner\.retain_grad\(\) before loss\.backward\(\)"):
        check_tensors(inner=np.ones(2))


def test_what_holds_no_numbers_is_not_right() -> None:
    h = torch.randn(2, 3, requires_grad=True)
    (h**2).sum().backward()  # type: ignore[no-untyped-call]
    doubled = (2 * h.detach()).numpy()
    report = check_tensors(h=doubled + 5j)
    assert not report.passed
    assert "complex64, and not an array of numbers" in str(report)

    class Halved(optim.StepLR):
        def lr(self, initial_lr: float, count: int) -> Any:
            return str(initial_lr * self.gamma ** (count // self.step_size))

    said = str(check(Halved))
    assert "lr is a str, and not one number." in said

    class Masked(layers.Tanh):
        def derivative(self, saved: Any) -> Any:
            return np.ma.masked_array(1 - saved**2, mask=True)

    assert "grad_input is a masked array, and not an array of numbers." in str(check(Masked))


def test_the_packages_own_operation_is_no_solution() -> None:
    assert "square is nn_manual's own operation: write it" in str(check(ops.square))
