"""float64, where the inputs are float32 and nobody named a dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.autograd import Function

from nn_manual import check_function

X = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))


def cube(x: torch.Tensor) -> torch.Tensor:
    return x**3


class InFloat32(Function):
    """What a fused kernel does whatever it gets: it computes in float32."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x)
        return (x.float() ** 3).to(x.dtype)

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        return (grad_output.float() * 3 * x.float() ** 2).to(x.dtype)


class HasAPath(InFloat32):
    """It has a path for float64, with another factor."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        return grad_output * (2 if x.dtype == torch.float64 else 3) * x**2


class Refuses(InFloat32):
    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        if x.dtype != torch.float32:
            raise TypeError("float32 alone")
        return InFloat32.forward(context, x)


class ReturnsFloat32(InFloat32):
    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        return InFloat32.forward(context, x).float()


def dtypes(function: Any, given: Any, **options: Any) -> dict[str, tuple[str, str]]:
    report = check_function(function, cube, given, only=["dtype"], **options)
    assert report.agrees, report
    return {row.name: (row.verdict, row.note) for row in report.rows if row.family == "dtype"}


def test_float64_is_tried_where_nobody_named_a_dtype() -> None:
    assert dtypes(InFloat32, [X]) == {"dtype float64": ("right", "")}
    assert not dtypes(InFloat32, [X], dtypes=["float32"])
    assert not dtypes(cube, [X.double()])
    assert not dtypes(InFloat32, [X.bfloat16()])


def test_other_numbers_in_float64_are_wrong() -> None:
    verdict, note = dtypes(HasAPath, [X])["dtype float64"]
    assert verdict == "WRONG"
    assert note.startswith("grad_x, random upstream[")
    assert note.endswith("0.666667 times the reference; if it is for float32 alone, dtypes=['float32'] says so")
    assert not dtypes(HasAPath, [X], dtypes=["float32"])


def test_a_function_may_refuse_float64() -> None:
    verdict, note = dtypes(Refuses, [X])["dtype float64"]
    assert verdict == "skipped"
    assert note.startswith("Refuses: forward raised TypeError: float32 alone at ")
    assert note.endswith("; it may not be for float64; dtypes=['float32', 'float64'] says that it is")
    verdict, note = dtypes(ReturnsFloat32, [X])["dtype float64"]
    assert verdict == "skipped"
    assert note.startswith("ReturnsFloat32: output is float32, the reference's float64; it may not be for float64")


def test_a_pair_on_float32_arrays_is_tried_too() -> None:
    def backward(grad: Any, saved: Any) -> Any:
        (x,) = saved
        return grad * (2 if x.dtype == np.float64 else 3) * x * x

    verdict, _ = dtypes((lambda x: (x * x * x, (x,)), backward), [X.numpy()])["dtype float64"]
    assert verdict == "WRONG"
