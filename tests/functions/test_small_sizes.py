"""check_function: a gradient that is zero on the small sizes of the rows, and not at the full ones."""

from __future__ import annotations

import pytest
import torch

from nn_manual import check_function
from nn_manual.functions.battery.lengths import small_sizes


def inputs(generator: torch.Generator, N: int, T: int) -> list[torch.Tensor]:
    return [torch.randn(N, T, generator=generator, dtype=torch.float64) for _ in range(2)]


def scan(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """state_t = a_t * state_{t-1} + b_t: with one step, the gradient of a is zero."""
    state, states = torch.zeros_like(b[:, :0].sum(1)), []
    for step in range(a.shape[1]):
        state = a[:, step] * state + b[:, step]
        states.append(state)
    return torch.stack(states, 1)


def lagged(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """b_t + a_{t-4}: up to four steps, the gradient of a is zero."""
    return torch.cat([b[:, :4] + 0 * a[:, :4], b[:, 4:] + a[:, :-4]], 1) if a.shape[1] > 4 else b + 0 * a


def test_the_values_are_not_compared_on_one_step() -> None:
    report = check_function(scan, scan, inputs, sizes={"N": 3, "T": (8, 1, 5)}, kinds=[])
    assert report.passed, report
    assert next(c.shape for c in report.comparisons) == (3, 5)
    assert {"T=1", "T=5", "T=8"} == {row.variant for row in report.rows if row.variant.startswith("T=")}


def test_a_choice_of_one_size_is_the_only_one() -> None:
    report = check_function(scan, scan, inputs, sizes={"N": 3, "T": (5,)}, kinds=[])
    assert report.passed, report
    assert {row.variant for row in report.rows if row.variant.startswith("T=")} == {"T=5"}


def test_zero_on_small_sizes_alone_is_not_vacuous() -> None:
    report = check_function(lagged, lagged, inputs, sizes={"N": 3, "T": (2, 15)}, kinds=[])
    assert report.passed, report


@pytest.mark.parametrize("sizes", [(2, 4), (2,)])
def test_zero_on_all_sizes_is(sizes: tuple[int, ...]) -> None:
    report = check_function(lagged, lagged, inputs, sizes={"N": 3, "T": sizes}, kinds=[])
    assert report.vacuous == ("lagged: grad_a is zero everywhere",)


@pytest.mark.parametrize(
    ("full", "small"),
    [
        ({"N": 6, "D": 20}, {"N": 6, "D": 5}),
        ({"N": 8, "D": 128}, {"N": 7, "D": 6}),
        ({"N": 2, "D": 2}, {"N": 2, "D": 2}),
        ({"A": 9, "B": 9, "C": 9, "D": 9, "E": 9, "F": 9}, {"A": 7, "B": 6, "C": 5, "D": 4, "E": 3, "F": 7}),
    ],
)
def test_no_two_dimensions_are_equal_where_they_may_differ(full: dict[str, int], small: dict[str, int]) -> None:
    assert small_sizes(full) == small
