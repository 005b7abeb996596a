"""The sum of the slices' gradients: what is wrong, what is rounding, and what its dtype can't hold."""

from __future__ import annotations

import numpy as np
import pytest

from nn_manual import Linear, NotFiniteError, Sequential
from nn_manual.check.judge.report import GradientReport
from nn_manual.check.sliced_step.sums import compare_sums, sums_of
from nn_manual.step.slices.process_group import ALONE


def report_on(grads: list[float], summed: float, *, is_in_order: bool, dtype: str = "float32") -> GradientReport:
    """On the sum of slices whose only gradients these are, each of which weighs a third."""
    model = Sequential(Linear(1, 1, bias=False), dtype=dtype)
    model.grad_arena[...] = summed
    with np.errstate(over="ignore", invalid="ignore"):
        own = [np.array([grad], dtype) for grad in grads]
        sums = sums_of(own, [1 / 3] * len(own), model, ALONE)
        return compare_sums(sums, model, len(own), is_in_order=is_in_order)


#: The smallest number that float32 has.
SMALLEST = 1.4e-45


def test_a_third_of_the_smallest_numbers_is_rounded() -> None:
    """Each is rounded to nothing, and their sum is one."""
    report = report_on([SMALLEST] * 3, 0.0, is_in_order=True)
    assert report.agrees
    assert report.rounding == {"summed 0.weight"}


def test_rounding_is_no_more_than_the_smallest_number_of_each_slice() -> None:
    report = report_on([100 * SMALLEST] * 3, 96 * SMALLEST, is_in_order=False)
    assert not report.agrees
    assert report_on([100 * SMALLEST] * 3, 98 * SMALLEST, is_in_order=False).agrees


@pytest.mark.parametrize(("grads", "summed"), [([3e38] * 4, np.inf), ([3e38, 3e38, 3e38, 3e38, -3e38], np.inf)])
def test_terms_that_float32_cannot_hold_are_no_mismatch(grads: list[float], summed: float) -> None:
    """Thirds of 3e38 are, and four of them aren't; with a fifth that is less than nothing the sum would be."""
    with pytest.raises(NotFiniteError, match=r"summed 0.weight holds inf at index \(0, 0\)"):
        report_on(grads, summed, is_in_order=False)


@pytest.mark.parametrize("summed", [np.inf, np.nan, 1.5, 0.9999])
def test_a_wrong_sum_is_found(summed: float) -> None:
    report = report_on([1.0] * 3, summed, is_in_order=False)
    assert [failure.name for failure in report.failures] == ["summed 0.weight"]
    assert report.diagnosis
