"""The rows on CUDA tensors: they run where there is a device."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from products import Product, inputs, product
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.grad import conv2d_input, conv2d_weight

from nn_manual import check_function
from nn_manual.functions.battery import families, trial
from nn_manual.functions.battery.families import FAMILIES
from nn_manual.functions.function_report import AS_ABOVE, FunctionReport

on_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")


class WrongThere(Product):
    """Like a kernel of which the device has another version."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        grad_x, grad_y = Product.backward(context, grad_output)
        return grad_x, 2 * grad_y if grad_y.is_cuda else grad_y


def check(function: Any, reference: Any = product, **options: Any) -> FunctionReport:
    return check_function(function, reference, inputs, sizes={"N": 4, "D": 5}, **options)


def verdicts(report: FunctionReport) -> dict[str, tuple[str, str]]:
    return {row.variant: (row.verdict, row.note) for row in report.rows if row.family == "cuda"}


def test_without_a_device_the_row_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert verdicts(check(Product, only=["cuda"])) == {"": ("skipped", "there is no CUDA device here")}


@pytest.mark.parametrize("of_reference", [False, True])
def test_a_device_that_is_lost_ends_the_rows(monkeypatch: pytest.MonkeyPatch, *, of_reference: bool) -> None:
    """The row that lost it is named; where the reference lost it, nobody is blamed. The CPU passes for a device."""
    error = "CUDA error: device-side assert triggered"
    lost: list[str] = []

    def on_infinities(x: torch.Tensor) -> None:
        if lost or x.isinf().any():
            lost.append(error)
            raise RuntimeError(error)

    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        None if of_reference else on_infinities(x)
        return x * y

    def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        on_infinities(x) if of_reference else None
        return x * y

    monkeypatch.setattr(families, "what_lost_the_device", lambda: "".join(lost[:1]))
    report = check(function, reference, skip=["two forwards", "changed", "kinds"])
    (row,) = [row for row in report.rows if row.name == "not finite inf"]
    if of_reference:
        assert report.passed
        assert row.verdict == "skipped"
        assert row.note.startswith(f"the reference raised RuntimeError: {error} at {__file__}:")
    else:
        assert report.wrong == (row,)
        words = f"a kernel of it ended the use of the device in this process: {error} at {__file__}:"
        assert row.note.startswith(words)
    others = report.rows[report.rows.index(row) + 1 :]
    assert {(other.verdict, other.note) for other in others} == {("skipped", AS_ABOVE)}


def test_a_device_that_is_lost_at_once_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """No row runs then. The CPU passes for a device."""

    def lost(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.numel():
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        return x * y

    monkeypatch.setattr(trial, "what_lost_the_device", lambda: "CUDA error")
    report = check_function(lost, product, inputs, sizes={"N": 400, "D": 500})
    assert report.problem is not None
    assert report.problem.startswith("lost: forward raised RuntimeError: CUDA error: an illegal memory access was enc")
    assert not report.rows


@pytest.mark.slow
@on_cuda
@pytest.mark.parametrize("dtypes", [None, ["float32", "bfloat16"], ["float16"]])
def test_a_right_function_is_right_there(dtypes: Any) -> None:
    """It alone runs every row on a device."""
    report = check(Product, dtypes=dtypes)
    assert report.passed, report
    found = verdicts(report)
    of_families = {family for family in FAMILIES if any(f"{name} ".startswith(f"{family} ") for name in found)}
    others = {"cuda", "eval", "autocast", "dtype", "full size"}  # not for these dtypes and sizes
    assert of_families >= FAMILIES.keys() - others


@pytest.mark.slow
@on_cuda
def test_what_is_wrong_only_there_is_named() -> None:
    """It alone has a function that is wrong on a device."""
    report = check(WrongThere, skip=["sizes", "kinds"])
    assert report.agrees
    verdict, note = verdicts(report)["grad_output transposed"]
    assert verdict == "WRONG"
    assert "2 times the reference" in note
    assert all(row.family == "cuda" for row in report.wrong)


@pytest.mark.slow
@on_cuda
def test_inputs_may_lie_there() -> None:
    """It alone is given CUDA tensors."""
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(0)).cuda()
    assert check_function(Product, product, [x, 2 * x]).passed
    (row,) = [row for row in check_function(Product, product, [x, 2 * x], only=["cuda"]).rows if row.family == "cuda"]
    assert (row.verdict, row.note) == ("skipped", "the inputs lie on a CUDA device: all rows have run there")
    report = check_function(WrongThere, product, [x, 2 * x], only=["writes"])
    assert [failure.name for failure in report.failures] == ["grad_y, random upstream", "grad_y, negative upstream"]


