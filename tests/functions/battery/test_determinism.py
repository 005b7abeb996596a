"""Two runs that differ in their last bits: in large sizes alone, or by torch's own operations."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch
from products import Product, inputs, product
from torch.autograd.function import once_differentiable

from nn_manual import check_function
from nn_manual.functions.battery import determinism, time_and_memory
from nn_manual.functions.function_case import FunctionCase


def differing_by(error: float) -> type[Product]:
    """From so many rows on, it differs from run to run."""

    class Differs(Product):
        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            noise = error * torch.rand_like(grad_output) if len(grad_output) > 1000 else 0
            return Product.backward(context, grad_output * (1 + noise))

    return Differs


#: It adds up in a random order; and it is off by more than rounding.
Splits, Races = differing_by(1e-14), differing_by(1e-3)


class Adds(Product):
    """It is as random as torch's own atomic additions: not at all where torch's switch is on."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        noise = 0 if torch.are_deterministic_algorithms_enabled() else 1e-14 * torch.rand_like(grad_output)
        return Product.backward(context, grad_output * (1 + noise))


class ReadsMemory(Product):
    """It would be deterministic if the switch also filled memory."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        filled = torch.are_deterministic_algorithms_enabled() and torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined] # torch has no types here
        noise = 0 if filled else 1e-14 * torch.rand_like(grad_output)
        return Product.backward(context, grad_output * (1 + noise))


def rows(function: Any, **options: Any) -> dict[str, tuple[str, str]]:
    report = check_function(function, product, inputs, sizes={"N": 4, "D": 5}, only=["determinism"], **options)
    assert report.agrees, report
    return {row.name: (row.verdict, row.note) for row in report.rows if row.family == "determinism"}


def test_a_kernel_that_splits_a_long_sum_differs_there() -> None:
    wrong = "grad_x differs when it runs twice on the same inputs; a function that is random by design takes a seed or "
    assert rows(Splits) == {
        "determinism": ("right", ""),
        "determinism N=257": ("right", ""),
        "determinism N=1025": ("WRONG", wrong + "a mask"),
        "determinism N=8193": ("WRONG", wrong + "a mask"),
        "determinism D=257": ("right", ""),
        "determinism D=1025": ("right", ""),
        "determinism D=8193": ("right", ""),
    }


def test_torchs_own_additions_are_a_note() -> None:
    (found,) = set(rows(Adds).values())
    words = "grad_x differs when it runs twice on the same inputs"
    assert found == ("right", f"{words}, unless torch.use_deterministic_algorithms(True) is set")
    assert not torch.are_deterministic_algorithms_enabled()


def test_memory_that_nobody_has_written_stays_so() -> None:
    assert {verdict for verdict, _ in rows(ReadsMemory).values()} == {"WRONG"}
    assert torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined] # torch has no types here


@pytest.mark.slow
def test_on_a_device_runs_may_differ_by_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that add to one number take turns as they come. The CPU passes for a device here.
    It alone differs by rounding from run to run.
    """
    monkeypatch.setattr(FunctionCase, "is_on_cuda", True)
    monkeypatch.setattr(time_and_memory, "_peak", lambda case, run: 0)  # noqa: ARG005 - it reads a device's memory
    words = "grad_x differs when it runs twice on the same inputs"
    assert rows(Splits)["determinism N=1025"] == ("right", f"{words}, by no more than rounding")
    assert rows(Splits)["determinism N=257"] == ("right", "")
    verdict, note = rows(Races)["determinism N=1025"]
    assert (verdict, note) == ("WRONG", f"{words}; a function that is random by design takes a seed or a mask")


@pytest.mark.parametrize("sizes", [{"N": [4], "D": 5}, {"N": [4], "D": [5]}])
def test_no_size_is_tried_that_a_choice_leaves_out(sizes: Any) -> None:
    report = check_function(Product, product, inputs, sizes=sizes, only=["determinism"])
    named = {row.variant.partition("=")[0] for row in report.rows if row.family == "determinism"}
    assert named == {"", *(name for name, size in sizes.items() if isinstance(size, int))}


def test_a_size_that_a_kernel_refuses_is_left_to_the_rows_of_sizes() -> None:
    def even(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.shape[1] > 5 and x.shape[1] % 2:
            raise ValueError("an odd size")
        return x * y

    found = rows(even)
    verdict, note = found["determinism D=257"]
    assert verdict == "skipped"
    assert note.startswith("even: a run raised ValueError: an odd size at ")
    assert found["determinism N=257"] == ("right", "")


def test_a_slow_kernel_is_not_tried_on_longer_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its clock says that each look at it takes a second."""
    monkeypatch.setattr(determinism, "MOST_SECONDS", 0.05)
    clock = iter(range(1000))
    monkeypatch.setattr(time, "process_time", lambda: float(next(clock)))
    found = rows(Product)
    for name in "ND":
        assert found[f"determinism {name}=257"] == ("right", "")
        assert found[f"determinism {name}=1025"] == ("skipped", "the size before took over 0.05 s")
        assert found[f"determinism {name}=8193"] == ("skipped", "the size before took over 0.05 s")
