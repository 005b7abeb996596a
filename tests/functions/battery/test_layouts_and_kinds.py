"""The rows of other inputs: indices that repeat, values, sizes, and the full size."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from products import Blocked, Product, inputs, product
from slow_cases import slow
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from nn_manual import check_function
from nn_manual.functions.battery.dimensions import LONG, SIZES
from nn_manual.functions.battery.families import FAMILIES
from nn_manual.functions.battery.layouts_and_kinds import FUNCTION_KINDS


class Lookup(Function):
    """The rows of a table."""

    @staticmethod
    def forward(context: Any, table: Any, index: Any) -> Any:
        context.save_for_backward(index)
        context.shape = table.shape
        return table[index]

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        (index,) = context.saved_tensors
        return grad_output.new_zeros(context.shape).index_put((index,), grad_output, accumulate=True), None


class LookupWithoutSum(Lookup):
    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        (index,) = context.saved_tensors
        return grad_output.new_zeros(context.shape).index_put((index,), grad_output), None


@pytest.mark.parametrize("index", [slow([1, 5, 7, 3]), [0, 1, 2, 3], slow([[4, 2], [9, 1]])])
def test_indices_repeat(index: Any) -> None:
    def lookup(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return table[index]

    table = torch.randn(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert check_function(Lookup, lookup, [table, torch.tensor(index)]).passed
    report = check_function(LookupWithoutSum, lookup, [table, torch.tensor(index)])
    assert [row.name for row in report.wrong] == ["inputs repeated"]
    assert "grad_table" in report.wrong[0].note


def test_a_permutation_and_offsets_stay_what_they_are() -> None:
    class Permuted(LookupWithoutSum):
        """Each row has one place."""

    def permuted(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return table[index]

    def sums(x: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        if not (offsets[0] == 0 and offsets[-1] == len(x) and (offsets.diff() >= 0).all()):
            raise ValueError("no offsets")
        return torch.stack([part.sum(0) for part in x.tensor_split(offsets[1:-1])])

    x = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    report = check_function(Permuted, permuted, [x, torch.tensor([2, 0, 3, 1])])
    assert report.passed, report
    assert "a permutation" in {row.name: row.note for row in report.skipped}["inputs repeated"]
    report = check_function(sums, sums, [x, torch.tensor([0, 1, 3, 4])])
    assert {row.name: row.verdict for row in report.rows}["inputs repeated"] == "right"


@pytest.mark.parametrize("kinds", [None, ["negative"]])
def test_values_that_a_function_refuses_are_wrong_only_where_they_were_asked_for(kinds: Any) -> None:
    class Root(Function):
        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            if (x < 0).any():
                raise ValueError("a negative number")
            context.save_for_backward(x)
            return x.sqrt()

        @staticmethod
        def backward(context: Any, grad_output: Any) -> Any:
            (x,) = context.saved_tensors
            return grad_output / (2 * x.sqrt())

    x = torch.rand(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 1
    report = check_function(Root, torch.sqrt, [x], kinds=kinds)
    rows = {row.name: row.verdict for row in report.rows}
    assert rows["kinds negative"] == ("WRONG" if kinds else "skipped")


def test_the_sizes_that_a_function_takes() -> None:
    """A sequence of sizes: no others are tried, and the small rows run on the smallest."""

    class Halves(Product):
        @staticmethod
        def forward(context: Any, x: Any, y: Any) -> Any:
            if x.shape[1] % 2:
                raise ValueError("an odd size")
            return Product.forward(context, x, y)

    wrong = check_function(Halves, product, inputs, sizes={"N": 4, "D": 6}).wrong
    assert {row.name for row in wrong} == {
        *(f"sizes D={size}" for size in (*SIZES, *LONG) if size % 2),
        "sizes N=129,D=131",
        "sizes N=1,D=1",
    }
    report = check_function(Halves, product, inputs, sizes={"N": 4, "D": (4, 128)})
    assert report.passed, report
    assert [row.variant for row in report.rows if row.variant.startswith("D=")] == ["D=4", "D=128"]
    assert report.comparisons[0].shape == (4, 4)


def test_the_full_size_runs_once_where_rows_run_on_smaller_ones() -> None:
    report = check_function(Blocked, product, inputs, sizes={"N": 4, "D": 200}, skip=["sizes"])
    assert [row.name for row in report.wrong] == ["full size"]
    assert report.comparisons[0].shape == (4, 6)


def test_a_full_size_that_there_is_no_memory_for_ends_the_check() -> None:
    with pytest.raises(RuntimeError, match=r"you tried to allocate 9007199254740992 bytes") as ended:
        check_function(Product, product, inputs, sizes={"N": 1 << 30, "D": 1 << 20}, skip=["sizes", "cost"])
    assert ended.value.__notes__[-1] == "in row full size of Product"
    skipped = check_function(Product, product, inputs, sizes={"N": 9, "D": 200}, skip=["sizes", "full size"])
    assert "not tried" not in str(skipped)
    assert skipped.passed


def test_a_full_size_that_cannot_be_tried_is_said_at_the_head() -> None:
    def small_ones(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
        if D == 200:
            raise ValueError("too many columns")
        return inputs(generator, N, D)

    report = check_function(Product, product, small_ones, sizes={"N": 9, "D": 200}, skip=["sizes", "cost"])
    assert not report.passed
    said = " ".join(str(report).split())
    assert said.startswith("gradient check failed: the values agree, not tried at the full size: ValueError: too many ")
    assert "raised by the function that makes the inputs, for {'N': 9, 'D': 200}" in said


@pytest.mark.slow
def test_a_threshold_of_what_another_input_scales() -> None:
    """A quantizer with a learned scale, whose gradient at the ends of its range is 1, and of the wrong one 0.
    It alone has a threshold of what another input scales.
    """

    def clipped(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        quotient = x / scale  # torch's own clamp has 1, 1/2 or 0 at its ends, by its version
        return torch.where(quotient < -8, -8, torch.where(quotient > 7, 7, quotient))

    class Clipped(Function):
        @staticmethod
        def forward(context: Any, x: Any, scale: Any) -> Any:
            context.save_for_backward(x, scale)
            return clipped(x, scale)

        @classmethod
        @once_differentiable
        def backward(cls, context: Any, grad_output: Any) -> Any:
            x, scale = context.saved_tensors
            grad = grad_output * cls.inside(x / scale) / scale
            return grad, -(grad * x / scale).sum()

        @staticmethod
        def inside(quotient: Any) -> Any:
            return (quotient >= -8) & (quotient <= 7)

    class Open(Clipped):
        """The slopes at the ends are those outside, which is as right."""

        @staticmethod
        def inside(quotient: Any) -> Any:
            return (quotient > -8) & (quotient < 7)

    class Doubled(Clipped):
        """The slope at one end is none of those on its sides, and lies between none."""

        @staticmethod
        def inside(quotient: Any) -> Any:
            return Clipped.inside(quotient) * (1.0 + (quotient == 7))

    given = [torch.randn(8, 9, generator=torch.Generator().manual_seed(0)), torch.tensor(0.25)]
    report = check_function(Clipped, clipped, given)
    assert report.passed, report
    assert check_function(Open, clipped, given).passed
    assert [row.name for row in check_function(Doubled, clipped, given).wrong] == ["kinds spread"]


@pytest.mark.parametrize("bound", [6, -29.5, 13.5])
def test_seven_numbers_have_every_value_too(bound: float) -> None:
    """A vector of N has no more on the small sizes. At the bound itself the gradient is wrong."""

    class Closed(Function):
        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            context.save_for_backward(x)
            return torch.nn.functional.threshold(x, bound, bound)

        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            (x,) = context.saved_tensors
            return grad_output * (1.0 * (x >= bound) + (x == bound))

    def definition(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.threshold(x, bound, bound)

    def vector(generator: torch.Generator, N: int) -> list[torch.Tensor]:
        return [40 * torch.randn(N, generator=generator)]

    report = check_function(Closed, definition, vector, sizes={"N": 33}, skip=["sizes", "cost"])
    assert [row.name for row in report.wrong] == ["kinds spread"]


@pytest.mark.slow
def test_large_inputs_are_cut_for_the_rows() -> None:
    """It alone cuts large inputs."""
    x, y = inputs(torch.Generator().manual_seed(0), 300, 250)
    assert check_function(Product, product, [x, y]).passed
    report = check_function(Blocked, product, [x, y])
    assert report.comparisons[0].shape == (34, 33)
    assert [row.name for row in report.wrong] == ["full size"]


class Vectorized(Product):
    """Where the last axis is a multiple of 4, it reads memory as if it were contiguous."""

    @staticmethod
    def read(tensor: Any) -> Any:
        if tensor.shape[-1] % 4 or tensor.is_contiguous():
            return tensor
        return tensor.as_strided(tensor.shape, torch.empty(tensor.shape).stride())

    @staticmethod
    def forward(context: Any, x: Any, y: Any) -> Any:
        return Product.forward(context, Vectorized.read(x), y)

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        return Product.backward(context, Vectorized.read(grad_output))


class Noisy(Product):
    @staticmethod
    def forward(context: Any, x: Any, y: Any) -> Any:
        noise = 1e-16 * torch.rand(x.shape, dtype=x.dtype) if x.shape[-1] % 4 == 0 else 0
        return Product.forward(context, x + x.sign() * noise, y)

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        return Product.backward(context, grad_output)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d"), [(9, 16), (1 << 30, 1 << 20)])
def test_layouts_and_determinism_on_a_large_size(n: int, d: int) -> None:
    """It alone compares layouts on a large size."""
    families = ["grad_output", "inputs", "determinism"]
    report = check_function(Vectorized, product, inputs, sizes={"N": n, "D": d}, only=families)
    layouts = ("transposed", "expanded", "strided", "rows apart")
    expected = [f"{of} {name}" for of in ("grad_output", "inputs") for name in layouts]
    assert [row.name for row in report.wrong] == expected
    shape = "9x16" if n == 9 else "128x128"
    assert report.wrong[0].note.startswith(f"right on small inputs, but not on x {shape}, y {shape}: grad_x, random")
    report = check_function(Noisy, product, inputs, sizes={"N": n, "D": d}, only=families)
    assert [row.name for row in report.wrong] == ["determinism"]
    assert check_function(Product, product, inputs, sizes={"N": n, "D": d}, only=families).passed


@pytest.mark.slow
def test_layouts_on_large_inputs_that_are_given() -> None:
    """It alone has large inputs that are given."""
    x, y = inputs(torch.Generator().manual_seed(0), 300, 252)
    report = check_function(Vectorized, product, [x, y], skip=["kinds"])
    assert {row.name for row in report.wrong} >= {"grad_output transposed", "inputs strided"}
    assert "x 300x252" in report.wrong[0].note


@pytest.mark.slow
def test_a_tile_in_the_corner() -> None:
    """It alone is wrong in the last tile of both axes."""
    class Corner(Product):
        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            grads = Product.backward(context, grad_output)
            grads[0][64:, 64:] = 0
            return grads

    assert [row.name for row in check_function(Corner, product, inputs, sizes={"N": 4, "D": 6}).wrong] == [
        "sizes N=129,D=131"
    ]


@pytest.mark.slow
def test_a_long_size_that_may_take_much_memory_is_left_out() -> None:
    """It alone sees a row that takes too much memory."""
    def outer(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x[:, None] * y).repeat(1, 1, 8).sum(2)

    report = check_function(outer, outer, inputs, sizes={"N": 4, "D": 300}, only=["sizes"])
    notes = {row.name: row.note for row in report.skipped}
    assert notes["sizes N=1025"] == "it may take much memory; name the size in `sizes` to try it"
    assert {row.name: row.verdict for row in report.rows}["sizes D=1025"] == "right"


class Variance(torch.autograd.Function):
    @staticmethod
    def variance(x: Any, deviation: Any) -> Any:  # noqa: ARG004 - one of the two needs x
        return deviation.square().mean(-1)

    @classmethod
    def forward(cls, context: Any, x: Any) -> Any:
        deviation = x - x.mean(-1, keepdim=True)
        context.save_for_backward(deviation)
        return cls.variance(x, deviation)

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        (deviation,) = context.saved_tensors
        return 2 / deviation.shape[-1] * deviation * grad_output.unsqueeze(-1)


class OnePassVariance(Variance):
    @staticmethod
    def variance(x: Any, deviation: Any) -> Any:  # noqa: ARG004 - as above
        return x.square().mean(-1) - x.mean(-1).square()


@pytest.mark.parametrize("dtype", ["float32", slow("float64")])
def test_a_variance_in_one_pass_is_off_where_the_mean_is_large(dtype: str) -> None:
    def inputs(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
        return [torch.randn(N, D, generator=generator)]

    def checked(function: Any) -> Any:
        reference = partial(torch.var, dim=-1, correction=0)
        return check_function(function, reference, inputs, sizes={"N": 6, "D": 8}, dtypes=[dtype], skip=["sizes"])

    right, wrong = checked(Variance), checked(OnePassVariance)
    assert right.passed, right
    assert [row.name for row in wrong.wrong] == ["kinds shifted"]


class GuessesLayout(Product):
    """It takes x for transposed where its sizes don't say otherwise."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        x, y = context.saved_tensors
        return grad_output * y, grad_output * (x if x.shape != x.mT.shape else x.mT)


