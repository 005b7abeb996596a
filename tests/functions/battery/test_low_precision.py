"""check_function in 16 bits: three times the reference's own distance to float64, and no further."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from products import Product, product, raw
from products import inputs as two
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from nn_manual import check_function


def inputs(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [torch.randn(N, D, generator=generator), torch.randn(D, generator=generator)]


def definition(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return (x.float() * weight.float()).to(x.dtype)


def scaled(error: float, only: torch.dtype | None = None) -> type[Function]:
    """x * weight, whose gradient of x is off by `error` of its value."""

    class Scaled(Function):
        @staticmethod
        def forward(context: Any, x: Any, weight: Any) -> Any:
            if only is not None and x.dtype != only:
                raise TypeError(f"{only} alone")
            context.save_for_backward(x, weight)
            return definition(x, weight)

        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            x, weight = context.saved_tensors
            grad_x = (1 + error) * grad_output.float() * weight.float()
            grad_weight = (grad_output.float() * x.float()).sum(0)
            return grad_x.to(x.dtype), grad_weight.to(weight.dtype)

    return Scaled


#: Half an eps is one rounding. The reference makes one; three times as much is allowed, the kernel's own with it.
@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "eps"), [("bfloat16", 2**-7), ("float16", 2**-10)])
def test_three_roundings_are_allowed(dtype: str, eps: float) -> None:
    """It alone has right functions in 16 bits, each with its roundings."""
    sizes = {"N": 64, "D": 32}
    assert check_function(scaled(0), definition, inputs, sizes=sizes, dtypes=[dtype]).passed
    assert check_function(scaled(0.4 * eps), definition, inputs, sizes=sizes, dtypes=[dtype]).passed
    report = check_function(scaled(4 * eps), definition, inputs, sizes=sizes, dtypes=[dtype])
    assert {failure.name.partition(",")[0] for failure in report.failures} == {"grad_x"}
    assert report.failures[0].ulps < 16  # of 16 bits


def test_the_other_dtypes_are_rows() -> None:
    function = scaled(1e-3)  # beyond float32's tolerance, within bfloat16's
    report = check_function(function, definition, inputs, sizes={"N": 4, "D": 5}, dtypes=["bfloat16", "float32"])
    assert report.agrees
    assert [row.name for row in report.wrong] == ["dtype float32"]


class WrongInBfloat16(Product):
    """Its backward cuts large values off, and reads a gradient as if it were contiguous, in one dtype alone."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        x, y = context.saved_tensors
        if x.dtype == torch.bfloat16:
            y, grad_output = y.clamp(-20, 20), raw(grad_output, grad_output.storage_offset())
        return grad_output * y, grad_output * x


@pytest.mark.slow
def test_each_dtype_has_other_values_and_layouts() -> None:
    """It alone has a mistake in one layout of one dtype."""
    def wrong(**options: Any) -> set[str]:
        dtypes = ["float64", "bfloat16"]
        sizes = {"N": 4, "D": 5}
        report = check_function(WrongInBfloat16, product, two, sizes=sizes, dtypes=dtypes, **options)
        return {row.name for row in report.wrong}

    layouts = {f"dtype bfloat16 grad_output {layout}" for layout in ("transposed", "expanded", "strided", "rows apart")}
    kinds = {f"dtype bfloat16 kinds {kind}" for kind in ("scattered", "spread", "large")}
    assert wrong() == layouts | kinds
    assert wrong(skip=["kinds", "grad_output expanded"]) == layouts - {"dtype bfloat16 grad_output expanded"}
    assert wrong(skip=["dtype bfloat16"]) == set()


@pytest.mark.slow
def test_a_kernel_of_one_dtype_alone() -> None:
    """It alone takes one dtype of 16 bits."""
    function = scaled(0, only=torch.bfloat16)
    assert check_function(function, definition, inputs, sizes={"N": 4, "D": 5}, dtypes=["bfloat16"]).passed
    report = check_function(function, definition, inputs, sizes={"N": 4, "D": 5}, dtypes=["bfloat16", "float16"])
    (row,) = report.wrong
    assert row.name == "dtype float16"
    assert "raised TypeError: torch.bfloat16 alone at " in row.note


