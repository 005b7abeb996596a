"""check_function: where there is no number, both must have the same NaN or infinity."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from nn_manual import check_function
from nn_manual.functions.battery.families import FAMILIES

SKIP = ["kinds", "cost"]


def masked_softmax(scores: torch.Tensor) -> torch.Tensor:
    mask = torch.ones(scores.shape, dtype=torch.bool).tril(-1)  # the first row is masked in full
    return scores.masked_fill(~mask, -math.inf).softmax(-1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(
    ("function", "last"),
    [(torch.sin, math.inf), (torch.relu, math.nan), (torch.exp, math.inf), (masked_softmax, 1.0)],
)
def test_a_function_equals_itself(
    function: Callable[[torch.Tensor], torch.Tensor], last: float, dtype: str
) -> None:
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