def test_sizes_that_are_equal() -> None:
    report = check_function(GuessesLayout, product, inputs, sizes={"N": 4, "D": 5})
    assert [row.name for row in report.wrong] == ["sizes N=8,D=8"]


def test_equal_sizes_that_the_reference_does_not_take() -> None:
    def wide(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.shape[0] == x.shape[1] == 8:
            raise ValueError("wider than high")
        return x * y

    report = check_function(Product, wide, inputs, sizes={"N": 4, "D": 5})
    assert report.passed, report
    assert "sizes N=8,D=8" in {row.name for row in report.skipped}


def test_a_single_number_is_said_once() -> None:
    def squares(x: torch.Tensor) -> torch.Tensor:
        return x.square().sum()

    def wrong(x: torch.Tensor) -> torch.Tensor:
        return squares(x) + 0.123 * (x == 0).sum()

    x = torch.randn(3, generator=torch.Generator().manual_seed(0))
    report = check_function(wrong, squares, [x], only=["kinds", "no_grad"])
    assert {row.name: row.note for row in report.wrong}["kinds zero"] == "output is 0.369, the reference has 0"
    report = check_function(wrong, squares, [torch.zeros(3)], skip=[*FAMILIES])
    assert not report.diagnosis
    report = check_function(squares, squares, [torch.ones(3)], only=["cost"])
    assert "\n1 row right, " in str(report)


@pytest.mark.parametrize("domain", ["positive", slow({"x": "positive"}), slow((0, 5)), slow([0, 5]), {"x": (0.5, 3.0)}])
def test_a_domain(domain: Any) -> None:
    """What the rows change stays inside. Outside, this logarithm has another gradient than its definition."""
    seen: list[Any] = []

    def logarithm(x: Any) -> Any:
        seen.append(x.copy())
        return np.log(np.abs(x)), x

    def definition(x: torch.Tensor) -> torch.Tensor:
        return x.log()

    x = np.random.default_rng(0).uniform(1, 2, (4, 3))
    report = check_function((logarithm, lambda grad, cache: grad / np.abs(cache)), definition, [x], domain=domain)
    assert report.passed, report
    low, high = (0, np.inf) if "positive" in str(domain) else (0, 5) if isinstance(domain, tuple | list) else (0.5, 3.0)
    assert all(low < each.min() and each.max() < high for each in seen)
    assert {row.variant for row in report.rows if row.family == "kinds"} == set(FUNCTION_KINDS)


@pytest.mark.parametrize("domain", ["odd", (2, 1), {"x": 3}])
def test_what_is_no_domain(domain: Any) -> None:
    with pytest.raises(ValueError, match='a domain is "real", "positive", "nonzero" or'):
        check_function(torch.log, torch.log, [torch.ones(2)], domain=domain)


def test_a_domain_of_no_input() -> None:
    with pytest.raises(ValueError, match="domain: there is no floating input 'y', only input"):
        check_function(torch.log, torch.log, [torch.ones(2)], domain={"y": "positive"})


class LogDeterminant(torch.autograd.Function):
    """log |det x|: equal rows make x singular, and it has no inverse then."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x)
        return torch.linalg.slogdet(x)[1]

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        if torch.linalg.matrix_rank(x) < len(x):
            raise ValueError("singular")
        return grad_output * torch.linalg.inv(x).T


def test_equal_rows_that_a_function_refuses_say_nothing_about_their_layout() -> None:
    x = torch.eye(3, dtype=torch.float64) + torch.arange(9, dtype=torch.float64).reshape(3, 3) / 9
    report = check_function(LogDeterminant, lambda x: torch.linalg.slogdet(x)[1], [x], only=["inputs"])
    assert report.passed, report
    note = {row.name: row.note for row in report.skipped}["inputs expanded"]
    assert note.startswith("LogDeterminant: backward raised ValueError: singular at ")
    assert note.endswith("; it may not be for inputs whose rows are all equal")


def test_a_function_that_refuses_the_layout_alone_is_wrong() -> None:
    def dense(x: torch.Tensor) -> torch.Tensor:
        if 0 in x.stride():
            raise ValueError("not dense")
        return x * x

    report = check_function(dense, lambda x: x * x, [torch.eye(3)], only=["inputs"])
    assert [row.name for row in report.wrong] == ["inputs expanded"]
    assert report.wrong[0].note.startswith("dense: forward raised ValueError: not dense at ")


@pytest.mark.slow
def test_equal_rows_that_are_wrong_in_the_usual_layout_say_nothing_of_a_layout() -> None:
    """Equal rows have eigenvalues that are equal: each basis has a gradient of its own, and both sides choose one. It
    alone has such rows.
    """

    def forward(x: Any) -> Any:
        return np.linalg.eigh(x + x.T)

    def backward(dout: Any, vectors: Any) -> Any:
        return 2 * (vectors * dout) @ vectors.T

    x = np.random.default_rng(0).standard_normal((5, 5))
    report = check_function((forward, backward), lambda x: torch.linalg.eigvalsh(x + x.T), [x], only=["inputs"])
    (row,) = [row for row in report.rows if row.name == "inputs expanded"]
    words = "on equal rows it is wrong in the usual layout, too: that is no matter of layout"
    assert (row.verdict, row.note) == ("skipped", words)
    assert not report.wrong
