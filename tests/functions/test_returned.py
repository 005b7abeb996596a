"""check_function: tensors of other kinds than torch's plain ones, and functions whose attributes can't be read."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nn_manual import check_function


class Plain(torch.Tensor):
    """A subclass that adds nothing."""


class Unreadable:
    """sin, whose attributes can't be asked for."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x.sin()


def test_a_tensor_without_values_is_a_finding() -> None:
    report = check_function(lambda x: torch.empty_like(x, device="meta"), torch.sin, [torch.ones(3)])
    assert not report.passed
    assert "reading output raised NotImplementedError: Cannot copy out of meta tensor" in (report.problem or "")


def test_a_subclass_of_a_tensor_is_one() -> None:
    def as_plain(x: torch.Tensor) -> torch.Tensor:
        return x.sin().as_subclass(Plain)

    report = check_function(as_plain, torch.sin, [torch.ones(3)], skip=["kinds", "cost"])
    assert report.passed, report
    assert not check_function(lambda x: 2 * as_plain(x), torch.sin, [torch.ones(3)], skip=["kinds", "cost"]).passed


def test_a_function_whose_attributes_cannot_be_read() -> None:
    report = check_function(Unreadable(), torch.sin, [torch.ones(3)], skip=["kinds", "cost"])
    assert report.passed, report


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # which torch.compile reads
def test_what_torch_compile_compiles_is_differentiable_once() -> None:
    """It alone differentiates twice what torch.compile compiles."""
    compiled = torch.compile(lambda x: x.sin() * x, backend="aot_eager")
    report = check_function(compiled, lambda x: x.sin() * x, [torch.ones(3)], only=["twice"])
    assert {row.name: row.note for row in report.rows}["twice"] == "differentiable once, and says so"
    assert report.passed, report