@pytest.mark.slow
@on_cuda
def test_a_kink_is_a_kink_there() -> None:
    """It alone meets a kink on a device: the slopes there are measured on it."""

    class Relu(Function):
        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            context.save_for_backward(x)
            return x.clamp(min=0)

        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            (x,) = context.saved_tensors
            return grad_output * (0.5 * (x >= 0) + 0.5 * (x > 0))

    x = torch.tensor([[-1.0, 0.0, 2.0], [0.0, 3.0, -2.0]]).cuda()
    report = check_function(Relu, torch.relu, [x], only=["kinds"])
    assert report.passed, report
    assert "at a kink of the reference with slopes " in " ".join(report.sources)


@pytest.mark.slow
@on_cuda
def test_a_domain_holds_there() -> None:
    """It alone moves CUDA tensors into a domain."""
    x = torch.rand(4, 5, generator=torch.Generator().manual_seed(0)).cuda() + 1
    assert check_function(torch.log, lambda x: x.log(), [x], domain="positive").passed


@pytest.mark.slow
@on_cuda
def test_integers_that_repeat_there() -> None:
    """It alone has a permutation on a device."""

    def gather(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        return x.index_select(0, rows)

    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(0)).cuda()
    report = check_function(gather, lambda x, rows: x[rows], [x, torch.tensor([2, 0, 1, 3]).cuda()])
    assert report.passed, report


@pytest.mark.slow
@on_cuda
def test_kernels_that_add_in_no_order_are_right_there() -> None:
    """It alone differs by rounding on a device, and draws from its generator, which goes on as before."""

    class Adds(Product):
        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            return Product.backward(context, grad_output * (1 + 1e-14 * torch.rand_like(grad_output)))

    torch.cuda.manual_seed(5)
    before = torch.cuda.get_rng_state()
    report = check(Adds, only=["determinism"])
    assert torch.equal(torch.cuda.get_rng_state(), before)
    found = {row.name: (row.verdict, row.note) for row in report.rows if row.verdict != "skipped"}
    words = "grad_x differs when it runs twice on the same inputs"
    assert found["determinism"] == ("WRONG", f"{words}; a function that is random by design takes a seed or a mask")
    assert found["cuda determinism"] == ("right", f"{words}, by no more than rounding")


@pytest.mark.slow
@on_cuda
def test_convolutions_keep_float32s_digits_there() -> None:
    """It alone convolves on a device, where torch rounds to TF32 by default, and otherwise in each layout."""

    class Convolution(Function):
        @staticmethod
        def forward(context: Any, x: Any, weight: Any) -> Any:
            context.save_for_backward(x, weight)
            return torch.conv2d(x, weight, padding=1)

        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            x, weight = context.saved_tensors
            grad_x = conv2d_input(x.shape, weight, grad_output, padding=1)  # type: ignore[no-untyped-call] # torch has no types here
            grad_weight = conv2d_weight(x, weight.shape, grad_output, padding=1)  # type: ignore[no-untyped-call] # as above
            return grad_x, grad_weight

    def images(generator: torch.Generator, N: int, C: int, H: int) -> list[torch.Tensor]:
        x = torch.randn(N, C, H, H, generator=generator)
        return [x.cuda(), torch.randn(4, C, 3, 3, generator=generator).cuda()]

    report = check_function(
        Convolution, lambda x, weight: torch.conv2d(x, weight, padding=1), images, sizes={"N": 3, "C": 16, "H": 16}
    )
    assert report.passed, report


#: Its backward asks for a row that isn't there, where there are as many rows as it is given.
LOSES = """
import torch
from torch.autograd.function import once_differentiable
from torch.nn.grad import conv2d_input, conv2d_weight
from nn_manual import check_function

class Square(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x * x

    @staticmethod
    @once_differentiable
    def backward(context, grad_output):
        (x,) = context.saved_tensors
        rows = torch.arange(len(x), device=x.device) + (len(x) == {rows})
        return (2 * x * grad_output)[rows]

def inputs(generator, N, D):
    return [torch.randn(N, D, generator=generator).cuda()]

report = check_function(Square, lambda x: x * x, inputs, sizes=dict(N=7, D=5))
print(report.problem, *(row.note for row in report.wrong), *{row.note for row in report.skipped}, sep="\\n")
"""


@pytest.mark.slow
@on_cuda
@pytest.mark.parametrize("rows", [1, 7])
def test_a_kernel_that_loses_the_device_is_named(rows: int) -> None:
    """It alone loses a device, in a process of its own: among the rows, and in the comparison of the values."""
    ran = subprocess.run([sys.executable, "-c", LOSES.format(rows=rows)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "AcceleratorError: CUDA error: device-side assert triggered at <string>:" in ran.stdout
