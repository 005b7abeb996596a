"""All sizes 1 at once."""

from __future__ import annotations

from typing import Any

import torch
from products import Product, inputs, product

from nn_manual import check_function


class HalfOfOne(Product):
    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        grad_x, grad_y = Product.backward(context, grad_output)
        return grad_x if grad_output.numel() != 1 else grad_x / 2, grad_y


def test_one_number_alone() -> None:
    report = check_function(HalfOfOne, product, inputs, sizes={"N": 4, "D": 5}, only=["sizes"])
    assert [row.name for row in report.wrong] == ["sizes N=1,D=1"]
    assert "1/2 of the reference" in report.wrong[0].note


def test_one_dimension_and_sizes_that_are_chosen_have_no_such_row() -> None:
    for sizes in ({"N": 4}, {"N": 4, "D": (3, 5)}):
        names = {
            row.name
            for row in check_function(
                Product,
                product,
                lambda generator, N, D=2: inputs(generator, N, D),
                sizes=sizes,  # type: ignore[arg-type] # of either type
                only=["sizes"],
            ).rows
        }
        assert "sizes N=1" in names
        assert not any(name.startswith("sizes N=1,") for name in names)


def test_a_reference_that_takes_no_single_number_skips_the_row() -> None:
    def several(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.numel() == 1:
            raise ValueError("too few")
        return x * y

    rows = check_function(Product, several, inputs, sizes={"N": 4, "D": 5}, only=["sizes"]).rows
    notes = {row.name: row.note for row in rows if row.verdict == "skipped"}
    assert notes["sizes N=1,D=1"].startswith("the reference raised ValueError: too few at ")
