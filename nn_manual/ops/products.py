"""Matrix products, from the dot product of two vectors to broadcast stacks of matrices, and the trace."""

from __future__ import annotations

from nn_manual.arrays import namespace
from nn_manual.messages.text import counted
from nn_manual.ops.operation import Differentiated, Tensor, broadcast_shape, operation, unbroadcast


@operation(analytic=True)
def outer(a: Tensor, b: Tensor, /) -> Differentiated:
    """Outer product of two vectors, (n,) and (m,) to (n, m).

        answer = a[:, None] * b
        grad_a = grad_answer @ b
        grad_b = grad_answer.T @ a

    Derivation: answer[i, j] = a[i] b[j]. Its slope for a[i] is b[j], so grad_a[i] = sum_j grad_answer[i, j] b[j];
    its slope for b[j] is a[i], so grad_b[j] = sum_i grad_answer[i, j] a[i].
    """
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError("both operands must be vectors")
    return (
        a[:, None] * b,
        lambda grad_answer: grad_answer @ b,
        lambda grad_answer: grad_answer.T @ a,
    )


@operation(analytic=True)
def matmul(a: Tensor, b: Tensor, /) -> Differentiated:
    """Matrix product a @ b of vectors, matrices, and stacks of matrices (..., n, k) @ (..., k, m) that broadcast.

        answer      = a @ b
        matrix_a    = a[None, :] if a.ndim == 1 else a
        matrix_b    = b[:, None] if b.ndim == 1 else b
        grad_matrix = grad_answer.reshape((matrix_a @ matrix_b).shape)
        grad_a      = unbroadcast(grad_matrix @ matrix_b.mT, matrix_a.shape).reshape(a.shape)
        grad_b      = unbroadcast(matrix_a.mT @ grad_matrix, matrix_b.shape).reshape(b.shape)

    Derivation: for two matrices, answer[i, j] = sum_l a[i, l] b[l, j], so

        d answer[i, j] / d a[i, l] = b[l, j]  and  grad_a[i, l] = sum_j grad_answer[i, j] b[l, j]
        d answer[i, j] / d b[l, j] = a[i, l]  and  grad_b[l, j] = sum_i a[i, l] grad_answer[i, j]

    which are grad_answer @ b.T and a.T @ grad_answer. A vector on the left is a matrix of one row, and a vector on
    the right is a matrix of one column. A stack is one such product for each of its matrices; if several products use
    the same matrix, their gradients add. Raises ValueError if the shapes don't fit.
    """
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError("a number isn't a matrix: multiply gives the product with a number")
    matrix_a = a[None, :] if a.ndim == 1 else a
    matrix_b = b[:, None] if b.ndim == 1 else b
    if matrix_a.shape[-1] != matrix_b.shape[-2]:
        length = counted(matrix_a.shape[-1], "entry", "entries")
        raise ValueError(f"rows of a have {length}, columns of b {matrix_b.shape[-2]}")
    stack = broadcast_shape(matrix_a.shape[:-2], matrix_b.shape[:-2])
    shape = (*stack, matrix_a.shape[-2], matrix_b.shape[-1])
    return (
        a @ b,
        lambda grad_answer: unbroadcast(grad_answer.reshape(shape) @ matrix_b.mT, matrix_a.shape).reshape(a.shape),
        lambda grad_answer: unbroadcast(matrix_a.mT @ grad_answer.reshape(shape), matrix_b.shape).reshape(b.shape),
    )


@operation(analytic=True)
def trace(input: Tensor, /) -> Differentiated:
    """Sum of a matrix's diagonal, (n, m) to ().

        answer     = sum(diagonal(input))
        grad_input = where(eye(*input.shape), grad_answer, 0)

    Derivation: input[i, i] is added once, so its slope is 1; entries off the diagonal have slope 0.
    """
    if input.ndim != 2:
        raise ValueError("the input must be a matrix")
    xp = namespace(input)
    return (
        xp.trace(input),
        lambda grad_answer: xp.where(xp.eye(*input.shape, dtype=bool, device=input.device), grad_answer, 0),
    )
