"""check_function: where there is no number, both must have the same NaN or infinity."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from slow_cases import crossed

from nn_manual import check_function
from nn_manual.functions.battery.families import FAMILIES

SKIP = ["kinds", "cost"]


def masked_softmax(scores: torch.Tensor) -> torch.Tensor:
    mask = torch.ones(scores.shape, dtype=torch.bool).tril(-1)  # the first row is masked in full
    return scores.masked_fill(~mask, -math.inf).softmax(-1)


@pytest.mark.parametrize(
    ("case", "dtype"),
    crossed(
        [(torch.sin, math.inf), (torch.relu, math.nan), (torch.exp, math.inf), (masked_softmax, 1.0)],
        ["float32", "float64", "bfloat16"],
    ),
)
def test_a_function_equals_itself(case: tuple[Callable[[torch.Tensor], torch.Tensor], float], dtype: str) -> None:
    function, last = case
    x = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5], [1.0, -2.0, last]])
    report = check_function(function, function, [x], dtypes=[dtype], skip=SKIP)
    assert report.passed, report


@pytest.mark.parametrize("instead", [0.0, math.inf, -math.inf])
@pytest.mark.parametrize("has_it", ["function", "reference"])
def test_no_number_in_one_alone_is_wrong(instead: float, has_it: str) -> None:
    def other(x: torch.Tensor) -> torch.Tensor:
        return x.sin().nan_to_num(nan=instead)

    function, reference = (torch.sin, other) if has_it == "function" else (other, torch.sin)
    report = check_function(function, reference, [torch.tensor([1.0, math.inf])], skip=SKIP)
    assert report.failures[0].name == "output"
    assert report.failures[0].index == (1,)


def test_what_has_a_number_is_judged_beside_what_has_none() -> None:
    report = check_function(lambda x: 1.01 * x.sin(), torch.sin, [torch.tensor([1.0, math.inf, 2.0])], skip=SKIP)
    assert {failure.name.partition(",")[0] for failure in report.failures} == {"output", "grad_x"}
    assert report.failures[0].index == (2,)
    assert "1.01" in str(report)


def test_a_gradient_without_a_number_is_wrong_where_the_reference_has_one() -> None:
    def root(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 0, x.sqrt(), 0)  # whose gradient is 0 / 0 at 0

    def definition(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 0, torch.where(x > 0, x, 1).sqrt(), 0)

    x = torch.tensor([1.0, 0.0, 4.0])
    assert check_function(root, root, [x], skip=SKIP).agrees
    assert [f.index for f in check_function(root, definition, [x], skip=SKIP).failures] == [(1,), (1,)]
    assert [f.index for f in check_function(definition, root, [x], skip=SKIP).failures] == [(1,), (1,)]


@pytest.mark.parametrize(("factor", "how"), [(math.nan, "has no number anywhere"), (0.0, "is zero everywhere")])
def test_what_has_no_number_is_not_called_zero(factor: float, how: str) -> None:
    def scaled(x: torch.Tensor) -> torch.Tensor:
        return factor * x

    report = check_function(scaled, scaled, [torch.ones(3)], skip=[*FAMILIES])
    assert report.vacuous == (f"scaled: output {how}", f"scaled: grad_x {how}")


def test_a_reference_without_a_number_is_named_first() -> None:
    report = check_function(lambda x: x.clamp(min=0.1).log(), torch.log, [torch.tensor([1.0, -1.0, 2.0])], kinds=[])
    first = str(report).partition("\n")[0]
    assert first == "gradient check failed: the reference is not finite in output, unlike <lambda>"
    report = check_function(lambda x: x.log() / (x > 0), lambda x: x * 1, [torch.tensor([1.0, -1.0, 2.0])], kinds=[])
    assert "wrong first in <lambda>: output" in str(report)


def log(x: Any) -> Any:
    return np.log(x), x


@pytest.mark.slow
@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        (log, lambda grad, x: grad / x),
        (lambda x: (np.sqrt(x), x), lambda grad, x: grad / (2 * np.sqrt(x))),
        (lambda x: (1 / x, x), lambda grad, x: -grad / x**2),
        (lambda x: (np.exp(x), x), lambda grad, x: grad * np.exp(x)),
    ],
    ids=["log", "sqrt", "inverse", "exp"],
)
def test_without_a_reference_what_has_no_number_is_left_out(forward: Any, backward: Any) -> None:
    """An output that is NaN or infinite hides nothing of the others, and nobody is blamed for it.
    It alone has differences of forward that are no numbers.
    """
    x = np.random.default_rng(5).uniform(0.2, 1.2, (2, 3))
    with np.errstate(all="ignore"):
        right = check_function((forward, backward), None, [x], only=["kinds", "grad_output"])
        assert right.passed, right

        def wrong(grad: Any, x: Any) -> Any:
            """Right for positive numbers alone."""
            return backward(grad, x) * (1 if ((x > 0) & (x < 20)).all() else 2)

        report = check_function((forward, wrong), None, [x], only=["kinds"])
    assert {"kinds spread", "kinds large"} <= {row.name for row in report.wrong}


def test_without_a_reference_the_users_own_inputs_may_lie_on_the_edge() -> None:
    x = np.array([0.0, 1, 2])
    with np.errstate(all="ignore"):
        assert check_function((log, lambda grad, x: grad / x), None, [x], only=["settings"]).passed
        report = check_function((log, lambda grad, x: 2 * grad / x), None, [x], only=["settings"])
    assert report.diagnosis.startswith("2 times the reference")
