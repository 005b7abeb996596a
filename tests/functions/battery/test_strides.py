"""Kernels that read memory by strides which aren't those of the array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import as_strided
from slow_cases import slow

from nn_manual import HandwrittenClass, check_function

X = np.random.default_rng(0).standard_normal((4, 3))


def flat_memory(x: Any) -> Any:
    """What a kernel in C reads that gets a pointer alone; an expanded array has not that much memory."""
    return x.copy() if 0 in x.strides else as_strided(x, x.shape, np.empty(x.shape).strides).copy()


class Square:
    def forward(self, x: Any) -> Any:
        self.x = flat_memory(x)
        return self.x**2

    def backward(self, dout: Any) -> Any:
        return 2 * dout * self.x


PAIR = (lambda x: (flat_memory(x) ** 2, flat_memory(x)), lambda dout, x: 2 * dout * x)
RIGHT = (lambda x: (x**2, x), lambda dout, x: 2 * dout * x)


@pytest.mark.parametrize("function", [PAIR, HandwrittenClass(Square, {})])
def test_arrays_have_each_layout_too(function: Any) -> None:
    report = check_function(function, lambda x: x**2, [X], only=["inputs"])
    assert [row.name for row in report.wrong] == ["inputs transposed", "inputs strided", "inputs rows apart"]
    right = check_function(RIGHT, lambda x: x**2, [X], only=["inputs"])
    assert right.passed, right


@pytest.mark.parametrize("family", ["grad_output", "inputs"])
def test_rows_that_lie_apart(family: str) -> None:
    """The kernel takes rows for neighbours: only an array whose last axis isn't in order is copied."""

    def misread(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.stride(-1) != 1 or tensor.stride(0) < tensor.shape[1]:
            tensor = tensor.contiguous()
        return tensor.as_strided(tensor.shape, (tensor.shape[1], 1), tensor.storage_offset())

    class Squares(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            context.save_for_backward(misread(x) if family == "inputs" else x)
            return x**2

        @staticmethod
        def backward(context: Any, grad_output: Any) -> Any:
            (x,) = context.saved_tensors
            return 2 * x * (misread(grad_output) if family == "grad_output" else grad_output)

    report = check_function(Squares, lambda x: x**2, [torch.from_numpy(X)], skip=["twice"])
    assert [row.name for row in report.wrong] == [f"{family} rows apart"]


def with_strides_of(other: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """Reads the tensor by the other's strides, where these stay inside its memory."""
    last = sum((length - 1) * stride for length, stride in zip(tensor.shape, other.stride(), strict=True))
    enough = tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()
    return tensor.as_strided(tensor.shape, other.stride(), tensor.storage_offset()) if last < enough else tensor * 0


class Triple(torch.autograd.Function):
    """x * y * z"""

    @staticmethod
    def forward(context: Any, x: Any, y: Any, z: Any) -> Any:
        context.save_for_backward(x, y, z)
        return x * y * z

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        x, y, z = context.saved_tensors
        return grad_output * y * z, grad_output * x * z, grad_output * x * y


def triple(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    return x * y * z


@pytest.mark.parametrize(("whose", "of"), [(0, 1), slow(0, 2), slow(1, 0), (1, 2), (2, 0), slow(2, 1)])
def test_the_strides_of_one_input_are_taken_for_anothers(whose: int, of: int) -> None:
    """The kernel copies all if the first of the two isn't contiguous."""

    class Misreads(Triple):
        @staticmethod
        def forward(context: Any, *several: Any) -> Any:
            tensors = list(several)
            if not tensors[whose].is_contiguous():
                tensors = [tensor.contiguous() for tensor in tensors]
            tensors[of] = with_strides_of(tensors[whose], tensors[of])
            return Triple.forward(context, *tensors)

    given = [torch.from_numpy(X + i) for i in range(3)]
    report = check_function(Misreads, triple, given, only=["inputs"], skip=["inputs same"])
    assert {row.name for row in report.wrong} >= {"inputs transposed", "inputs rows apart"}
    assert "this layout: output[" in report.wrong[0].note
    assert check_function(Triple, triple, given, only=["inputs"]).passed


def test_the_strides_of_one_gradient_are_taken_for_anothers() -> None:
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(_: Any, x: Any) -> Any:
            return 2 * x, 3 * x

        @staticmethod
        def backward(_: Any, grad: Any, other: Any) -> Any:
            return 2 * grad + 3 * with_strides_of(grad, other)

    report = check_function(Both, lambda x: (2 * x, 3 * x), [torch.from_numpy(X)], only=["grad_output"])
    assert {row.name for row in report.wrong} == {
        f"grad_output {layout}" for layout in ("transposed", "expanded", "strided", "rows apart")
    }
    assert report.wrong[0].note.startswith("where output 1 alone has this layout: grad_x, random upstream[")


def test_an_array_in_fortrans_order_stays_in_it() -> None:
    seen: list[bool] = []

    def forward(x: Any) -> Any:
        seen.append(x.flags.f_contiguous)
        return x**2, x

    check_function((forward, RIGHT[1]), lambda x: x**2, [np.asfortranarray(X)], skip=["inputs", "sizes"])
    assert seen[0]


def written_over(dout: Any, x: Any) -> Any:
    x *= 2 * dout
    return x


def test_who_writes_over_an_array_is_not_tried_on_values_that_share_memory() -> None:
    options: Any = {"only": ["inputs", "writes"], "skip": ["writes saved"]}
    report = check_function((RIGHT[0], written_over), lambda x: x**2, [X], **options)
    assert report.passed, report
    notes = {row.name: row.note for row in report.skipped}
    words = "it writes into its inputs, which have one place in memory for several numbers here"
    assert notes["inputs expanded"] == words


def test_pairs_that_are_viewed_as_complex_numbers_begin_at_even_places() -> None:
    """As rotary positions are written with complex numbers: torch itself refuses an odd offset."""

    def turned(x: torch.Tensor) -> torch.Tensor:
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
        return torch.view_as_real(pairs * 1j).flatten(-2)

    def definition(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)

    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    report = check_function(turned, definition, [x], only=["inputs with an offset", "grad_output with an offset"])
    assert report.passed, report
    found = {row.name: row.note for row in report.skipped if row.name.endswith("with an offset")}
    why = "torch.view_as_complex refuses an odd offset in memory"
    assert found == {"grad_output with an offset": why, "inputs with an offset": why}
