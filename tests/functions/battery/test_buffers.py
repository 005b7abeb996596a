"""What a module's buffers hide in its first forward."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from slow_cases import crossed
from torch import nn

from nn_manual import check_function


class Norm(nn.Module):
    """A batch norm without eps in the buffer: running_mean = keep * running_mean + 0.1 * mean(x)."""

    running_mean: torch.Tensor
    num_batches_tracked: torch.Tensor
    table: torch.Tensor

    def __init__(self, keep: float = 0.9) -> None:
        super().__init__()
        self.keep = keep
        self.weight = nn.Parameter(torch.arange(1.0, 4.0))
        self.register_buffer("running_mean", torch.zeros(3))
        self.register_buffer("num_batches_tracked", torch.tensor(0))
        self.register_buffer("table", torch.tensor([1.0, -torch.inf, 2.0]))

    def forward(self, x: torch.Tensor) -> Any:
        with torch.no_grad():
            self.running_mean.copy_(self.keep * self.running_mean + 0.1 * x.mean(0))
            self.num_batches_tracked.add_(1)
        return (x - x.mean(0)) * self.weight + torch.where(self.table.isfinite(), 0.0, x)


X = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))


def test_a_running_mean_that_forgets_is_wrong() -> None:
    report = check_function(Norm(keep=0.0), Norm(), [X], kinds=[])
    assert [row.name for row in report.wrong] == ["two forwards buffers", "eval"]  # in both, it forgets
    assert "differs in its second forward, on the buffers that the first one left: buffer running_mean" in (
        report.wrong[0].note
    )


@pytest.mark.parametrize(
    ("dtype", "make"),
    crossed(
        ["float32", "bfloat16", "float64"],
        [Norm, lambda: nn.BatchNorm1d(3), lambda: nn.BatchNorm1d(3, momentum=None)],
    ),
)
def test_right_buffers_stay_right(make: Any, dtype: str) -> None:
    report = check_function(make(), make(), [X], dtypes=[dtype], kinds=[])
    row = next(row for row in report.rows if row.name == "two forwards buffers")
    assert row.verdict == "right", report


def test_a_wrong_buffer_is_no_wrong_gradient() -> None:
    class Wrong(Norm):
        def forward(self, x: torch.Tensor) -> Any:
            output = super().forward(x)
            self.running_mean.mul_(2)
            return output

    report = check_function(Wrong(), Norm(), [X], kinds=[], only=["twice"])
    assert [failure.name for failure in report.failures] == ["buffer running_mean"]
    assert report.diagnosis.startswith("2 times the reference")
    assert report.inputs_there == ""
    assert next(row for row in report.rows if row.name == "twice").note == "the values are wrong"


def test_without_buffers_there_is_no_such_row() -> None:
    report = check_function(nn.Linear(3, 2), nn.Linear(3, 2), [X], kinds=[])
    assert not [row for row in report.rows if row.variant == "buffers"]
