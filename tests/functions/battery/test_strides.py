"""Kernels that read memory by strides which aren't those of the array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import as_strided

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
