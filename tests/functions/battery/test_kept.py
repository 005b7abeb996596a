"""What a function keeps of one run for another, and the generators that it seeds."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from products import Product, inputs, product
from slow_cases import slow
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from nn_manual import check_function
from nn_manual.arrays import Array
from nn_manual.functions.battery.other_inputs import other_integers
from nn_manual.functions.function_report import FunctionReport

#: Rows that are not what this is about.
VALUES_AND_COST = ["kinds", "sizes", "cost"]


def check(function: Any, **options: Any) -> FunctionReport:
    return check_function(function, product, inputs, sizes={"N": 4, "D": 5}, skip=VALUES_AND_COST, **options)


def keeps(*, version: bool) -> type[Function]:
    """A kernel that keeps a converted weight by its address, and with `version` sees that the weight has changed."""
    kept: dict[str, Any] = {}

    class Keeps(Product):
        @staticmethod
        def forward(context: Any, x: Any, y: Any) -> Any:
            key = (y.data_ptr(), y.dtype, y.shape, y._version if version and not y.is_inference() else 0)
            if kept.get("key") != key:
                kept.update(key=key, weight=y, converted=y.detach().clone())  # the weight lives: so does its address
            return Product.forward(context, x, kept["converted"])

        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            return Product.backward(context, grad_output)

    return Keeps


def test_a_weight_that_is_kept_by_its_address() -> None:
    assert check(keeps(version=True)).passed
    (row,) = check(keeps(version=False)).wrong
    assert row.name == "in place"
    assert row.note.startswith("differs once its inputs have changed in place, as a weight does: it keeps something")
    assert "output[" in row.note


def test_arrays_change_in_place_for_a_pair() -> None:
    kept: dict[str, Any] = {}

    def forward(x: Any, y: Any) -> Any:
        if kept.get("address") != y.ctypes.data:
            kept.update(address=y.ctypes.data, converted=y.copy(), weight=y)
        return x * kept["converted"], (x, y)

    def backward(saved: Any, grad_output: Any) -> Any:
        x, y = saved
        return grad_output * y, grad_output * x

    given = [np.random.default_rng(i).standard_normal((3, 4)) for i in range(2)]
    (row,) = check_function((forward, backward), product, given, skip=VALUES_AND_COST).wrong
    assert row.name == "in place"
    right = check_function((lambda x, y: (x * y, (x, y)), backward), product, given, skip=VALUES_AND_COST)
    assert {row.name: row.verdict for row in right.rows}["in place"] == "right"


def test_a_pair_that_overwrites_its_output_keeps_nothing_of_an_earlier_run() -> None:
    """Only the rows of writes blame it: the others restore what it overwrites."""

    def forward(x: Array) -> tuple[Array, Array]:
        y = np.tanh(x)
        return y, y

    def backward(grad_output: Array, y: Array) -> Array:
        y *= y
        y -= 1
        gradient: Array = -grad_output * y
        return gradient

    x = np.random.default_rng(0).standard_normal((3, 4))
    report = check_function((forward, backward), torch.tanh, (x,), only=["in place", "writes"])
    assert {row.name for row in report.wrong} == {"writes saved", "writes returned"}
    assert "in place" in {row.name for row in report.rows if row.verdict == "right"}


def test_a_module_whose_parameters_change_in_place() -> None:
    class Packed(torch.nn.Linear):
        packed: tuple[int, torch.Tensor, torch.Tensor] | None = None

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.packed is None or self.packed[0] != self.weight.data_ptr():
                self.packed = (self.weight.data_ptr(), self.weight.detach().clone(), self.weight)
            return x @ (self.weight + self.packed[1] - self.weight.detach()).T + self.bias

    x = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    report = check_function(Packed(3, 2).double(), torch.nn.Linear(3, 2).double(), [x], skip=VALUES_AND_COST)
    assert [row.name for row in report.wrong] == ["in place"]


class TimesPacked(Function):
    @staticmethod
    def forward(context: Any, x: Any, weight: Any, packed: Any) -> Any:
        context.save_for_backward(x, weight)
        return x @ packed

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        x, weight = context.saved_tensors
        return grad_output @ weight, grad_output.T @ x, None


class PackedForGood(torch.nn.Module):
    """Packs its weight in its first run, and never again."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3, 5, generator=torch.Generator().manual_seed(0)))
        self.packed: Any = None

    def forward(self, x: Any) -> Any:
        if self.packed is None:
            self.packed = self.weight.detach().t().contiguous()
        return TimesPacked.apply(x, self.weight, self.packed)  # type: ignore[no-untyped-call] # torch has none


