"""The row of second derivatives: which functions are differentiable once, and which lose one silently."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from products import Cube
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from nn_manual import check_function


class SaysOnce(Cube):
    @staticmethod
    @once_differentiable
    def backward(context: Any, grad: Any) -> Any:
        return Cube.backward(context, grad)


class InNumPy(Cube):
    @staticmethod
    def backward(context: Any, grad: Any) -> Any:
        (x,) = context.saved_tensors
        return torch.from_numpy(3 * x.numpy() ** 2 * grad.numpy())


class Detached(Cube):
    """As torch's pages do it for code that autograd can't follow."""

    @staticmethod
    def backward(context: Any, grad: Any) -> Any:
        (x,) = context.saved_tensors
        return 3 * x.detach() ** 2 * grad.detach()


class CutOff(Cube):
    """Connected to the gradient of the output, not to the input."""

    @staticmethod
    def backward(context: Any, grad: Any) -> Any:
        (x,) = context.saved_tensors
        return 3 * x.detach() ** 2 * grad


class Doubled(Cube):
    """The first derivative is right, the second isn't: the factor is constant there."""

    @staticmethod
    def backward(context: Any, grad: Any) -> Any:
        (x,) = context.saved_tensors
        return 3 * x * x.detach() * grad


class Rounds(Function):
    @staticmethod
    def forward(_: Any, x: Any) -> Any:
        return x.round()

    @staticmethod
    def backward(_: Any, grad: Any) -> Any:
        return grad


X = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def row_of(function: Any, reference: Any = lambda x: x**3, *inputs: torch.Tensor) -> tuple[str, str]:
    report = check_function(function, reference, inputs or [X], only=["twice"])
    assert report.agrees, report
    (row,) = [row for row in report.rows if row.family == "twice"]
    return row.verdict, row.note


@pytest.mark.parametrize(
    ("function", "note"),
    [
        (Cube, ""),
        (SaysOnce, "differentiable once, and says so"),
        (InNumPy, "differentiable once: backward with create_graph=True raised RuntimeError: Can't call numpy() on"),
        (Detached, "differentiable once: no gradient of its backward is connected to anything"),
    ],
)
def test_right(function: Any, note: str) -> None:
    verdict, found = row_of(function)
    assert verdict == "right"
    assert found.startswith(note)
    assert bool(found) == bool(note)


def test_a_straight_through_estimator() -> None:
    assert row_of(Rounds, lambda x: x + (x.round() - x).detach()) == ("right", "")


def test_torchs_own_without_a_second_derivative() -> None:
    def loss(x: Any) -> Any:
        return torch.nn.functional.ctc_loss(x.log_softmax(-1), LABELS, torch.tensor([6]), torch.tensor([2]))

    x = torch.randn(6, 1, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    (row,) = [row for row in check_function(loss, loss, [x], only=["twice"]).rows if row.family == "twice"]
    assert row.verdict == "right"
    assert "is not implemented" in row.note


LABELS = torch.tensor([[1, 2]])


@pytest.mark.parametrize("function", [CutOff, Doubled])
def test_a_second_derivative_that_is_lost_in_silence(function: Any) -> None:
    verdict, note = row_of(function)
    assert verdict == "WRONG"
    assert note.startswith("second derivatives: grad_x, random upstream")
    assert "once_differentiable above backward" in note


class SlopeOfZero(Function):
    """relu whose slope at 0 is 1: torch's is 0."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(context: Any, grad: Any) -> Any:
        (x,) = context.saved_tensors
        return grad * (x >= 0)


class Bent(SlopeOfZero):
    """Its second derivatives are wrong, also beside the kink: the slope by which grad is multiplied is cut off."""

    @staticmethod
    def backward(context: Any, grad: Any) -> Any:
        (x,) = context.saved_tensors
        return grad * (x >= 0) + 0 * x + 0.5 * (grad - grad.detach()) * (x > 0)


AT_A_KINK = torch.tensor([[-2.0, 0.0, -0.5], [1.0, 0.5, 0.0]], dtype=torch.float64)


def test_another_slope_at_a_kink_has_other_second_derivatives() -> None:
    assert row_of(SlopeOfZero, torch.relu, AT_A_KINK) == ("right", "compared beside a kink of the reference")


def test_beside_the_kink_they_are_compared() -> None:
    verdict, note = row_of(Bent, torch.relu, AT_A_KINK)
    assert verdict == "WRONG"
    assert "1.5 times the reference" in note


def test_zeros_of_torch_without_memory_are_zeros() -> None:
    class Distance(Function):
        @staticmethod
        def forward(context: Any, x: Any, y: Any) -> Any:
            context.save_for_backward(x, y)
            return (x - y).abs().mean()

        @staticmethod
        def backward(context: Any, grad: Any) -> Any:
            x, y = context.saved_tensors
            slope = grad * torch.where(x >= y, 1.0, -1.0).to(x.dtype) / x.numel()
            return slope, -slope

    y = torch.tensor([[-2.0, 1.0, 3.0], [1.0, 0.0, 0.0]], dtype=torch.float64)
    verdict, note = row_of(Distance, torch.nn.functional.l1_loss, AT_A_KINK, y)
    assert verdict == "right", note
