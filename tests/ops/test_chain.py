"""chain_gradients: right in any order, and no order is cheaper."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nn_manual import ops
from nn_manual.arrays import Array

SIZES = st.lists(st.integers(0, 5), min_size=2, max_size=7)


def random_chain(sizes: Sequence[int], seed: int = 0) -> tuple[list[Array], Array]:
    """The matrices of these sizes, and an upstream gradient."""
    generator = np.random.default_rng(seed)
    matrices = [generator.standard_normal(shape) for shape in itertools.pairwise(sizes)]
    return matrices, generator.standard_normal((sizes[0], sizes[-1]))


class Counted(np.ndarray[Any, Any]):
    """A matrix that adds up what products with it cost, on either side, in multiplications."""

    multiplications = 0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        assert ufunc is np.matmul, "a chain is made of matrix products only"
        left, right = (np.asarray(matrix) for matrix in inputs)
        Counted.multiplications += left.shape[0] * left.shape[1] * right.shape[1]
        return getattr(ufunc, method)(left, right, **options).view(Counted)


def count(matrices: list[Array], grad_output: Array | None) -> int:
    """What chain_gradients spends."""
    Counted.multiplications = 0
    grad_output = None if grad_output is None else grad_output.view(Counted)
    ops.chain_gradients(*(matrix.view(Counted) for matrix in matrices), grad_output=grad_output)
    return Counted.multiplications


@functools.cache
def all_splits(first: int, last: int) -> list[tuple[tuple[int, int, int], ...]]:
    """Every way to put parentheses around matrices first to last: the products (first, split, last) that it takes."""
    if first == last:
        return [()]
    return [
        (*left, *right, (first, split, last))
        for split in range(first, last)
        for left in all_splits(first, split)
        for right in all_splits(split + 1, last)
    ]


def brute_force(sizes: Sequence[int]) -> int:
    """The least cost of all gradients in one set of parentheses: each product three times, the outermost twice."""

    def cost(product: tuple[int, int, int]) -> int:
        first, split, last = product
        return sizes[first] * sizes[split + 1] * sizes[last + 1]

    return min(
        sum(3 * cost(product) for product in way) - cost(way[-1]) for way in all_splits(0, len(sizes) - 2) if way
    )


@given(sizes=SIZES, with_upstream=st.booleans())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_gradients_are_torchs(sizes: list[int], with_upstream: bool) -> None:
    matrices, grad_output = random_chain(sizes)
    tensors = [torch.tensor(matrix, requires_grad=True) for matrix in matrices]
    upstream = torch.tensor(grad_output) if with_upstream else torch.ones(grad_output.shape, dtype=torch.float64)
    output = functools.reduce(torch.matmul, tensors)
    references = torch.autograd.grad(output, tensors, upstream, allow_unused=False)
    for as_ours in (np.asarray, torch.tensor):
        grad = as_ours(grad_output) if with_upstream else None
        gradients = ops.chain_gradients(*map(as_ours, matrices), grad_output=grad)
        for ours, reference in zip(gradients, references, strict=True):
            assert tuple(ours.shape) == tuple(reference.shape)
            scale = reference.abs().max() if reference.numel() else 0
            assert np.all(np.abs(np.asarray(ours) - reference.numpy()) <= 1e-12 * float(scale))


@given(sizes=st.lists(st.integers(1, 50), min_size=3, max_size=8))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_no_parentheses_are_cheaper(sizes: list[int]) -> None:
    assert count(*random_chain(sizes)) == brute_force(sizes)


def test_the_cost_against_the_plain_ways() -> None:
    """A long thin chain: the formula as it stands, each gradient by itself, against all together."""
    sizes = [2, 100, 3, 100, 4, 100, 5]
    one_by_one = 0
    for left_out in range(len(sizes) - 1):
        prefix, suffix = sizes[: left_out + 1], sizes[left_out + 1 :]
        one_by_one += sum(prefix[0] * a * b for a, b in itertools.pairwise(prefix[1:]))
        one_by_one += sum(a * b * suffix[-1] for a, b in itertools.pairwise(suffix[:-1]))
        one_by_one += prefix[-1] * prefix[0] * suffix[-1] + prefix[-1] * suffix[-1] * suffix[0]
    assert one_by_one == 38_690
    assert count(*random_chain(sizes)) == brute_force(sizes) == 9_872


def test_a_sum_costs_a_few_products_with_vectors() -> None:
    """Without an upstream gradient every product has a vector for a factor; with a matrix of ones for one, none has."""
    matrices, grad_output = random_chain([30, 40, 50, 60])
    num_entries = 30 * 40 + 40 * 50 + 50 * 60
    assert count(matrices, None) < 4 * num_entries
    assert count(matrices, np.ones_like(grad_output)) > 50 * num_entries
    for ours, same in zip(
        ops.chain_gradients(*matrices),
        ops.chain_gradients(*matrices, grad_output=np.ones_like(grad_output)),
        strict=True,
    ):
        np.testing.assert_allclose(ours, same, rtol=1e-12, atol=1e-12 * np.abs(same).max())


def test_one_matrix() -> None:
    matrices, grad_output = random_chain([2, 3])
    (gradient,) = ops.chain_gradients(*matrices, grad_output=grad_output)
    np.testing.assert_array_equal(gradient, grad_output)
    np.testing.assert_array_equal(ops.chain_gradients(*matrices)[0], np.ones((2, 3)))


def test_bad_input() -> None:
    a, b = np.ones((2, 3)), np.ones((4, 5))
    message = "chain_gradients: operands 1 and 2 don't fit: (3, 2) @ (4, 5)"
    with pytest.raises(ValueError, match=re.escape(message)):
        ops.chain_gradients(a, a.T, b)
    with pytest.raises(ValueError, match=re.escape("chain_gradients: operand 1 has shape (3,), not a matrix's")):
        ops.chain_gradients(a, np.ones(3))
    message = "chain_gradients: the upstream gradient has shape (2,), the answer (2, 2)"
    with pytest.raises(ValueError, match=re.escape(message)):
        ops.chain_gradients(a, a.T, grad_output=np.ones(2))
    with pytest.raises(TypeError, match="chain_gradients: a gradient needs operands of a floating dtype, not int64"):
        ops.chain_gradients(np.ones((2, 2), int))
    with pytest.raises(TypeError, match="chain_gradients: operands are arrays of one library, at least one, not "):
        ops.chain_gradients()
