"""A gradient of the output that is zero in part, as `y[:, 0].sum()` and a masked loss give it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from products import Product, inputs, product

from nn_manual import check_function


class Sum(torch.autograd.Function):
    """Sums along the last axis, back from the last step, until `ends` says that nothing is left."""

    @staticmethod
    def forward(_: Any, x: Any) -> Any:
        return x.cumsum(1)

    @staticmethod
    def ends(_: torch.Tensor) -> bool:
        return False

    @classmethod
    def backward(cls, _: Any, grad_output: Any) -> Any:
        grad, total = torch.zeros_like(grad_output), torch.zeros_like(grad_output[:, 0])
        for step in reversed(range(grad_output.shape[1])):
            total = total + grad_output[:, step]
            if cls.ends(total):
                break
            grad[:, step] = total
        return grad


class StopsEarly(Sum):
    @staticmethod
    def ends(total: torch.Tensor) -> bool:
        return not total.any()


class SkipsZeros(Product):
    """Of steps whose gradient is zero only in part."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        scattered = int(grad_output.any(0).sum()) > 1 and int(grad_output.any(1).sum()) > 1
        is_masked = scattered and not bool(grad_output.all())
        return Product.backward(context, grad_output * (not is_masked))


def steps(generator: torch.Generator, N: int, T: int) -> list[torch.Tensor]:
    return [torch.randn(N, T, generator=generator, dtype=torch.float64)]


@pytest.mark.parametrize(
    ("function", "reference", "make", "sizes", "where"),
    [
        (StopsEarly, lambda x: x.cumsum(1), steps, {"N": 4, "T": 6}, "at [0] along axis -1"),
        (SkipsZeros, product, inputs, {"N": 4, "D": 5}, "in a random half"),
    ],
)
def test_a_backward_that_loses_what_stands_beside_zeros(
    function: Any, reference: Any, make: Any, sizes: dict[str, int], where: str
) -> None:
    report = check_function(function, reference, make, sizes=sizes, only=["grad_output"])
    (row,) = report.wrong
    assert row.name == "grad_output in part"
    assert row.note.startswith(f"where it is zero except {where}: grad_x, random upstream[")


def test_a_sum_that_goes_all_the_way_is_right() -> None:
    report = check_function(
        Sum, lambda x: x.cumsum(1), steps, sizes={"N": 4, "T": 6}, only=["grad_output in part"], dtypes=["float32"]
    )
    assert report.passed
    assert {row.name: row.verdict for row in report.rows}["grad_output in part"] == "right"


def test_a_random_half_is_not_the_mask_that_the_inputs_have() -> None:
    """Both are drawn from one seed: the mask is what the generator of the inputs draws first."""

    class Masked(torch.autograd.Function):
        """Takes a gradient for masked already if it is zero in part, as far as the mask says."""

        @staticmethod
        def forward(context: Any, x: Any, mask: Any) -> Any:
            context.save_for_backward(mask)
            return x * mask

        @staticmethod
        def backward(context: Any, grad_output: Any) -> Any:
            (mask,) = context.saved_tensors
            is_everywhere = bool(grad_output.any(0).all() and grad_output.any(1).all())
            is_masked = is_everywhere and not bool(grad_output.all())
            return grad_output * (1 if is_masked else mask), None

    def with_mask(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
        mask = torch.rand(N, D, generator=generator) < 0.5
        return [torch.randn(N, D, generator=generator, dtype=torch.float64), mask]

    report = check_function(
        Masked, lambda x, mask: x * mask, with_mask, sizes={"N": 7, "D": 6}, only=["grad_output in part"]
    )
    assert [row.name for row in report.wrong] == ["grad_output in part"]
    assert report.wrong[0].note.startswith("where it is zero except in a random half: grad_x, random upstream[")


class Root(torch.autograd.Function):
    """The root of each number; of a negative one it is NaN."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x)
        return x.sqrt()

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        return grad_output / (2 * x.sqrt())


class HidesInNan(Root):
    """Where there is no gradient, it returns NaN for all numbers."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        grad = Root.backward(context, grad_output)
        return grad if grad_output.any() else torch.full_like(grad, float("nan"))


def test_no_gradient_may_be_nan_only_where_the_references_is() -> None:
    x = torch.tensor([-1.0, 0.5, 2.0], dtype=torch.float64)
    assert check_function(Root, torch.sqrt, [x]).wrong == ()
    wrong = check_function(HidesInNan, torch.sqrt, [x]).wrong
    assert [row.note for row in wrong if row.name == "grad_output absent"] == [
        "grad_x is not zero where no output has a gradient"
    ]
