"""The rows of what a function must not write into: a habit hides nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd.function import once_differentiable

from nn_manual import HandwrittenClass, check_function

X = np.random.default_rng(0).standard_normal((4, 3))


def definition(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 0, x * x, 0)


def forward(x: Any) -> Any:
    return np.where(x > 0, x * x, 0), {"slope": 2 * np.maximum(x, 0)}


def into_saved(saved: Any, upstream: Any) -> Any:
    saved["slope"] *= upstream
    return saved["slope"]


def into_upstream(saved: Any, upstream: Any) -> Any:
    upstream *= saved["slope"]
    return upstream


class Slope(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(2 * x.clamp(min=0))
        return definition(x)

    @staticmethod
    def backward(context: Any, upstream: Any) -> Any:
        (slope,) = context.saved_tensors
        return upstream.mul_(slope)


class Doubled(Slope):
    @staticmethod
    def backward(context: Any, upstream: Any) -> Any:
        (slope,) = context.saved_tensors
        return upstream.mul_(2 * slope)


@pytest.mark.parametrize(("backward", "habit"), [(into_saved, "saved"), (into_upstream, "grad_output")])
def test_a_pair_with_a_habit_is_right_in_all_other_rows(backward: Any, habit: str) -> None:
    report = check_function((forward, backward), definition, [X], skip=["grad_output expanded"])
    assert report.agrees, report
    assert [row.name for row in report.wrong] == [f"writes {habit}"]
    assert f" at {__file__}:" in report.wrong[0].note
    accepted = check_function((forward, backward), definition, [X], skip=["grad_output expanded", f"writes {habit}"])
    assert accepted.passed, accepted


def test_an_autograd_function_with_a_habit() -> None:
    """It can't be differentiated twice, and torch refuses its write into an expanded gradient."""
    others = ["twice", "grad_output expanded"]
    report = check_function(Slope, definition, [torch.from_numpy(X)], skip=others)
    assert report.agrees, report
    assert [row.name for row in report.wrong] == ["writes grad_output"]
    assert f"backward wrote into the gradient of its output at {__file__}:" in report.wrong[0].note


@pytest.mark.parametrize("wrong", [Doubled, (forward, lambda saved, upstream: into_upstream(saved, upstream) * 2)])
def test_a_habit_hides_no_wrong_value(wrong: Any) -> None:
    x = torch.from_numpy(X) if wrong is Doubled else X
    report = check_function(wrong, definition, [x], only=["writes", "two forwards"])
    assert [comparison.name for comparison in report.failures][:1] == ["grad_x, random upstream"]
    assert "2 times the reference" in report.diagnosis
    assert "writes grad_output" in [row.name for row in report.wrong]


def test_a_habit_that_one_row_alone_shows_is_wrong_there() -> None:
    def where_not_contiguous(saved: Any, upstream: Any) -> Any:
        grad = saved["slope"] * upstream
        if not upstream.flags.c_contiguous:
            upstream += 1
        return grad

    report = check_function((forward, where_not_contiguous), definition, [X], only=["grad_output", "writes"])
    layouts = ("transposed", "expanded", "strided", "rows apart")
    assert [row.name for row in report.wrong] == [f"grad_output {how}" for how in layouts]
    assert report.wrong[0].note == "backward wrote into the gradient of its output"


def test_a_forward_that_writes_into_its_input() -> None:
    def writes(x: Any) -> Any:
        returned = forward(x)
        x += 1
        return returned

    x = X.copy()
    report = check_function((writes, lambda saved, upstream: saved["slope"] * upstream), definition, [x])
    assert report.agrees, report
    assert [row.name for row in report.wrong] == ["writes inputs"]
    assert report.wrong[0].note.startswith(f"forward wrote into x at {__file__}:")
    assert np.array_equal(x, X)


class OfObject:
    """It keeps its input, and its backward writes there."""

    def forward(self, x: Any) -> Any:
        self.x = x
        return np.maximum(x, 0)

    def backward(self, upstream: Any) -> Any:
        self.x[self.x < 0] = 0
        return upstream * (self.x > 0)


def of_object(x: Any) -> Any:
    made = OfObject()
    return made.forward(x), made


class OnContext(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        output, context.made = of_object(x.detach().numpy())
        return torch.from_numpy(output)

    @staticmethod
    @once_differentiable
    def backward(context: Any, upstream: Any) -> Any:
        return torch.from_numpy(context.made.backward(upstream.numpy()))


@pytest.mark.parametrize(
    "function",
    [HandwrittenClass(OfObject, {}), (of_object, lambda upstream, saved: saved.backward(upstream)), OnContext],
)
def test_a_backward_that_writes_into_the_input_that_an_object_keeps(function: Any) -> None:
    given = torch.from_numpy(X) if function is OnContext else X
    skipped = ["changed", "autocast"]  # which say something else of a context
    report = check_function(function, torch.relu, [given], skip=skipped)
    assert report.agrees, report
    assert [row.name for row in report.wrong] == ["writes inputs"]
    assert report.wrong[0].note.startswith("backward wrote into its input ")
    if function is not OnContext:  # numpy tells the line by what it refuses, and torch hides arrays from it
        assert f" at {__file__}:" in report.wrong[0].note


class InAttribute(torch.autograd.Function):
    """Its backward writes into an attribute of its context, if it scales by 2."""

    @staticmethod
    def forward(context: Any, x: Any, scale: int) -> Any:
        context.slope, context.scale = torch.full_like(x, scale), scale
        return x * scale

    @staticmethod
    @once_differentiable
    def backward(context: Any, upstream: Any) -> Any:
        grad = upstream * context.slope
        if context.scale == 2:
            context.slope.zero_()
        return grad, None


@pytest.mark.parametrize("scales", [(2, 3), (3, 2)])
def test_attributes_of_one_name_on_several_contexts_are_watched(scales: tuple[int, int]) -> None:
    def both(x: Any) -> Any:
        first, second = scales
        return InAttribute.apply(InAttribute.apply(x, first), second)  # type: ignore[no-untyped-call] # torch has none

    report = check_function(both, lambda x: x * 2 * 3, [torch.from_numpy(X)], only=["writes"])
    assert [row.name for row in report.wrong] == ["writes saved"]


def test_a_saved_input_that_is_overwritten_is_one_habit() -> None:
    def writes(upstream: Any, saved: Any) -> Any:
        saved[saved < 0] = 0
        return upstream * (saved > 0)

    report = check_function((lambda x: (np.maximum(x, 0), x), writes), torch.relu, [X])
    assert report.agrees, report
    assert [row.name for row in report.wrong] == ["writes saved"]
