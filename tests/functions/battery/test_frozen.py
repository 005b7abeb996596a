"""Parameters that require no gradient."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.autograd import Function

from nn_manual import check_function


def values(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class Scaled(Function):
    """x * weight * scale, with no gradient of the weight, which is frozen."""

    @staticmethod
    def forward(context: Any, x: Any, weight: Any, scale: Any) -> Any:
        context.save_for_backward(x, weight, scale)
        return x * weight * scale

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        x, weight, scale = context.saved_tensors
        return grad_output * weight * scale, None, (grad_output * x * weight).sum(0)


class Adapted(torch.nn.Module):
    """A frozen weight, and a scale that is learned."""

    def __init__(self, *, fused: bool, freezes: bool) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(values(2), requires_grad=not freezes)
        self.scale = torch.nn.Parameter(values(2, seed=1))
        self.fused = fused

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        if self.fused:
            return Scaled.apply(x + y, self.weight, self.scale)  # type: ignore[no-untyped-call] # torch has none
        return (x + y) * self.weight * self.scale


@pytest.mark.slow
def test_a_frozen_parameter_has_no_gradient() -> None:
    """It alone freezes the parameters of a module."""
    given = [values(3, 2, seed=2), values(3, 2, seed=3)]
    report = check_function(Adapted(fused=True, freezes=True), Adapted(fused=False, freezes=True), given, skip=["cost"])
    assert report.passed, report
    assert {c.name.partition(",")[0] for c in report.comparisons} == {"output", "grad_x", "grad_y", "grad_scale"}
    assert "not compared: grad_weight; frozen in Adapted, by requires_grad" in str(report)
    rows = {row.name: row.verdict for row in report.rows}
    assert "requires_grad weight alone" not in rows
    assert {rows[name] for name in ("in place", "inputs same", "twice", "requires_grad all but scale")} == {"right"}
    learned = check_function(Adapted(fused=True, freezes=False), Adapted(fused=False, freezes=True), given)
    assert {failure.name.partition(",")[0] for failure in learned.failures} == {"grad_weight"}
