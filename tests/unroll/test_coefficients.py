"""The numbers of an optimizer of one's own, as expressions of its settings and the step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from nn_manual import Linear, MSELoss, Sequential
from nn_manual.arrays import Array
from nn_manual.errors import ConfigError
from nn_manual.optim import Optimizer
from nn_manual.unroll.command import proven_script
from nn_manual.unroll.sections import Subject


@dataclass(eq=False)
class Warmed(Optimizer):
    """Gradient descent whose lr grows at first: coefficients without a docstring, with branches and calls."""

    lr: float = 0.1
    warmup: int = 10
    limit: float = 0.0

    def check_settings(self) -> None:
        """Any will do."""

    def vector_names(self) -> list[str]:
        return []

    def coefficients(self, step: int) -> dict[str, float]:
        grown = min(1.0, float(step) / 10) if self.warmup else 1.0
        rate = self.lr * grown
        if self.limit > 0:
            rate = max(self.limit, rate)
        return {"rate": abs(rate), "shrink": 1 - self.lr * math.sqrt(step)}

    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
    ) -> None:
        assert not vectors
        param *= coefficients["shrink"]
        param -= coefficients["rate"] * grad


class LooksAtTheStep(Warmed):
    def coefficients(self, step: int) -> dict[str, float]:
        return {"rate": self.lr if step < 5 else self.lr / 2, "shrink": 1.0}


class Loops(Warmed):
    def coefficients(self, step: int) -> dict[str, float]:
        rate = self.lr
        for _ in range(step):
            rate *= 0.9
        return {"rate": rate, "shrink": 1.0}


def page_of(optimizer: Warmed) -> str:
    generator = np.random.default_rng(0)
    input, target = generator.standard_normal((2, 6, 3), np.float32)
    subject = Subject("a test", optimizer.model, MSELoss(), optimizer, "probabilities", scheduler=None)
    return proven_script(subject, [(input[:size], target[:size]) for size in (6, 3)], None)[1]


@pytest.mark.parametrize(
    ("settings", "lines"),
    [
        ({}, ("grown = min(1.0, float(step) / 10)", "rate = lr * grown")),
        ({"limit": 0.05}, ("grown = min(1.0, float(step) / 10)", "rate = max(limit, rate)")),
        ({"warmup": 0}, ("grown = 1.0", "rate = lr * grown")),
    ],
)
def test_calls_and_branches_on_settings(settings: dict[str, Any], lines: tuple[str, ...]) -> None:
    page = page_of(Warmed(Sequential(Linear(3, 3), seed=0), **settings))
    own = [line.strip() for line in page.splitlines()]
    assert all(line in own for line in lines), page
    assert any("abs(rate)" in line for line in own)
    assert any("1 - lr * math.sqrt(step)" in line for line in own)


@pytest.mark.parametrize("optimizer_class", [LooksAtTheStep, Loops])
def test_a_source_that_is_too_complicated_is_named(optimizer_class: type[Warmed]) -> None:
    with pytest.raises(ConfigError, match=f"{optimizer_class.__name__}.coefficients is too complicated for a script"):
        page_of(optimizer_class(Sequential(Linear(3, 3), seed=0)))
