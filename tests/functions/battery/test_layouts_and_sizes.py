"""Kernels that are wrong in one layout, or at one size, or in both together, in one dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from products import Product, inputs, product, raw
from torch.autograd.function import once_differentiable

from nn_manual import check_function


def in_another_order(tensor: torch.Tensor) -> bool:
    """Whether the last axis is in order, and two others aren't: taken for contiguous."""
    return tensor.stride(-1) == 1 and 0 < tensor.stride(-3) < tensor.stride(-2)


def with_channels_last(tensor: torch.Tensor) -> bool:
    """Whether it is taken for contiguous although channels come last."""
    formats: Any = {4: torch.channels_last, 5: torch.channels_last_3d}
    return not tensor.is_contiguous() and tensor.is_contiguous(memory_format=formats[tensor.ndim])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "is_misread", "shape"),
    [
        *(("permuted", in_another_order, shape) for shape in [(3, 4, 5), (2, 3, 4, 5), (2, 2, 3, 4, 5)]),
        *(("channels_last", with_channels_last, shape) for shape in [(2, 3, 4, 5), (2, 3, 2, 4, 5)]),
    ],
)
@pytest.mark.parametrize("family", ["grad_output", "inputs"])
def test_axes_may_have_changed_places_in_memory(
    layout: str, is_misread: Callable[[torch.Tensor], bool], shape: tuple[int, ...], family: str
) -> None:
    """It alone has every layout in memory."""
    def misread(tensor: torch.Tensor) -> torch.Tensor:
        return raw(tensor, int(tensor.storage_offset())) if is_misread(tensor) else tensor

    class Reads(Product):
        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            x, y = context.saved_tensors
            grad_output, x = (misread(grad_output), x) if family == "grad_output" else (grad_output, misread(x))
            return grad_output * y, grad_output * x

    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2)]
    report = check_function(Reads, product, given)
    assert [found.name for found in report.wrong] == [f"{family} {layout}"]
    assert check_function(Product, product, given).passed


@pytest.mark.slow
@pytest.mark.parametrize(("block", "sizes"), [(256, [256, 512, 1024, 2048, 4096]), (1024, [1024, 2048, 4096])])
def test_a_size_that_blocks_divide(block: int, sizes: list[int]) -> None:
    """It alone has a kernel that is right only where blocks divide the size."""
    class LosesLast(Product):
        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            grads = Product.backward(context, grad_output)
            if grads[0].shape[1] and grads[0].shape[1] % block == 0:
                grads[0][:, -1] = 0
            return grads

    report = check_function(LosesLast, product, inputs, sizes={"N": 4, "D": 5})
    assert [found.name for found in report.wrong] == [f"sizes D={size}" for size in sizes]


class LosesTail(Product):
    """Behind the last whole block of 16, where the gradient is not contiguous."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        grads = Product.backward(context, grad_output)
        columns = grads[0].shape[1]
        if not grad_output.is_contiguous() and columns > 16 and columns % 16:
            grads[0][:, columns // 16 * 16 :] = 0
        return grads


@pytest.mark.slow
def test_a_layout_meets_a_size_that_blocks_do_not_divide() -> None:
    """It alone has a tail that is wrong in one layout."""
    report = check_function(LosesTail, product, inputs, sizes={"N": 4, "D": 96})
    assert [found.name for found in report.wrong] == [
        f"grad_output {layout}" for layout in ("transposed", "expanded", "strided", "rows apart")
    ]
    assert "right on small inputs, but not on x 129x131, y 129x131: grad_x" in report.wrong[0].note
    taken = check_function(LosesTail, product, inputs, sizes={"N": 4, "D": (16, 96)}, dtypes=["float64", "float32"])
    assert taken.passed, taken  # it was said that it takes no others


@pytest.mark.slow
def test_each_dtype_meets_a_tail() -> None:
    """It alone has a tail that is wrong in one dtype."""
    class LosesLast(Product):
        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            grads = Product.backward(context, grad_output)
            if grad_output.dtype == torch.float16 and grad_output.shape[1] % 2:
                grads[0][:, -1] = 0
            return grads

    options: Any = {"sizes": {"N": 4, "D": 96}, "dtypes": ["float32", "float16"]}
    report = check_function(LosesLast, product, inputs, **options, skip=["grad_output", "inputs"])
    assert [found.name for found in report.wrong] == ["dtype float16 sizes D=1", "dtype float16 sizes D=129"]
    assert check_function(LosesLast, product, inputs, **options, skip=["grad_output", "inputs", "sizes"]).passed
    assert check_function(Product, product, inputs, **options).passed
    assert check_function(LosesLast, product, inputs, **options | {"sizes": {"N": 4, "D": (16, 96)}}).passed


class EvenAlone(LosesTail):
    @staticmethod
    def forward(context: Any, x: Any, y: Any) -> Any:
        if x.shape[1] % 2:
            raise ValueError("an odd size")
        return Product.forward(context, x, y)


@pytest.mark.slow
def test_a_size_with_a_tail_is_even_where_odd_ones_are_refused() -> None:
    """It alone refuses odd sizes."""
    def even(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.shape[1] % 2:
            raise ValueError("an odd size")
        return x * y

    report = check_function(EvenAlone, even, inputs, sizes={"N": 4, "D": 96})
    assert "but not on x 130x134, y 130x134: grad_x" in {row.name: row.note for row in report.wrong}[
        "grad_output transposed"
    ]


@pytest.mark.slow
def test_what_rounding_alone_changes_has_no_tail_to_meet() -> None:
    """A long recurrence of large weights: in another layout its products round in another order, and all is other."""

    def recurrence(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        state = torch.zeros_like(x[0])
        for row in x:
            state = torch.sin(row + weight @ state)
        return state

    def weighted(generator: torch.Generator, T: int, D: int) -> list[torch.Tensor]:
        return [torch.randn(T, D, generator=generator), torch.randn(D, D, generator=generator)]

    rows = ["cost", "kinds", "sizes", "twice"]
    report = check_function(recurrence, recurrence, weighted, sizes={"T": 4, "D": 5}, skip=rows)
    assert report.passed, report
