"""Derivatives from the values of a function alone: the check that knows no derivation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.ops.operation import Operation, Tensor, check_upstream, is_constant

#: Step of the central difference, times the entry's size where that is above 1. Its error is step**2 f''' / 6 from
#: the series and epsilon f / step from rounding; a step near epsilon**(1/3) makes the two alike, about 1e-10.
CENTRAL_STEP = float(np.finfo(np.float64).eps ** (1 / 3))
#: The complex step subtracts nothing, so it can't cancel: so small that its square is 0 beside any number.
COMPLEX_STEP = 1e-100


def numerical_gradient(
    function: Callable[..., Tensor], *operands: Tensor, grad_answer: Tensor | None = None, **options: Any
) -> Any:
    """Gradients of sum(grad_answer * function(*operands, **options)) for the operands, entry by entry.

    `function` is an Operation, or any function of numpy arrays. It is run in float64 on numpy arrays, whatever
    the operands' library and dtype: so this is the derivative at the operands, not at their neighbours in
    float32. An analytic Operation gets the complex step,

        f(x + i h) = f(x) + i h f'(x) - h**2 f''(x) / 2 - ...,  so  f'(x) = imag(f(x + i h)) / h + O(h**2)

    exact to rounding, anything else the central difference, to about 1e-10 of f:

        f(x + h) - f(x - h) = 2 h f'(x) + h**3 f'''(x) / 3 + ...,  so  f'(x) = (f(x + h) - f(x - h)) / 2 h + O(h**2)

    At a kink or tie the central difference is the mean of the slopes left and right. `grad_answer` may be left out
    for an answer of shape () only. Returns what the `backward` of `vjp` does: an array for each array operand, in
    float64, and no tuple where there is one; Python numbers are constants. Raises ValueError for a grad_answer
    that isn't shaped as the answer.
    """
    arrays = [operand if is_constant(operand) else np.asarray(operand, dtype=np.float64) for operand in operands]
    answer = np.asarray(function(*arrays, **options))
    name = getattr(function, "__name__", "numerical_gradient")
    upstream = check_upstream(
        name, 1.0 if grad_answer is None else np.asarray(grad_answer, dtype=np.float64), answer.shape, answer
    )
    slope = complex_step if isinstance(function, Operation) and function.analytic else central_difference

    def gradient(position: int) -> Array:
        def along(entry: Array) -> Array:
            """The answer with this array in the operand's place."""
            return np.asarray(function(*arrays[:position], entry, *arrays[position + 1 :], **options))

        entries = np.ndindex(arrays[position].shape)
        slopes = [np.sum(upstream * slope(along, arrays[position], index)) for index in entries]
        return np.array(slopes, dtype=np.float64).reshape(arrays[position].shape)

    gradients = tuple(gradient(position) for position, array in enumerate(arrays) if not is_constant(array))
    return gradients if len(gradients) > 1 else gradients[0]


def complex_step(function: Callable[[Array], Array], operand: Array, index: tuple[int, ...]) -> Array:
    """The derivative of an analytic function's values with respect to operand[index]."""
    stepped = operand.astype(np.complex128)
    stepped[index] += 1j * COMPLEX_STEP
    slope: Array = function(stepped).imag / COMPLEX_STEP
    return slope


def central_difference(function: Callable[[Array], Array], operand: Array, index: tuple[int, ...]) -> Array:
    """The mean slope of a function's values between a step below operand[index] and a step above."""
    above, below = operand.copy(), operand.copy()
    step = CENTRAL_STEP * max(1.0, abs(operand[index]))
    above[index] += step
    below[index] -= step
    slope: Array = (function(above) - function(below)) / (above[index] - below[index])  # 2 step, as rounded
    return slope