def test_a_weight_that_is_kept_for_good() -> None:
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(1))
    report = check_function(PackedForGood(), torch.nn.Linear(5, 3, bias=False), [x], kinds=[], skip=["inputs"])
    (row,) = report.wrong
    assert row.name == "in place"
    assert row.note.startswith("differs where its inputs have other values: it is wrong on those, or keeps something")


def test_a_function_of_probabilities_takes_other_probabilities() -> None:
    probabilities = torch.randn(4, 5, generator=torch.Generator().manual_seed(1)).softmax(-1)
    report = check_function(
        lambda p: 1 / p, lambda p: 1 / p * p.detach().sum(-1, keepdim=True), [probabilities], kinds=[], skip=["inputs"]
    )
    assert {row.name: row.verdict for row in report.rows}["in place"] == "right"


def masked(x: Any, mask: Any) -> Any:
    return x * mask


def noisy(x: Any, seed: Any) -> Any:
    return x * torch.randn(x.shape, generator=torch.Generator().manual_seed(int(seed)), dtype=x.dtype)


def selected(x: Any, index: Any) -> Any:
    return x[index]


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (masked, torch.tensor([True, False, True, True])),
        slow(noisy, torch.tensor([7])),
        (noisy, np.array([0])),
        (selected, torch.tensor([2, 0, 2, 1])),
    ],
)
def test_a_mask_a_seed_or_an_index_that_is_kept_by_its_shape(function: Any, given: Any) -> None:
    kept: dict[Any, Any] = {}

    def keeps(x: Any, given: Any) -> Any:
        return function(x, kept.setdefault((given.shape, given.dtype), given.clone()))

    x = torch.randn(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    skip = [*VALUES_AND_COST, "inputs"]
    name = "mask" if function is masked else "seed" if function is noisy else "index"
    report = check_function(keeps, function, [x, given], skip=skip)
    assert [row.name for row in report.wrong] == [f"in place {name}"]
    right = check_function(function, function, [x, given], skip=skip)
    assert {row.name: row.verdict for row in right.rows}[f"in place {name}"] == "right"


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_indices_without_a_sign_are_changed_and_repeated(dtype: torch.dtype) -> None:
    def chosen(x: Any, index: Any) -> Any:
        return x[index.to(torch.int64)]

    kept: dict[Any, Any] = {}

    def keeps(x: Any, index: Any) -> Any:
        return chosen(x, kept.setdefault(index.shape, index.clone()))

    x = torch.randn(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    inputs, only = [x, torch.tensor([2, 0, 2, 1]).to(dtype)], ["in place", "inputs repeated"]
    rows = {row.name: row for row in check_function(chosen, chosen, inputs, only=only).rows}
    assert [rows[name].verdict for name in ("in place index", "inputs repeated")] == ["right", "right"]
    rows = {row.name: row for row in check_function(keeps, chosen, inputs, only=only).rows}
    assert [rows[name].verdict for name in ("in place index", "inputs repeated")] == ["WRONG", "WRONG"]


def test_a_mask_of_large_numbers_that_is_kept_by_its_shape() -> None:
    """What it fills in is no exponent, whose roundings excused another mask."""
    kept: dict[Any, Any] = {}

    def keeps_its_mask(x: Any, mask: Any) -> Any:
        return x.masked_fill(kept.setdefault(mask.shape, mask.clone()), -1e30).softmax(-1)

    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(4, 6, generator=generator), torch.rand(4, 6, generator=generator) > 0.4]
    report = check_function(
        keeps_its_mask, lambda x, mask: x.masked_fill(mask, -1e30).softmax(-1), given, skip=VALUES_AND_COST
    )
    assert [row.name for row in report.wrong] == ["in place mask"]


def test_offsets_stay_offsets_when_they_change_in_place() -> None:
    def sums(x: Any, offsets: Any) -> Any:
        assert offsets[[0, -1]].tolist() == [0, len(x)]
        assert bool((offsets.diff() >= 0).all())
        return torch.stack([x[a:b].sum(0) for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)])

    x = torch.randn(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    report = check_function(sums, sums, [x, torch.tensor([0, 1, 3, 6])], skip=VALUES_AND_COST)
    assert {row.name: row.verdict for row in report.rows}["in place offsets"] == "right"


@pytest.mark.parametrize(
    ("seeds", "whose"),
    [
        (lambda: torch.manual_seed(3), "torch's"),
        (lambda: np.random.seed(3), "numpy's"),
        (lambda: random.seed(3), "Python's"),
        (lambda: (torch.rand(2), np.random.rand(), random.random()), ""),
    ],
)
def test_a_generator_that_is_seeded(seeds: Callable[[], object], whose: str) -> None:
    class Seeds(Product):
        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            seeds()
            return Product.backward(context, grad_output)

    notes = {row.name: row.note for row in check(Seeds).wrong}
    assert notes.keys() == ({"settings"} if whose else set())
    assert not whose or f"it changes the seed of {whose} generator" in notes["settings"]


class Unpermute(Function):
    """Of its permutation, backward needs the inverse."""

    @staticmethod
    def forward(context: Any, x: Any, places: Any) -> Any:
        context.save_for_backward(places)
        return x[places]

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        (places,) = context.saved_tensors
        return grad_output[places], None


@pytest.mark.parametrize("places", [[1, 0, 3, 2], [0, 1, 2, 3], [2, 1, 0, 3]])
def test_a_permutation_that_is_its_own_inverse_hides_nothing(places: list[int]) -> None:
    x = torch.arange(12.0).reshape(4, 3) ** 2
    report = check_function(Unpermute, lambda x, places: x[places], [x, torch.tensor(places)], only=["in place"])
    assert report.agrees
    assert [row.name for row in report.wrong] == ["in place places"]


@pytest.mark.parametrize(
    ("given", "others"),
    [
        ([0, 1, 2, 3], [1, 2, 3, 0]),
        ([3, 1, 0, 2], [1, 2, 3, 0]),
        ([1, 2, 3, 0], [3, 0, 1, 2]),
        ([0, 1], [1, 0]),
        ([1, 0], [0, 1]),
        ([[0, 1, 2], [2, 1, 0]], [[1, 2, 0], [1, 2, 0]]),
        ([0, 2, 7, 7], [0, 0, 5, 7]),
        ([0, 4, 8], None),
        ([5, 5], [5, 4]),
        ([1, 1, 1], [1, 0, 1]),
        ([0, 1, 2, 2, 1, 0], [1, 1, 2, 2, 1, 0]),
        ([[1, 0], [1, 2]], [[1, 1], [0, 1]]),
        (0, 1),
        ([4, 9, 2], [2, 9, 4]),
        ([[True, True, False], [True, False, False]], [[False, True, True], [True, True, False]]),
        ([[True, True], [False, False]], [[True, False], [True, True]]),
        ([True, True, True], [True, False, True]),
        ([True], [False]),
        (False, True),
    ],
)
def test_other_integers(given: Any, others: Any) -> None:
    found = other_integers(torch.tensor(given))
    assert (None if found is None else found.tolist()) == others


@pytest.mark.parametrize(("least", "of_reference", "agrees"), [(0, 1, False), (1, 1, True), (0, 0, True)])
def test_targets_that_are_all_ignored(least: int, of_reference: int, *, agrees: bool) -> None:
    """The mean over none of them is 0 / 0 where the count isn't at least 1. Where the reference's is, any gradient is
    right.
    """

    class Mean(Function):
        @staticmethod
        def forward(context: Any, x: Any, target: Any) -> Any:
            counts = target >= 0
            context.save_for_backward(x, counts)
            return (x.square() * counts).sum() / counts.sum().clamp(min=of_reference)

        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            x, counts = context.saved_tensors
            return grad_output * 2 * x * counts / counts.sum().clamp(min=least), None

    def mean(x: Any, target: Any) -> Any:
        return (x.square() * (target >= 0)).sum() / (target >= 0).sum().clamp(min=of_reference)

    x = torch.randn(4, generator=torch.Generator().manual_seed(0))
    report = check_function(Mean, mean, [x, torch.tensor([1, -1, 2, 0])], only=["inputs repeated"])
    assert report.passed == agrees
    assert [row.name for row in report.wrong] == ["inputs repeated"] * (not agrees)


def test_the_gradient_of_an_outcome_that_is_no_number_is_anybodys() -> None:
    """Where all targets are ignored torch's mean is 0 / 0, and its gradient 0 nevertheless."""

    class CrossEntropy(Function):
        @staticmethod
        def forward(context: Any, logits: Any, target: Any) -> Any:
            counts, logarithms = target >= 0, logits.log_softmax(1)
            picked = logarithms.gather(1, target.clamp(min=0)[:, None])[:, 0]
            context.save_for_backward(logarithms, target, counts)
            return -(picked * counts).sum() / counts.sum()

        @staticmethod
        @once_differentiable
        def backward(context: Any, grad_output: Any) -> Any:
            logarithms, target, counts = context.saved_tensors
            shares = torch.nn.functional.one_hot(target.clamp(min=0), logarithms.shape[1])
            return grad_output * (logarithms.exp() - shares) * counts[:, None] / counts.sum(), None

    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    given = [logits, torch.tensor([1, -1, 2, 0])]
    reference = partial(torch.nn.functional.cross_entropy, ignore_index=-1)
    report = check_function(CrossEntropy, reference, given, only=["inputs repeated"])
    assert report.passed, report


def test_a_reference_that_refuses_targets_that_are_all_ignored_is_said_to() -> None:
    def mean(x: Any, target: Any) -> Any:
        if not (target >= 0).any():
            raise ValueError("nothing counts")
        return (x.square() * (target >= 0)).mean()

    x = torch.randn(4, generator=torch.Generator().manual_seed(0))
    report = check_function(
        lambda x, target: (x * x * (target >= 0)).mean(),
        mean,
        [x, torch.tensor([1, -1, 2, 0])],
        only=["inputs repeated"],
    )
    (row,) = [row for row in report.rows if row.name == "inputs repeated"]
    assert row.verdict == "skipped"
    assert row.note.startswith("the reference raised ValueError: nothing counts at ")


@pytest.mark.parametrize(("kept", "agrees"), [(True, True), (False, False)])
def test_a_negated_mask_shows_what_a_row_that_is_masked_as_a_whole_gets(*, kept: bool, agrees: bool) -> None:
    """Such a row has equal probabilities, and no gradient of its scores: elsewhere a probability of 0 hides that."""

    def forward(scores: Any, mask: Any) -> Any:
        scores = np.where(mask, scores, -1e9)
        terms = np.exp(scores - scores.max(-1, keepdims=True))
        p = terms / terms.sum(-1, keepdims=True)
        return p, (p, mask)

    def backward(dout: Any, cache: Any) -> Any:
        p, mask = cache
        grad = p * (dout - (dout * p).sum(-1, keepdims=True))
        return (np.where(mask, grad, 0) if kept else grad), None

    def reference(scores: Any, mask: Any) -> Any:
        return scores.masked_fill(~mask, -1e9).softmax(-1)

    inputs = [np.random.default_rng(0).standard_normal((3, 3)), np.tril(np.ones((3, 3), bool))]
    report = check_function((forward, backward), reference, inputs, only=["in place"])
    assert [row.name for row in report.wrong] == ([] if agrees else ["in place mask"])


def test_a_row_that_is_masked_as_a_whole_may_be_nan() -> None:
    def forward(scores: Any, mask: Any) -> Any:
        with np.errstate(all="ignore"):
            terms = np.exp(scores) * mask
            p = terms / terms.sum(-1, keepdims=True)
        return p, p

    def backward(dout: Any, cache: Any) -> Any:
        return cache * (dout - (dout * cache).sum(-1, keepdims=True)), None

    def reference(scores: Any, mask: Any) -> Any:
        return scores.masked_fill(~mask, -torch.inf).softmax(-1).nan_to_num(0)

    inputs = [np.random.default_rng(0).standard_normal((3, 3)), np.tril(np.ones((3, 3), bool))]
    report = check_function((forward, backward), reference, inputs, only=["in place"])
    notes = {row.name: (row.verdict, row.note) for row in report.rows}
    words = "where the mask is negated, its output isn't finite in places in which the reference's is"
    assert notes["in place mask"] == ("right", words)
