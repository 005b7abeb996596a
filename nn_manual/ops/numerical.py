"""Derivatives from the values of a function alone: a check that needs no derivation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.ops.differences import slopes_of
from nn_manual.ops.operation import Operation, Tensor, check_upstream, is_constant

#: The complex step subtracts nothing, so it can't cancel. It may be so small that its square is 0 beside any number.
COMPLEX_STEP = 1e-100


def numerical_gradient(
    function: Callable[..., Tensor], *operands: Tensor, grad_answer: Tensor | None = None, **options: Any
) -> Any:
    """Gradients of sum(grad_answer * function(*operands, **options)) for the operands, entry by entry.

    `function` is an Operation, or any function of numpy arrays. It runs in float64 on numpy arrays, whatever the
    operands' library and dtype: so this is the derivative at the operands, not at their neighbours in float32. An
    analytic Operation is differentiated by the complex step,

        f(x + i h) = f(x) + i h f'(x) - h**2 f''(x) / 2 - ...,  so  f'(x) = imag(f(x + i h)) / h + O(h**2)

    which is exact but for rounding; any other function by extrapolated differences, to about 1e-12 of f (see
    `differences`). At a kink or tie these give the mean of the slopes left and right. `grad_answer` may be left out
    only for an answer of shape (). Returns what the `backward` of `vjp` returns: a float64 array for each array
    operand, and no tuple if there is only one; Python numbers are constants. Raises ValueError for a grad_answer that
    isn't shaped as the answer.
    """
    arrays = [operand if is_constant(operand) else np.asarray(operand, dtype=np.float64) for operand in operands]
    answer = np.asarray(function(*arrays, **options))
    name = getattr(function, "__name__", "numerical_gradient")
    upstream = check_upstream(
        name, 1.0 if grad_answer is None else np.asarray(grad_answer, dtype=np.float64), answer.shape, answer
    )
    analytic = isinstance(function, Operation) and function.analytic

    def gradient(position: int) -> Array:
        def along(entry: Array) -> Array:
            """The answer with this array in the operand's place."""
            return np.asarray(function(*arrays[:position], entry, *arrays[position + 1 :], **options))

        operand = arrays[position]
        if analytic:
            slopes = [np.sum(upstream * complex_step(along, operand, index)) for index in np.ndindex(operand.shape)]
        else:
            slopes = [found.value for found in slopes_of(along, operand, upstream)]
        return np.array(slopes, dtype=np.float64).reshape(operand.shape)

    gradients = tuple(gradient(position) for position, array in enumerate(arrays) if not is_constant(array))
    return gradients if len(gradients) > 1 else gradients[0]


def complex_step(function: Callable[[Array], Array], operand: Array, index: tuple[int, ...]) -> Array:
    """The derivative of an analytic function's values with respect to operand[index]."""
    stepped = operand.astype(np.complex128)
    stepped[index] += 1j * COMPLEX_STEP
    slope: Array = function(stepped).imag / COMPLEX_STEP
    return slope
