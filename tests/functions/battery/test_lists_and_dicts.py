"""Lists and dicts that a function is given or returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nn_manual import check_function

KEPT: dict[str, Any] = {}


def values(seed: int = 0) -> torch.Tensor:
    return torch.randn(3, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def right(several: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    return {"product": several[0] * several[1]}


def pops(several: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    last = several.pop()
    return {"product": several[0] * last}


def refills(several: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    KEPT["product"] = several[0] * several[1]
    return KEPT


def fills_a_cache(several: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    several.append(several[0] * several[1])
    return {"product": several[-1]}


def wrong(function: Any, reference: Any, given: Any) -> dict[str, str]:
    report = check_function(function, reference, given, kinds=[])
    assert report.agrees, report
    return {row.name: row.note for row in report.wrong}


def test_a_list_that_was_given_is_not_changed() -> None:
    words = {"changed inputs": "it changes several, a list or dict that it was given"}
    assert wrong(pops, right, [[values(), values(1)]]) == words
    assert wrong(pops, right, {"several": [values(), values(1)]}) == words


def test_a_dict_that_was_returned_is_not_changed() -> None:
    found = wrong(refills, right, [[values(), values(1)]])
    assert found["changed outputs"] == "it changes output, a list or dict that it returned before"


def test_what_the_reference_does_is_right() -> None:
    assert wrong(right, right, [[values(), values(1)]]) == {}
    assert wrong(fills_a_cache, fills_a_cache, [[values(), values(1)]]) == {}
    assert wrong(lambda x, kept: kept.append(1) or x.sin(), lambda x, _: x.sin(), [values(), []]) == {}


def test_a_pair_is_watched_too() -> None:
    def backward(saved: Any, grad_output: Any) -> Any:
        return grad_output * saved[1], grad_output * saved[0]

    def forward(several: list[Any]) -> Any:
        return several[0] * several[1], list(several)

    def popping(several: list[Any]) -> Any:
        last = several.pop()
        return several[0] * last, (several[0], last)

    given = [[np.ones((2, 3)), np.full((2, 3), 2.0)]]
    assert wrong((forward, backward), lambda several: several[0] * several[1], given) == {}
    assert "changed inputs" in wrong((popping, backward), lambda several: several[0] * several[1], given)
