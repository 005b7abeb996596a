"""The gradients of a product of matrices, multiplied in the cheapest order."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from nn_manual.arrays import namespace
from nn_manual.ops.operation import Tensor, as_arrays, check_differentiable, check_upstream


def chain_gradients(*matrices: Tensor, grad_output: Tensor | None = None) -> tuple[Tensor, ...]:
    """Gradients for each factor of output = M[0] @ M[1] @ ... @ M[n-1], in the cheapest order.

        grad_M[i] = (M[0] @ ... @ M[i-1]).T @ grad_output @ (M[i+1] @ ... @ M[n-1]).T

    M[i] is (sizes[i], sizes[i+1]), grad_output is (sizes[0], sizes[n]). grad_output=None stands for ones: the results
    are then the gradients of output.sum().

    Derivation: split the chain anywhere, output = left @ right. A product's two gradients are

        grad_left  = grad_output @ right.T
        grad_right = left.T @ grad_output

    and each side is a chain again, with its own upstream gradient. Splitting until each part is one matrix gives the
    formula above, whatever the splits: they only place the parentheses.

    Cost, in multiplications: the product of (p, q) and (q, r) takes p q r. Each of its two gradients takes the same,
    because it has the same three sizes in another order. So the output and all n gradients together take three times
    the multiplications of the output, with the same parentheses. The gradients alone don't need the outermost product.
    `cheapest_splits` finds, in n**3 / 6 steps, the parentheses that make the gradients cheapest, and nothing is
    multiplied twice. No single gradient can cost less than the cheapest output. Different parentheses for different
    gradients are not searched: they share less. Among thousands of chains of three to five matrices with random sizes,
    they saved up to a fifth for some and nothing for most.

    A sum is a chain, too: output.sum() = ones(1, sizes[0]) @ M[0] @ ... @ M[n-1] @ ones(sizes[n], 1). For
    grad_output=None, the two vectors are put at the ends. Then every product has a vector as a factor, and all
    gradients together take about three multiplications for each entry of the matrices.

    Raises ValueError for an operand that isn't a matrix, for neighbours whose sizes don't fit, and for a
    grad_output that isn't shaped as the output. Raises TypeError for operands that `vjp` doesn't take.
    """
    check_differentiable("chain_gradients", as_arrays("chain_gradients", matrices))
    sizes = chain_sizes(matrices)
    if grad_output is None:
        ones = functools.partial(namespace(matrices[0]).ones, dtype=matrices[0].dtype, device=matrices[0].device)
        chain = (ones((1, sizes[0])), *matrices, ones((sizes[-1], 1)))
        return chain_gradients(*chain, grad_output=ones((1, 1)))[1:-1]
    grad_output = check_upstream("chain_gradients", grad_output, (sizes[0], sizes[-1]), matrices[0])
    splits = cheapest_splits(sizes)

    @functools.cache  # each product once
    def product(first: int, last: int) -> Tensor:
        if first == last:
            return matrices[first]
        split = splits[first, last]
        return product(first, split) @ product(split + 1, last)

    def gradients(first: int, last: int, grad_product: Tensor) -> tuple[Tensor, ...]:
        if first == last:
            return (grad_product,)
        split = splits[first, last]
        grad_left = grad_product @ product(split + 1, last).T
        grad_right = product(first, split).T @ grad_product
        return *gradients(first, split, grad_left), *gradients(split + 1, last, grad_right)

    return gradients(0, len(matrices) - 1, grad_output)


def chain_sizes(matrices: Sequence[Tensor]) -> list[int]:
    """sizes, where matrix i is (sizes[i], sizes[i+1]). Raises ValueError if neighbours don't fit."""
    for position, matrix in enumerate(matrices):
        if matrix.ndim != 2:
            raise ValueError(f"chain_gradients: operand {position} has shape {tuple(matrix.shape)}, not a matrix's")
        if position > 0 and matrices[position - 1].shape[1] != matrix.shape[0]:
            raise ValueError(
                f"chain_gradients: operands {position - 1} and {position} don't fit: "
                f"{tuple(matrices[position - 1].shape)} @ {tuple(matrix.shape)}"
            )
    return [matrices[0].shape[0], *(matrix.shape[1] for matrix in matrices)]


def cheapest_splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to split each part of the chain, from matrix `first` to `last`: {(first, last): last matrix of left side}.

    cost(part) = min over split of cost(left side) + cost(right side) + 3 p q r

    where the sides are (p, q) and (q, r), and 3 counts their product and its two gradients. It is 2 for the whole
    chain, whose product isn't needed. Longer parts are built from shorter ones.
    """
    num_matrices = len(sizes) - 1
    cost = {(position, position): 0 for position in range(num_matrices)}
    splits: dict[tuple[int, int], int] = {}
    for length in range(2, num_matrices + 1):
        num_products = 2 if length == num_matrices else 3
        for first in range(num_matrices - length + 1):
            last = first + length - 1
            cost[first, last], splits[first, last] = min(
                (
                    cost[first, split]
                    + cost[split + 1, last]
                    + num_products * sizes[first] * sizes[split + 1] * sizes[last + 1],
                    split,
                )
                for split in range(first, last)
            )
    return splits
