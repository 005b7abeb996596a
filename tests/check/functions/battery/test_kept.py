"""What a function keeps of one run for another, and the generators that it seeds."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from products import Product, inputs, product
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from nn_manual import check_function
from nn_manual.check.functions.report import FunctionReport

#: Rows that are not what this is about.
VALUES_AND_COST = ["kinds", "sizes", "cost"]


def check(function: Any, **options: Any) -> FunctionReport:
    return check_function(function, product, inputs, sizes={"N": 4, "D": 5}, skip=VALUES_AND_COST, **options)


def keeps(*, version: bool) -> type[Function]:
    """A kernel that keeps a converted weight by its address, and with `version` sees that the weight has changed."""
    kept: dict[str, Any] = {}

    class Keeps(Product):
        @staticmethod
        def forward(context: Any, x: Any, y: Any) -> Any:
            key = (y.data_ptr(), y.dtype, y.shape, y._version if version else 0)
            if kept.get("key") != key:
                kept.update(key=key, weight=y, converted=y.detach().clone())  # the weight lives: so does its address
            return Product.forward(context, x, kept["converted"])

        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            return Product.backward(context, grad_output)

    return Keeps


def test_a_weight_that_is_kept_by_its_address() -> None:
    assert check(keeps(version=True)).passed
    (row,) = check(keeps(version=False)).wrong
    assert row.name == "in place"
    assert row.note.startswith("differs once its inputs have changed in place, as a weight does: something is kept")
    assert "output[" in row.note


def test_arrays_change_in_place_for_a_pair() -> None:
    kept: dict[str, Any] = {}

    def forward(x: Any, y: Any) -> Any:
        if kept.get("address") != y.ctypes.data:
            kept.update(address=y.ctypes.data, converted=y.copy(), weight=y)
        return x * kept["converted"], (x, y)

    def backward(saved: Any, grad_output: Any) -> Any:
        x, y = saved
        return grad_output * y, grad_output * x

    given = [np.random.default_rng(i).standard_normal((3, 4)) for i in range(2)]
    (row,) = check_function((forward, backward), product, given, skip=VALUES_AND_COST).wrong
    assert row.name == "in place"
    right = check_function((lambda x, y: (x * y, (x, y)), backward), product, given, skip=VALUES_AND_COST)
    assert {row.name: row.verdict for row in right.rows}["in place"] == "right"


def test_a_module_whose_parameters_change_in_place() -> None:
    class Packed(torch.nn.Linear):
        packed: tuple[int, torch.Tensor, torch.Tensor] | None = None

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.packed is None or self.packed[0] != self.weight.data_ptr():
                self.packed = (self.weight.data_ptr(), self.weight.detach().clone(), self.weight)
            return x @ (self.weight + self.packed[1] - self.weight.detach()).T + self.bias

    x = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    report = check_function(Packed(3, 2).double(), torch.nn.Linear(3, 2).double(), [x], skip=VALUES_AND_COST)
    assert [row.name for row in report.wrong] == ["in place"]


@pytest.mark.parametrize(
    ("seeds", "whose"),
    [
        (lambda: torch.manual_seed(3), "torch's"),
        (lambda: np.random.seed(3), "numpy's"),
        (lambda: random.seed(3), "Python's"),
        (lambda: (torch.rand(2), np.random.rand(), random.random()), ""),
    ],
)
def test_a_generator_that_is_seeded(seeds: Callable[[], object], whose: str) -> None:
    class Seeds(Product):
        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            seeds()
            return Product.backward(context, grad_output)

    notes = {row.name: row.note for row in check(Seeds).wrong}
    assert notes.keys() == ({"settings"} if whose else set())
    assert not whose or f"it changes the seed of {whose} generator" in notes["settings"]
