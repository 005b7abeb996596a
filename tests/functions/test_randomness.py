"""A function, or a reference, that returns something else each time is called so, and nothing is said of formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import check_function
from nn_manual.functions.randomness import varying_output

X = torch.randn(40, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
WORDS = "output differs when forward runs twice on the same inputs; if it is random by design, give it a seed or a mask"


def halved(x: Any) -> Any:
    return 0.5 * x


def noisy(x: Any) -> Any:
    return 0.5 * x + 1e-6 * torch.randn_like(x)


def dropped(x: Any) -> Any:
    return x * (torch.rand_like(x) > 0.5)  # of so many numbers, some are dropped in every run


@pytest.mark.parametrize("function", [noisy, dropped])
def test_of_the_function(function: Any) -> None:
    report = check_function(function, halved if function is noisy else torch.clone, [X], only=["retain_graph"])
    assert report.problem == f"{function.__name__}: {WORDS}"


def test_zeros_that_hide_it_are_not_blamed_for_their_gradients() -> None:
    """At zeros each run returns zeros, and its gradient is another one."""

    def forward(x: Any) -> Any:
        mask = 2.0 * (np.random.default_rng().random(x.shape) > 0.5)
        return x * mask, mask

    def backward(grad_output: Any, mask: Any) -> Any:
        return grad_output * mask

    for reference in (lambda x: 1.0 * x, None):
        report = check_function((forward, backward), reference, [X.numpy()], only=["kinds", "no_grad"])
        assert report.problem == f"forward and backward: {WORDS}"
        assert not report.wrong
        assert {row.note for row in report.rows if row.family == "kinds"} == {"the same error as above"}


def test_of_the_reference() -> None:
    for reference in (noisy, dropped):
        with pytest.raises(ValueError, match=f"^the reference: {WORDS}$"):
            check_function(halved, reference, [X])
    with pytest.raises(ValueError, match=f"^the reference: {WORDS}$"):  # in float32, where it is far from float64
        check_function(halved, lambda x: 0.5 * x + torch.rand_like(x), [X.float()], only=["retain_graph"])


def test_in_a_function_that_is_right_nobody_looks() -> None:
    """What differs by less than the tolerance is rounding: a kernel may add in any order."""

    def in_any_order(x: Any) -> Any:
        return 0.5 * x + 1e-16 * torch.randn_like(x)

    assert check_function(in_any_order, halved, [X], only=["retain_graph"]).passed
    wrong = check_function(lambda x: 0.6 * x, in_any_order, [X], only=["retain_graph"])
    assert wrong.failures[0].name == "output"


def test_an_output_varies_where_a_run_differs_from_the_first_by_more_than_is_allowed() -> None:
    runs: list[dict[str, Any]] = [
        {"a": torch.tensor([2.0, 1.0]), "b": torch.tensor([1])},
        {"a": torch.tensor([2.0, 1.1]), "b": None},
    ]
    assert varying_output(runs, {"a": 0.04}) == "a"
    assert varying_output(runs, {"a": 0.06}) is None
    assert varying_output(runs, {}) is None
    assert varying_output([*runs, {"a": torch.tensor([2.0, 2.1])}], {}) == "a"
