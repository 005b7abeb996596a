"""The battery's rows: for each, a function that only this row finds wrong, and what it says."""

from __future__ import annotations

import itertools
import re
import sys
from io import StringIO
from typing import Any

import pytest
import torch
import tqdm.std
from products import Blocked, Product, inputs, product, raw
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from nn_manual import check_function
from nn_manual.functions.function_report import FunctionReport


class ReadsGradient(Product):
    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        return Product.backward(context, raw(grad_output, grad_output.storage_offset()))


class ForgetsOffset(Product):
    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        grad = raw(grad_output, 0) if grad_output.is_contiguous() else grad_output
        return Product.backward(context, grad)


class DividesByGradient(Product):
    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        return Product.backward(context, grad_output / grad_output.abs().max() * grad_output.abs().max())


class CutsGradient(Product):
    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        return Product.backward(context, grad_output.clamp(-20, 20))


class LosesTinyGradient(Product):
    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        return Product.backward(context, torch.where(grad_output.abs() < 1e-5, 0, grad_output))


class StopsAtZero(Product):
    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        return Product.backward(context, grad_output * grad_output.all())


class NeedsGradient(Product):
    @staticmethod
    def forward(context: Any, x: Any, y: Any) -> Any:
        context.set_materialize_grads(False)
        return Product.forward(context, x, y)


class NeedsFirst(Product):
    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        grads = Product.backward(context, grad_output)
        return grads if context.needs_input_grad[0] else (None, None)


class Shared(Product):
    saved: Any = None

    @staticmethod
    def forward(_: Any, x: Any, y: Any) -> Any:
        Shared.saved = x.detach().clone(), y.detach().clone()
        return x * y

    @staticmethod
    @once_differentiable
    def backward(_: Any, grad_output: Any) -> Any:
        x, y = Shared.saved
        return grad_output * y, grad_output * x


class CachesFirst(Product):
    """The first backward after a forward leaves its inputs to the next ones."""

    cache: Any = None

    @staticmethod
    def forward(context: Any, x: Any, y: Any) -> Any:
        CachesFirst.cache = None
        return Product.forward(context, x, y)

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        CachesFirst.cache = CachesFirst.cache or context.saved_tensors
        x, y = CachesFirst.cache
        return grad_output * y, grad_output * x


class Once(Product):
    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        if getattr(context, "used", False):
            raise RuntimeError("what was kept is gone")
        context.used = True
        return Product.backward(context, grad_output)


class Evaluates(Product):
    @staticmethod
    def run(x: Any, y: Any) -> Any:
        return Evaluates.apply(x, y) if torch.is_grad_enabled() else x + y  # type: ignore[no-untyped-call] # torch has none


class ReadsVersion(Product):
    @staticmethod
    def forward(context: Any, x: Any, y: Any) -> Any:
        context.version = x._version
        return Product.forward(context, x, y)


class Jitters(Product):
    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        return Product.backward(context, grad_output * (1 + 1e-14 * torch.rand_like(grad_output)))


class ReadsInput(Product):
    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        x, y = context.saved_tensors
        return grad_output * y, grad_output * raw(x, x.storage_offset())


class Clips(Product):
    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        x, y = context.saved_tensors
        return grad_output * y.clamp(-20, 20), grad_output * x


class RefusesEmpty(Product):
    @staticmethod
    def forward(context: Any, x: Any, y: Any) -> Any:
        x.reshape(-1)[0].item()
        return Product.forward(context, x, y)


class SecondOrderLost(Product):
    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        x, y = context.saved_tensors
        return grad_output * y.detach(), grad_output * x.detach()


WRONG: list[tuple[Any, str, str]] = [
    (ReadsGradient, "grad_output transposed", "grad_x, random upstream[2, 3] is 1.2123, the reference has -2.11065"),
    (ReadsGradient, "grad_output expanded", "grad_x, random upstream"),
    (ReadsGradient, "grad_output strided", "grad_x, random upstream"),
    (ForgetsOffset, "grad_output with an offset", "grad_x, random upstream"),
    (CutsGradient, "grad_output large", "grad_x, random upstream"),
    (LosesTinyGradient, "grad_output small", "grad_x, random upstream"),
    (StopsAtZero, "grad_output in part", "where it is zero except at [0] along axis -1: grad_x, random upstream"),
    (DividesByGradient, "grad_output zero", "not finite"),
    (NeedsGradient, "grad_output absent", "raised TypeError: unsupported operand"),
    (NeedsFirst, "requires_grad y alone", "zero everywhere: the gradient was not passed on"),
    (Shared, "two forwards first back first", "what backward needs must travel on the context"),
    (CachesFirst, "two forwards first back first", "what backward needs must travel on the context"),
    (CachesFirst, "two forwards last back first", "what backward needs must travel on the context"),
    (Once, "retain_graph", "raised RuntimeError: what was kept is gone at "),
    (Evaluates.run, "no_grad", "output"),
    (ReadsVersion, "no_grad inference_mode", "raised RuntimeError: Inference tensors do not track version counter"),
    (Jitters, "determinism", "grad_x differs when it runs twice on the same inputs"),
    (ReadsInput, "inputs transposed", "grad_y, random upstream"),
    (Clips, "kinds spread", "grad_x, random upstream"),
    (Blocked, "sizes D=129", "grad_x, random upstream"),
    (RefusesEmpty, "sizes N=0", "raised IndexError"),
    (SecondOrderLost, "twice", "once_differentiable above backward"),
]


def check(function: Any, **options: Any) -> FunctionReport:
    return check_function(function, product, inputs, sizes={"N": 4, "D": 5}, **options)


