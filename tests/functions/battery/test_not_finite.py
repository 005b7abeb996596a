"""A row of a batch that is NaN or infinite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from products import Product, inputs, product

from nn_manual import check_function
from nn_manual.functions.function_report import FunctionReport

X = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def rows(report: FunctionReport) -> dict[str, tuple[str, str]]:
    return {row.variant: (row.verdict, row.note) for row in report.rows if row.family == "not finite"}


def check(function: Any, reference: Any, given: Any, **options: Any) -> dict[str, tuple[str, str]]:
    report = check_function(function, reference, given, only=["not finite"], **options)
    assert report.agrees, report
    return rows(report)


def test_a_right_function_is_right() -> None:
    found = check(Product, product, inputs, sizes={"N": 4, "D": 5})
    assert found == {"NaN": ("right", ""), "inf": ("right", ""), "-inf": ("right", "")}


def test_a_row_that_spoils_the_others_is_wrong() -> None:
    """For numbers, the largest of all is as good as the largest of a row."""

    def softmax(x: torch.Tensor) -> torch.Tensor:
        powers = (x - x.detach().max()).exp()
        return powers / powers.sum(-1, keepdim=True)

    found = check(softmax, lambda x: x.softmax(-1), [X])
    words = "where row 0 of x is NaN, row 1 of output changes, too; the reference's doesn't"
    assert found["NaN"] == ("WRONG", words)
    assert found["inf"][0] == "WRONG"
    assert found["-inf"] == ("right", "")  # it is the largest of no row


def test_a_gradient_that_spoils_the_others_is_wrong() -> None:
    def backward(grad: Any, saved: Any) -> Any:
        (x,) = saved
        scale = np.abs(x).max()
        return 2 * grad * (x / scale) * scale

    found = check((lambda x: (x**2, (x,)), backward), lambda x: x**2, [X.numpy()])
    assert found["NaN"] == ("WRONG", "where row 0 of x is NaN, row 1 of grad_x changes, too; the reference's doesn't")


@pytest.mark.slow
def test_what_was_wrong_above_is_left_out() -> None:
    """It alone has a gradient that is wrong for numbers, too."""
    def backward(grad: Any, saved: Any) -> Any:
        (x,) = saved
        return grad * x * np.abs(x).max()

    report = check_function((lambda x: (x**2, (x,)), backward), lambda x: x**2, [X.numpy()], only=["not finite"])
    assert {failure.name.partition(",")[0] for failure in report.failures} == {"grad_x"}
    assert rows(report)["NaN"] == ("right", "")


def test_a_nan_that_is_lost_is_a_note() -> None:
    """A threshold that asks whether x is above it takes NaN for something below."""
    found = check(lambda x: torch.where(x > 0, x, torch.zeros_like(x)), torch.relu, [X])
    assert found["NaN"] == ("right", "where row 0 of x is NaN, output[0, 0] is 0, and NaN in the reference")
    assert found["inf"] == found["-inf"] == ("right", "")
    _, note = check(lambda x: torch.where(x > 0, x, torch.zeros_like(x)).sum(), lambda x: x.relu().sum(), [X[:, 0]])[
        "NaN"
    ]
    assert note.startswith("where row 0 of x is NaN, output is ")


@pytest.mark.parametrize(
    ("reference", "given", "words"),
    [
        (lambda x: (x - x.mean(0)) ** 2, [X], "the reference itself doesn't keep the rows of a batch apart"),
        (lambda x: x.cumsum(0) ** 2, [X], "the reference itself doesn't keep the rows of a batch apart"),
        (torch.exp, [X[:1]], "no floating input has several rows of a batch"),
    ],
)
def test_nothing_is_said_where_rows_are_not_apart(reference: Any, given: Any, words: str) -> None:
    assert set(check(lambda x: reference(x), reference, given).values()) == {("skipped", words)}


def test_a_domain_has_no_such_value() -> None:
    found = check(torch.log, torch.log, [X.abs() + 1], domain="positive")
    assert set(found.values()) == {("skipped", "no floating input without a domain has several rows of a batch")}


def test_a_function_may_refuse_it() -> None:
    def strict(x: torch.Tensor) -> torch.Tensor:
        if not x.isfinite().all():
            raise ValueError("not finite")
        return x**2

    for verdict, note in check(strict, torch.square, [X]).values():
        assert verdict == "skipped"
        assert note.startswith("strict: a run where row 0 of ")
        assert "raised ValueError: not finite at " in note
        assert note.endswith("; it may not be for such values")


def test_without_a_reference_there_is_no_row() -> None:
    report = check_function((lambda x: (x**2, x), lambda grad, x: 2 * grad * x), None, [X.numpy()], only=["not finite"])
    assert rows(report) == {}