@pytest.mark.slow
def test_mixed_dtypes_are_judged_each_in_its_own() -> None:
    """The weight's gradient has 24 bits: an error of a rounding of 16 is wrong there.
    It alone has inputs of several dtypes.
    """

    class Rounds(scaled(0)):  # type: ignore[misc] # a base that is made
        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            x, weight = context.saved_tensors
            grad_weight = (grad_output.float() * x.float()).sum(0).bfloat16().float()
            return (grad_output.float() * weight.float()).to(x.dtype), grad_weight

    mixed = [("bfloat16", "float32")]
    assert check_function(scaled(0), definition, inputs, sizes={"N": 4, "D": 5}, dtypes=mixed).passed
    report = check_function(Rounds, definition, inputs, sizes={"N": 4, "D": 5}, dtypes=mixed)
    assert {failure.name.partition(",")[0] for failure in report.failures} == {"grad_weight"}
    x, weight = inputs(torch.Generator().manual_seed(0), 4, 5)
    assert check_function(scaled(0), definition, [x.bfloat16(), weight]).passed


@pytest.mark.slow
def test_what_rounding_chooses_is_not_judged() -> None:
    """The places of the largest of a product: in float16 large ones are infinite, and the kernel sums in float32.
    It alone has a choice that rounding makes.
    """

    def largest(x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        value, place = (x * weight).softmax(-1).topk(2)
        return value, place

    def wide(x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        value, place = largest(x.float(), weight.float())
        return value.to(x.dtype), place

    def wrong(x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        value, place = wide(x, weight)
        return value, 1 * (place == 0)

    report = check_function(wide, largest, inputs, sizes={"N": 4, "D": 5}, dtypes=["float16"])
    assert report.passed, report
    assert any("the reference itself has other integers than in float64" in row.note for row in report.skipped)
    report = check_function(wrong, largest, inputs, sizes={"N": 4, "D": 5}, dtypes=["float16"])
    assert [failure.name for failure in report.failures] == ["output 1"]


@pytest.mark.slow
def test_a_tolerance_of_ones_own() -> None:
    """It alone gives a low precision its own tolerance."""
    function = scaled(1e-3)  # off by this much: between the two tolerances
    assert not check_function(function, definition, inputs, sizes={"N": 4, "D": 5}).passed
    assert check_function(function, definition, inputs, sizes={"N": 4, "D": 5}, tolerance=2e-3).passed
    assert not check_function(function, definition, inputs, sizes={"N": 4, "D": 5}, tolerance=5e-4).passed


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dtypes": ["int8"]}, "dtype 'int8' can't be judged"),
        ({"dtypes": "float32"}, "dtypes must be a list"),
        ({"dtypes": [("float32",)]}, "1 dtype for 2 floating inputs: x, weight"),
        ({"sizes": None}, "sizes must name its dimensions"),
        ({"sizes": {"N": -1, "D": 3}}, "size N must be a whole number"),
        ({"kinds": ["huge"]}, "there is no kind 'huge'"),
        ({"tolerance": 0.7}, "tolerance must be above 0 and below 0.5"),
        ({"skip": ["grad_outptu"]}, "there is no row 'grad_outptu' to skip: did you mean 'grad_output'?"),
        ({"skip": ["sizes M=0"]}, "there is no row 'sizes M=0' to skip: did you mean 'sizes N=0'?"),
        ({"only": ["grad_outptu"]}, "there is no row 'grad_outptu' to run alone: did you mean 'grad_output'?"),
        ({"only": "cost"}, "only must be a list of rows, as ['cost'], not 'cost'"),
    ],
)
def test_arguments_that_do_not_fit(options: dict[str, Any], words: str) -> None:
    arguments = {"sizes": {"N": 4, "D": 5}, **options}
    with pytest.raises(ValueError, match=re.escape(words)):
        check_function(scaled(0), definition, inputs, **arguments)


def test_inputs_that_cannot_be_made_are_named() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'D'") as caught:
        check_function(scaled(0), definition, inputs, sizes={"N": 4})
    assert caught.value.__notes__[0].startswith("raised by the function that makes the inputs")
    with pytest.raises(TypeError, match="inputs must be a list of the arguments"):
        check_function(scaled(0), definition, torch.ones(3))  # type: ignore[arg-type] # that is the mistake


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("seed", range(2))
def test_a_long_sum_in_16_bits_shows(dtype: str, seed: int) -> None:
    """Of 64 rows it is within three roundings; the rows of 1,025 see it."""

    def of(in_16_bits: bool) -> type[Function]:
        class Shifted(Function):
            @staticmethod
            def forward(_: Any, x: Any, weight: Any) -> Any:
                return x + weight

            @staticmethod
            @once_differentiable
            def backward(_: Any, grad_output: Any) -> Any:
                if not in_16_bits:
                    return grad_output, grad_output.float().sum(0).to(grad_output.dtype)
                grad_weight = torch.zeros_like(grad_output[:1].sum(0))
                for row in grad_output:
                    grad_weight = grad_weight + row
                return grad_output, grad_weight

        return Shifted

    options: Any = {"sizes": {"N": 64, "D": 16}, "dtypes": [dtype], "seed": seed, "only": ["sizes"]}
    assert "sizes N=1025" in {row.name for row in check_function(of(True), torch.add, inputs, **options).wrong}
    assert check_function(of(False), torch.add, inputs, **options).passed


@pytest.mark.parametrize("in_16_bits", [True, False])
def test_long_positions_in_16_bits_show(*, in_16_bits: bool) -> None:
    """Past 256 bfloat16 has not every whole number. That the reference's angles are large, in float64, excuses none."""

    def kernel(x: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(len(x)).to(x.dtype if in_16_bits else torch.float32)
        return (x * positions.cos()[:, None]).to(x.dtype)

    def rotated(x: torch.Tensor) -> torch.Tensor:
        return (x.double() * torch.arange(len(x), dtype=torch.float64).cos()[:, None]).to(x.dtype)

    def sequence(generator: torch.Generator, T: int) -> list[torch.Tensor]:
        return [torch.randn(T, 6, generator=generator)]

    report = check_function(kernel, rotated, sequence, sizes={"T": 6}, dtypes=["bfloat16"], skip=["cost", "kinds"])
    past = {f"sizes T={size}" for size in (511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 4096, 4097)}
    wrong = {row.name for row in report.wrong}
    assert {"sizes T=1024", "sizes T=1025"} <= wrong <= past if in_16_bits else not wrong


@pytest.mark.slow
@pytest.mark.parametrize("in_16_bits", [True, False])
def test_angles_in_16_bits_show_in_another_dtype(*, in_16_bits: bool) -> None:
    """There the longest row has 129: a product of position and frequency in bfloat16 is off by up to half a radian.
    It alone has angles in 16 bits.
    """

    def rotated(x: torch.Tensor, dtype: torch.dtype = torch.float64) -> torch.Tensor:
        frequencies = 0.3 ** torch.arange(x.shape[1], dtype=torch.float64)
        angles = torch.arange(len(x)).to(dtype)[:, None] * frequencies.to(dtype)
        return x * angles.cos().to(x.dtype)

    def kernel(x: torch.Tensor) -> torch.Tensor:
        return rotated(x, x.dtype if in_16_bits else torch.float32)

    def sequence(generator: torch.Generator, T: int) -> list[torch.Tensor]:
        return [torch.randn(T, 6, generator=generator)]

    report = check_function(
        kernel, rotated, sequence, sizes={"T": 6}, dtypes=["float32", "bfloat16"], skip=["cost", "kinds", "grad_output"]
    )
    names = [row.name for row in report.wrong if "sizes" in row.name and "bfloat16" in row.name]
    assert names == (["dtype bfloat16 sizes T=129"] if in_16_bits else [])
    assert report.passed is not in_16_bits, report
