"""Operations that move entries and compute nothing.

Each entry of the answer is one entry of an operand, so its slope is 1: the gradient goes back to the entry's place in
the operand. If an entry was used several times, its gradients add.
"""

from __future__ import annotations

import math
from typing import Any

from nn_manual.arrays import Shape, namespace
from nn_manual.ops.operation import Backward, Differentiated, Tensor, broadcast_shape, operation, unbroadcast
from nn_manual.ops.reductions import reduced_axes


@operation(analytic=True)
def reshape(input: Tensor, /, *, shape: Shape) -> Differentiated:
    """The same entries, in the same order, in another shape; one size may be -1: it follows from the others.

        answer     = input.reshape(shape)
        grad_input = grad_answer.reshape(input.shape)

    Derivation: entry k, counted row by row, stays entry k.
    """
    return namespace(input).reshape(input, shape), lambda grad_answer: grad_answer.reshape(input.shape)


@operation(analytic=True)
def transpose(input: Tensor, /, *, axes: tuple[int, ...] | None = None) -> Differentiated:
    """Axes in another order, reversed if `axes` is None: axis i of the answer is axis axes[i] of the input.

        order      = range(input.ndim)[::-1] if axes is None else [axis % input.ndim for axis in axes]
        answer     = transpose(input, order)
        grad_input = transpose(grad_answer, argsort(order))

    Derivation: the entry at (j[0], j[1], ...) of the answer is the entry of the input where axis axes[i] has index
    j[i]. The way back is the inverse permutation, which argsort gives. In the code, `moveaxis` moves axes from where
    they are, the order, to places, so the way back is the same call with the two swapped.
    """
    xp = namespace(input)
    places = tuple(range(input.ndim))
    order = tuple(reversed(places)) if axes is None else reduced_axes(axes, input.ndim)
    if len(order) != input.ndim:
        raise ValueError(f"axes {axes} must name each dimension once, and the array has {input.ndim}")
    return xp.moveaxis(input, order, places), lambda grad_answer: xp.moveaxis(grad_answer, places, order)


@operation(analytic=True)
def broadcast_to(input: Tensor, /, *, shape: Shape) -> Differentiated:
    """The input, repeated to `shape` along axes that it doesn't have or where its size is 1; a read-only view.

        answer     = broadcast_to(input, shape)
        grad_input = unbroadcast(grad_answer, input.shape)

    Derivation: see `unbroadcast`. Raises ValueError unless `shape` is what the two shapes broadcast to.
    """
    if broadcast_shape(input.shape, shape) != tuple(shape):
        raise ValueError(f"does not broadcast to {tuple(shape)}")
    answer = namespace(input).broadcast_to(input, tuple(shape))
    return answer, lambda grad_answer: unbroadcast(grad_answer, input.shape)


@operation(analytic=True)
def concatenate(*inputs: Tensor, axis: int = 0) -> Differentiated:
    """Arrays one after the other along an axis; their other sizes must be equal.

        stops       = cumsum([input.shape[axis] for input in inputs])
        answer      = concatenate(inputs, axis)
        grad_inputs = split(grad_answer, stops[:-1], axis)

    Derivation: an input starts where the one before it stops, so its entry i along the axis is the answer's entry
    start + i. Raises ValueError if the shapes don't fit.
    """
    xp = namespace(inputs[0])
    (along,) = reduced_axes(axis, inputs[0].ndim)
    rests = {(*input.shape[:along], *input.shape[along + 1 :]) for input in inputs}
    if len(rests) > 1 or len({input.ndim for input in inputs}) > 1:
        raise ValueError(f"the shapes must agree but for axis {axis}")

    def part(start: int, size: int) -> Backward:
        return lambda grad_answer: grad_answer[(slice(None),) * along + (slice(start, start + size),)]

    sizes = [input.shape[along] for input in inputs]
    backwards = [part(sum(sizes[:k]), size) for k, size in enumerate(sizes)]
    return xp.concatenate(inputs, axis=along), *backwards


@operation(analytic=True)
def index(input: Tensor, /, *, key: Any) -> Differentiated:
    """input[key]; the key has integers, slices, None, ... and arrays of integers, as in the operand's library.

        answer     = input[key]
        positions  = arange(input.size).reshape(input.shape)[key]
        grad_input = bincount(positions.reshape(-1), grad_answer.reshape(-1), input.size).reshape(input.shape)

    Derivation: number the entries of the input row by row. The same key, applied to the numbers, gives the number of
    each entry of the answer. An entry may be taken several times, so
    grad_input[p] = sum of grad_answer[j] over all j with positions[j] = p, which is a count with weights.
    Raises ValueError for a key out of range.
    """
    return input[key], lambda grad_answer: collect(grad_answer, number_entries(input)[key], input)


@operation(analytic=True)
def diagonal(input: Tensor, /, *, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Differentiated:
    """The diagonal, `offset` columns to the right, of each matrix that two axes span, as the answer's last axis.

        positions  = diagonal(arange(input.size).reshape(input.shape), offset, axis1, axis2)
        answer     = diagonal(input, offset, axis1, axis2)
        grad_input = bincount(positions.reshape(-1), grad_answer.reshape(-1), input.size).reshape(input.shape)

    Derivation: as for `index`. Entry i of a diagonal is the entry at (i, i + offset), or (i - offset, i) for a
    negative offset; each is taken once.
    """
    xp = namespace(input)
    first, second = reduced_axes((axis1, axis2), input.ndim)
    return (
        xp.diagonal(input, offset, first, second),
        lambda grad_answer: collect(grad_answer, xp.diagonal(number_entries(input), offset, first, second), input),
    )


def number_entries(input: Tensor) -> Tensor:
    """An array of the input's shape that holds 0, 1, 2, ... row by row."""
    return namespace(input).arange(math.prod(input.shape), device=input.device).reshape(input.shape)


def collect(grad_answer: Tensor, positions: Tensor, input: Tensor) -> Tensor:
    """grad_input, where entry j of the answer is the input's entry number positions[j]."""
    xp = namespace(input)
    grad_input = xp.zeros_like(input).reshape(-1)
    # Added in place, which keeps grad_input's dtype: numpy's bincount is in float64.
    grad_input += xp.bincount(positions.reshape(-1), grad_answer.reshape(-1), grad_input.shape[0])
    return grad_input.reshape(input.shape)
