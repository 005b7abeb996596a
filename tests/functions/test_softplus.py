"""torch's softplus beside an exact one: they differ above 20, by 2e-9 at most."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from slow_cases import slow
from torch.nn.functional import softplus

from nn_manual.arrays import Array
from nn_manual.functions.check_function import check_function
from nn_manual.functions.softplus import ExactSoftplus

AROUND = np.array([-3.0, 0.5, 19.0, 21.0, 22.5])


def exact(x: torch.Tensor) -> torch.Tensor:
    """log(1 + exp(x)), by another operation of torch's."""
    return torch.logaddexp(x, torch.zeros_like(x))


def forward(x: Array) -> tuple[Array, Array]:
    """log(1 + exp(x)) of NumPy."""
    return np.logaddexp(0, x), x


def backward(grad_output: Array, x: Array) -> Array:
    """Its derivative is sigmoid(x)."""
    grad: Array = grad_output / (1 + np.exp(-x))
    return grad


class Softplus(torch.autograd.Function):
    """torch's softplus, with the exact derivative."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
        """As torch computes it."""
        context.save_for_backward(x)
        return softplus(x)

    @staticmethod
    def backward(context: Any, *grad_outputs: torch.Tensor) -> torch.Tensor:
        """sigmoid(x) above 20, too."""
        (x,) = context.saved_tensors
        return grad_outputs[0] * torch.sigmoid(x)


def test_an_exact_one_beside_torchs() -> None:
    report = check_function((forward, backward), softplus, [AROUND])
    assert report.passed, report
    assert report.rounding == {"output", "grad_x, random upstream", "grad_x, negative upstream"}


@pytest.mark.slow
def test_torchs_beside_an_exact_one() -> None:
    """It alone has torch's Softplus beside an exact one."""
    report = check_function(Softplus, exact, [torch.from_numpy(AROUND)])
    assert report.passed, report


@pytest.mark.parametrize("factor", [1e-9, slow(-1e-9)])
def test_another_error_of_that_size_stays_wrong(factor: float) -> None:
    def wrong(grad_output: Array, x: Array) -> Array:
        grad: Array = backward(grad_output, x) * (1 + factor * (x > 20))
        return grad

    report = check_function((forward, wrong), softplus, [AROUND], only=["kinds spread"])
    assert [failure.name for failure in report.failures] == ["grad_x, random upstream", "grad_x, negative upstream"]


def test_a_threshold_of_the_users_stays() -> None:
    report = check_function((forward, backward), lambda x: softplus(x, 1.0, 5.0), [AROUND[:2] + 7], only=["kinds zero"])
    assert report.failures[0].name == "output"


@pytest.mark.parametrize("beta", [1.0, 2.0])
def test_the_context(beta: float) -> None:
    x = torch.from_numpy(AROUND).requires_grad_()
    with ExactSoftplus() as context:
        output = softplus(x, beta)
        (grad,) = torch.autograd.grad(output.sum(), x)
    assert context.is_used
    np.testing.assert_allclose(output.detach().numpy(), np.logaddexp(0, beta * AROUND) / beta, rtol=4e-16)
    np.testing.assert_allclose(grad.numpy(), 1 / (1 + np.exp(-beta * AROUND)), rtol=4e-16)
    with ExactSoftplus() as other:
        softplus(x, beta, 30.0)
    assert not other.is_used


def test_a_reference_that_raises_in_a_context_of_ours_ends_no_check() -> None:
    """As what torch.compile compiles as a whole does."""

    def reference(x: torch.Tensor) -> torch.Tensor:
        if torch._C._len_torch_dispatch_stack():
            raise RuntimeError("not here")
        return exact(x)

    def wrong(grad_output: Array, x: Array) -> Array:
        return 2 * backward(grad_output, x)

    report = check_function((forward, wrong), reference, [AROUND], only=["kinds zero"])
    assert [failure.name for failure in report.failures] == ["grad_x, random upstream", "grad_x, negative upstream"]
