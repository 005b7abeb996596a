"""Reductions over all axes (`axis=None`), one axis or several, and softmax.

A negative `axis` counts from the end. With `keepdims` the reduced axes stay, with size 1. Raises ValueError for an axis
that is out of range or named twice, and if there is nothing to reduce and no neutral element.
"""

from __future__ import annotations

from collections.abc import Callable

from nn_manual.arrays import Shape, namespace, size_of
from nn_manual.messages.text import counted
from nn_manual.ops.operation import Differentiated, Tensor, operation

Axis = int | tuple[int, ...] | None


@operation(analytic=True)
def sum(input: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Differentiated:
    """Sum over axes; the sum of nothing is 0.

        answer     = sum(input, axis=axis, keepdims=keepdims)
        grad_input = spread(grad_answer, input.shape, axis)

    Derivation: each entry of the input is added once, to one entry of the answer, so its slope is 1: its gradient is
    that entry's gradient. `spread` copies the answer's gradient along the axes that were summed.
    """
    axes = reduced_axes(axis, input.ndim)
    answer = namespace(input).sum(input, axes, keepdims=keepdims)
    return answer, lambda grad_answer: spread(grad_answer, input.shape, axes)


@operation(analytic=True)
def mean(input: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Differentiated:
    """Sum over axes, divided by the number of entries summed. Raises ValueError if this number is 0.

        answer     = mean(input, axis=axis, keepdims=keepdims)
        grad_input = spread(grad_answer, input.shape, axis) / (input.size // answer.size)

    Derivation: as for sum, but each entry has slope 1 / number.
    """
    axes = reduced_axes(axis, input.ndim)
    count = count_entries(input, axes)
    answer = namespace(input).sum(input, axes, keepdims=keepdims) / count
    return answer, lambda grad_answer: spread(grad_answer, input.shape, axes) / count


@operation(analytic=False)
def max(input: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Differentiated:
    """Largest entry, of all (axis=None) or along one axis. Raises ValueError if there is none.

        answer     = max(input, axis=axis, keepdims=keepdims)
        share      = chosen(input, argmax, axis)
        grad_input = where(share > 0, spread(grad_answer, input.shape, axis) * share, 0)

    Derivation: a small step of the largest entry moves the answer by as much; a step of any other entry doesn't move
    it. At a tie, any shares that add up to 1 are a subgradient. torch has two ways, and so has `chosen`: over all
    entries, each of n tied ones has the share 1 / n; along an axis, the first of them has the share 1.
    """
    xp = namespace(input)
    axes = extremum_axes(input, axis)

    def backward(grad_answer: Tensor) -> Tensor:
        share = chosen(input, xp.argmax, axis)
        return xp.where(share > 0, spread(grad_answer, input.shape, axes) * share, 0)

    return xp.amax(input, axes, keepdims=keepdims), backward


@operation(analytic=False)
def min(input: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Differentiated:
    """Smallest entry, of all (axis=None) or along one axis. Raises ValueError if there is none.

        answer     = min(input, axis=axis, keepdims=keepdims)
        share      = chosen(input, argmin, axis)
        grad_input = where(share > 0, spread(grad_answer, input.shape, axis) * share, 0)

    Derivation: as for max. At a tie, torch takes the share 1 / n for each of n tied entries over all entries; along an
    axis, it takes the share 1 for the first of them.
    """
    xp = namespace(input)
    axes = extremum_axes(input, axis)

    def backward(grad_answer: Tensor) -> Tensor:
        share = chosen(input, xp.argmin, axis)
        return xp.where(share > 0, spread(grad_answer, input.shape, axes) * share, 0)

    return xp.amin(input, axes, keepdims=keepdims), backward


@operation(analytic=True)
def logsumexp(input: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Differentiated:
    """log(sum(exp(input))) over axes, without overflow; -inf where there are no entries.

        answer     = log(sum(exp(input), axis=axis, keepdims=keepdims))
        grad_input = spread(grad_answer, input.shape, axis) * exp(input - spread(answer, input.shape, axis))

    Derivation: with s = sum_k exp(x_k), d log(s) / d x_i = exp(x_i) / s = exp(x_i - log(s)): the softmax.
    The largest entry m is subtracted first: log(sum_k exp(x_k)) = m + log(sum_k exp(x_k - m)), and no exponent is
    above 0.
    """
    xp = namespace(input)
    axes = reduced_axes(axis, input.ndim)
    largest = finite_max(input, axes)
    total = xp.sum(xp.exp(input - spread(largest, input.shape, axes)), axes, keepdims=keepdims)
    answer = xp.log(total) + largest.reshape(total.shape)
    return (
        answer,
        lambda grad_answer: spread(grad_answer, input.shape, axes) * xp.exp(input - spread(answer, input.shape, axes)),
    )


@operation(analytic=True)
def softmax(input: Tensor, /, *, axis: int = -1) -> Differentiated:
    """exp(input) / sum(exp(input)) along an axis, without overflow.

        answer     = exp(input) / sum(exp(input), axis=axis, keepdims=True)
        grad_input = answer * (grad_answer - sum(grad_answer * answer, axis=axis, keepdims=True))

    Derivation: y_j = exp(x_j) / s gives d y_j / d x_i = y_j ([i = j] - y_i), one term from the numerator and one
    from s. So grad_x_i = sum_j grad_y_j y_j ([i = j] - y_i) = y_i (grad_y_i - sum_j grad_y_j y_j).
    """
    xp = namespace(input)
    axes = reduced_axes(axis, input.ndim)
    exponential = xp.exp(input - spread(finite_max(input, axes), input.shape, axes))
    answer = exponential / xp.sum(exponential, axes, keepdims=True)
    return answer, lambda grad_answer: answer * (grad_answer - xp.sum(grad_answer * answer, axes, keepdims=True))


def reduced_axes(axis: Axis, num_dimensions: int) -> tuple[int, ...]:
    """The axes to reduce, counted from the front. Raises ValueError if one is out of range or named twice."""
    if axis is None:
        return tuple(range(num_dimensions))
    axes = axis if isinstance(axis, tuple) else (axis,)
    if not axes and num_dimensions > 0:
        raise ValueError("axis is an empty tuple, which numpy takes for no axis and torch for all")
    for one in axes:
        if not -num_dimensions <= one < num_dimensions:
            raise ValueError(f"axis {one} is out of range for {counted(num_dimensions, 'dimension')}")
    from_front = tuple(one % num_dimensions for one in axes)
    if len(set(from_front)) < len(from_front):
        raise ValueError(f"axis {axis} names a dimension twice")
    return from_front


def extremum_axes(input: Tensor, axis: int | None) -> tuple[int, ...]:
    """The axes of max and min: all, or one. Raises ValueError for several, and where there are no entries."""
    if isinstance(axis, tuple):
        raise ValueError(f"axis is None or one integer, not {axis}")
    axes = reduced_axes(axis, input.ndim)
    count_entries(input, axes)
    return axes


def count_entries(input: Tensor, axes: tuple[int, ...]) -> int:
    """How many entries are reduced to one. Raises ValueError if the number is 0."""
    count = size_of(tuple(input.shape[axis] for axis in axes))
    if count == 0:
        raise ValueError(f"there are no entries along axis {axes}")
    return count


def spread(reduced: Tensor, shape: Shape, axis: Axis) -> Tensor:
    """A reduction's answer, or its gradient, copied along the reduced axes: a read-only view in the input's shape."""
    axes = reduced_axes(axis, len(shape))
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return namespace(reduced).broadcast_to(reduced.reshape(kept), tuple(shape))


def finite_max(input: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The largest entry over the axes, which stay with size 1; 0 where it is infinite or there are no entries."""
    xp = namespace(input)
    if 0 in input.shape:
        return xp.sum(input, axes, keepdims=True)
    largest = xp.amax(input.real, axes, keepdims=True)  # a complex step moves the imaginary part only
    return xp.where(xp.isfinite(largest), largest, 0)


def chosen(input: Tensor, arg_extreme: Callable[..., Tensor], axis: int | None) -> Tensor:
    """Each entry's share in the extreme: along an axis, 1 for the first; over all entries, 1 / n for each of n tied."""
    xp = namespace(input)
    if axis is None:
        extreme = input.reshape(-1)[arg_extreme(input)]  # NaN, if there is one
        tied = (input == extreme) | xp.isnan(input)
        return xp.where(tied, xp.ones_like(input) / int(tied.sum()), 0)
    num_after = input.ndim - 1 - axis % input.ndim
    positions = xp.arange(input.shape[axis], device=input.device).reshape(-1, *[1] * num_after)
    return xp.where(positions == arg_extreme(input, axis=axis, keepdims=True), xp.ones_like(input), 0)
