"""What the cases of optimizers catch: mistakes that need a lr of their own, or a parameter of three dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from nn_manual.arrays import Array, Shape
from nn_manual.check.catalogue.cases import CaseResult, optimizer_cases
from nn_manual.optim import Adafactor, Optimizer


def failed(owner: type[Optimizer], settings: Mapping[str, Any]) -> list[CaseResult]:
    """The cases that fail: none, or the last one."""
    return [case for case in optimizer_cases(owner, settings, "float64", seed=0) if case.failure is not None]


def test_the_lr_of_an_example_is_the_first_steps() -> None:
    """With a lr of 0.1, or of a share of it, 1 / sqrt(step) is never the smaller one."""

    class Unbounded(Adafactor):
        def coefficients(self, step: int) -> dict[str, float]:
            return super().coefficients(step) | {"most": self.lr}

    Unbounded.__name__ = "Adafactor"
    assert not failed(Adafactor, {"lr": 10.0})
    assert not failed(Unbounded, {})
    assert [case.description for case in failed(Unbounded, {"lr": 10.0})] == ["random input, step 1"]


@pytest.mark.parametrize("num_dims", [1, 2, 3])
def test_parameters_have_one_to_three_dimensions(num_dims: int) -> None:
    class WrongInSome(Adafactor):
        def move(
            self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
        ) -> None:
            super().move(param, grad, vectors, coefficients)
            if param.ndim == num_dims:
                param *= 1.001

    WrongInSome.__name__ = "Adafactor"
    assert [case.description for case in failed(WrongInSome, {})] == ["random input, step 1"]


def test_an_optimizer_that_refuses_three_dimensions_moves_two() -> None:
    class OfMatrices(Adafactor):
        @classmethod
        def misfit(cls, shapes: Mapping[str, Shape]) -> str:
            return "" if all(len(shape) < 3 for shape in shapes.values()) else "too many dimensions"

    OfMatrices.__name__ = "Adafactor"
    of_all, of_two = (next(optimizer_cases(owner, {}, "float64", seed=0)) for owner in (Adafactor, OfMatrices))
    assert of_two.failure is None
    assert of_two.num_tensors < of_all.num_tensors
