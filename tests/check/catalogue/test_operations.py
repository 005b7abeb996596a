"""check_operations: complete, green, 80 columns wide, and red for any derivative that is wrong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nn_manual import ops
from nn_manual.arrays import DTYPES
from nn_manual.check.catalogue.operation_cases import CASES, OperationCase
from nn_manual.check.catalogue.operations import OperationsReport, check_operations
from nn_manual.ops.operation import Differentiated, Tensor, operation


@pytest.fixture(scope="module")
def report() -> OperationsReport:
    return check_operations()


def test_every_operation_has_a_case() -> None:
    public = {name for name in ops.__all__ if isinstance(getattr(ops, name), ops.Operation)}
    assert {case.operation.__name__ for case in CASES} == public


def test_all_gradients_agree(report: OperationsReport) -> None:
    assert report.passed, str(report)
    num_gradients = sum(len(case.shapes) for case in CASES)
    assert len(report.derivatives) == len(DTYPES) * num_gradients
    for derivative in report.derivatives:
        assert derivative.reference.any(), f"{derivative.operation.__name__}: a gradient of zeros proves nothing"


def test_the_table_fits_80_columns_and_shows_each_gradient(report: OperationsReport) -> None:
    lines = str(report).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.endswith(" ok") for line in lines) == len(report.derivatives)
    assert lines[-1] == f"{len(report.derivatives)} gradients of operations compared, 0 differ"


def test_another_seed_draws_other_numbers() -> None:
    (case,) = (case for case in CASES if case.operation is ops.square)
    first, second = (check_operations([case], seed=seed).derivatives[0] for seed in (0, 1))
    assert not np.array_equal(first.ours, second.ours)


def square_with(slope: Callable[[Tensor, Tensor], Tensor]) -> ops.Operation:
    """A square whose hand-derived gradient is `slope(input, grad_answer)`."""

    @operation(analytic=True)
    def square(input: Tensor) -> Differentiated:
        return input * input, lambda grad_answer: slope(input, grad_answer)

    return square


@pytest.mark.parametrize(
    ("slope", "words"),
    [
        (lambda input, grad_answer: grad_answer * 2.001 * input, "1.0005 times the reference"),
        (lambda input, grad_answer: -grad_answer * 2 * input, "the wrong sign"),
        (lambda input, grad_answer: grad_answer * input, "1/2 of the reference"),
        (lambda input, grad_answer: (grad_answer * 2 * input).sum(axis=0), "shape (3,), the reference has (2, 3)"),
        (lambda input, _: input * np.nan, "not finite at 6 of 6 positions"),
    ],
)
def test_a_wrong_derivative_is_rejected_and_named(slope: Callable[[Tensor, Tensor], Tensor], words: str) -> None:
    report = check_operations([OperationCase(square_with(slope), ((2, 3),))])
    assert not report.passed
    lines = str(report).splitlines()
    assert sum(line.endswith(" FAIL") for line in lines) == len(DTYPES)
    assert sum(line.startswith(f"    torch disagrees: {words}") for line in lines) == len(DTYPES)
    assert lines[-1] == "2 gradients of operations compared, 2 differ"


def test_a_forward_that_is_not_torchs_is_rejected() -> None:
    """An answer that isn't torch's, with torch's gradient: the numerical derivative of the answer disagrees."""

    @operation(analytic=True)
    def square(input: Tensor) -> Differentiated:
        return input * input * 1.5, lambda grad_answer: grad_answer * 2 * input

    report = check_operations([OperationCase(square, ((2, 3),))])
    assert not report.passed
    assert str(report).count("    numbers disagree: 0.666667 times the reference") == len(DTYPES)