@pytest.mark.slow
@pytest.mark.parametrize(("function", "row", "words"), WRONG, ids=[row for _, row, _ in WRONG])
def test_a_row_names_what_the_values_do_not_show(function: Any, row: str, words: str) -> None:
    """It alone has a wrong function for each row of the battery."""
    report = check(function)
    assert report.agrees, report
    assert not report.passed
    assert words in {found.name: found.note for found in report.wrong}[row]
    assert not check(function, skip=["cost"]).passed
    family = row.split(" ")[0] if not row.startswith("two") else "two forwards"
    assert not any(found.family == family for found in check(function, skip=[family]).wrong)


def test_a_right_function_passes_every_row() -> None:
    report = check(Product)
    assert report.passed, report
    assert {row.name for row in report.skipped} <= {"cuda"}
    names = {row.name for row in report.rows}
    assert names >= {row for _, row, _ in WRONG} | {"grad_output zero", "requires_grad x alone", "cost", "kinds tied"}
    assert names >= {f"sizes {name}={size}" for name in "ND" for size in (1, 2, 3, 7, 13, 16, 17, 127, 128, 129, 257)}


def test_a_function_that_says_so_is_differentiable_once() -> None:
    class SaysOnce(Product):
        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            return Product.backward(context, grad_output.detach())

    (row,) = [row for row in check(SaysOnce).rows if row.family == "twice"]
    assert (row.verdict, row.note) == ("right", "differentiable once, and says so")


@pytest.mark.slow
def test_rows_leave_out_what_the_values_have_shown() -> None:
    """It alone counts the rows after a wrong value."""
    class Twice(ReadsGradient):
        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            grad_x, grad_y = ReadsGradient.backward(context, grad_output)
            return 2 * grad_x, grad_y

    report = check(Twice)
    assert {failure.name.partition(",")[0] for failure in report.failures} == {"grad_x"}
    layouts = ("transposed", "expanded", "strided", "rows apart")
    assert {row.name for row in report.wrong} == {f"grad_output {name}" for name in layouts}
    assert all("grad_y" in row.note for row in report.wrong)
    assert "without grad_x, wrong above" in str(report)


def test_a_crash_in_one_row_is_a_row_with_its_line() -> None:
    report = check(RefusesEmpty)
    (row,) = [row for row in report.wrong if row.name == "sizes N=0"]
    assert f"at {__file__}:" in row.note
    assert sum(row.verdict == "right" for row in report.rows) > 30


def test_a_reference_that_raises_in_a_row_says_nothing_about_the_function() -> None:
    def narrow(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if len(x) > 100:
            raise ValueError("too many")
        return x * y

    report = check_function(Product, narrow, inputs, sizes={"N": 4, "D": 5})
    skipped = {row.name: row.note for row in report.skipped}
    assert skipped["sizes N=127"].startswith(f"the reference raised ValueError: too many at {__file__}:")
    assert report.passed


def test_an_output_that_nobody_used() -> None:
    class SineCosine(Function):
        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            context.set_materialize_grads(False)
            context.save_for_backward(x)
            return x.sin(), x.cos()

        @staticmethod
        def backward(context: Any, grad_sine: Any, grad_cosine: Any) -> Any:
            (x,) = context.saved_tensors
            grad = 0 if grad_sine is None else grad_sine * x.cos()
            return grad - grad_cosine * x.sin()

    report = check_function(SineCosine, lambda x: (x.sin(), x.cos()), [torch.randn(3, dtype=torch.float64)])
    (row,) = [row for row in report.wrong if row.name == "grad_output absent"]
    assert "raised TypeError" in row.note


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("now", "is_shown"), [(1.99, False), (2.0, True)])
def test_a_bar_shows_how_far_it_is_after_a_while(
    now: float, *, is_shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock says `now` seconds from the first row on."""
    clock = itertools.chain([0.0], itertools.repeat(now))
    monkeypatch.setattr(tqdm.std, "time", lambda: next(clock))
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    check_function(Product, product, [torch.ones(2), torch.ones(2)], skip=["cost", "sizes"])
    assert ("Product:" in terminal.getvalue()) is is_shown


def test_a_class_is_no_function() -> None:
    with pytest.raises(TypeError, match=r"^Tanh is a class: pass an instance of it, Tanh\(\.\.\.\)$"):
        check_function(torch.nn.Tanh, torch.tanh, [torch.ones(2)])


@pytest.mark.slow
def test_time_and_memory_stand_in_one_row() -> None:
    """It alone measures a slow function."""
    class Wastes(Product):
        @staticmethod
        def forward(context: Any, x: Any, y: Any) -> Any:
            context.waste = x.new_zeros(1_000_000)
            return Product.forward(context, x, y)

    (row,) = [row for row in check(Wastes).rows if row.family == "cost"]
    assert re.fullmatch(
        r"forward and backward [\d.]+ (us|ms|s), the reference [\d.]+ (us|ms|s); "
        r"peak memory of tensors 8 MB, the reference 1.12 KB",
        row.note,
    )


def test_an_error_while_it_is_timed_is_the_functions() -> None:
    left = [0]

    def gives_up(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        left[0] -= 1
        if left[0] == 0:
            raise RuntimeError("the workspace is full")
        return x * y

    left[0] = -1
    check(gives_up, only=["writes inputs"])
    left[0] = 3 - left[0]  # in the third run behind those of the comparison
    (row,) = check(gives_up, only=["cost"]).wrong
    assert row.name == "cost"
    assert row.note.startswith("gives_up: a run raised RuntimeError: the workspace is full at ")
