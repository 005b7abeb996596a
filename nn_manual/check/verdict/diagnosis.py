"""What is wrong with a gradient that differs: the mistakes of deriving by hand, recognised by the trace they leave."""

from __future__ import annotations

import itertools

import numpy as np

from nn_manual.arrays import Array
from nn_manual.check.step.recording import LayerCalls
from nn_manual.check.tolerances import SUM_OF_PRODUCTS

#: An explanation holds where it leaves less than this of the largest magnitude. Ten times the tolerance that a correct
#: gradient meets, since an explanation is found by adding and dividing values that carry rounding already.
EXPLAINED = {dtype: 10 * tolerance for dtype, tolerance in SUM_OF_PRODUCTS.items()}

#: So many positions, rows or columns are listed at most: enough to see a pattern in one line.
LISTED = 4


def diagnose(ours: Array, reference: Array, index: tuple[int, ...], calls: LayerCalls | None, batch_size: int) -> str:
    """In words, how a tensor of a step differs, worst at `index`, and how near the input of the layer that made it, if
    it was a layer, is to a kink there.
    """
    kink_distance = getattr(calls.layer, "kink_distance", None) if calls else None
    if kink_distance is None or calls is None or calls.input is None or calls.input.shape != ours.shape:
        return describe_difference(ours, reference, batch_size=batch_size)
    distance = kink_distance(calls.input)
    words = describe_difference(ours, reference, kinks=distance == 0, batch_size=batch_size)
    return f"{words}\n{describe_kinks(distance, index)}"


@np.errstate(all="ignore")  # what overflows explains nothing
def describe_difference(
    ours: Array, reference: Array, kinks: Array | None = None, batch_size: int | None = None
) -> str:
    """In words, how a hand-derived gradient differs from the reference: two numpy arrays of one floating dtype.

    The first of these that explains all of the difference is returned: equal; a shape (transposed, reshaped, not summed
    over a broadcast axis); values that aren't finite; zero everywhere; a wrong sign or constant factor, named where it
    is 2, a size of the array, `batch_size` or an inverse of these; a transpose; a term constant along an axis, as a
    missing mean or bias leaves it; a sum in place of a product, or an axis lost. Otherwise which positions differ:
    those marked in `kinks` (bool, shaped as both: where the input is tied or at a kink), those of a few rows or
    columns, with what is wrong there, or how many and the first of them.
    """
    if ours.shape != reference.shape:
        return _shape(ours, reference)
    if not np.isfinite(reference).all():
        return f"the reference is not finite at {_positions(~np.isfinite(reference))}"
    if not np.isfinite(ours).all():
        never = "; it was never written, or added to what was there" if np.isnan(ours).all() else ""
        return f"not finite at {_positions(~np.isfinite(ours))}{never}"
    if _close(ours, reference):
        return "equal up to rounding"
    if not ours.any():
        return "zero everywhere: the gradient was not passed on"
    return (
        _factor(ours, reference, batch_size)
        or _transpose(ours, reference)
        or _term(ours, reference)
        or _lost_structure(ours, reference)
        or _places(ours, reference, kinks)
    )


def describe_kinks(distance: Array, index: tuple[int, ...]) -> str:
    """In words, how far the input is from a kink: at `index`, and where it is nearest to one."""
    nearest = tuple(int(i) for i in np.unravel_index(np.argmin(distance), distance.shape))
    return f"the input is {distance[index]:.2g} from a kink there; the nearest is {distance[nearest]:.2g}, at {nearest}"


def _close(ours: Array, reference: Array) -> bool:
    """Whether nothing but rounding is left between two arrays of one shape."""
    return not _wrong(ours, reference).any()


def _wrong(ours: Array, reference: Array) -> Array:
    """Where two arrays of one shape differ by more than rounding."""
    scale = max(np.abs(ours).max(initial=0), np.abs(reference).max(initial=0))
    wrong: Array = np.abs(ours - reference) > EXPLAINED[reference.dtype.name] * scale
    return wrong


def _positions(wrong: Array) -> str:
    """How many positions are marked, of how many, and the first of them."""
    indices = [str(tuple(int(i) for i in index)) for index in np.argwhere(wrong)]
    more = ", ..." if len(indices) > LISTED else ""
    return f"{len(indices)} of {wrong.size} positions: {', '.join(indices[:LISTED])}{more}"


def _shape(ours: Array, reference: Array) -> str:
    """Shapes that differ, and whether the values are right otherwise."""
    sentence = f"shape {ours.shape}, the reference has {reference.shape}"
    if ours.T.shape == reference.shape and _close(ours.T, reference):
        return f"{sentence}: transposed, the values are right"
    if ours.size == reference.size and _close(ours.reshape(reference.shape), reference):
        return f"{sentence}: reshaped, the values are right"
    for num_axes in range(1, ours.ndim + 1):
        for axes in itertools.combinations(range(ours.ndim), num_axes):
            total = ours.sum(axis=axes)
            if total.size == reference.size and _close(total.reshape(reference.shape), reference):
                return f"{sentence}: summed over axis {axes}, the values are right; the operand was broadcast along it"
    return sentence


def _factor(ours: Array, reference: Array, batch_size: int | None) -> str | None:
    """ours = factor * reference, the factor by least squares; named where a square or a size gives it."""
    tolerance = EXPLAINED[reference.dtype.name]
    factor = float(np.vdot(reference, ours) / np.vdot(reference, reference)) if reference.any() else 0.0
    if factor == 0 or not _close(ours, factor * reference):
        return None
    sign = "the wrong sign" if factor < 0 else ""
    size = abs(factor)
    if np.isclose(size, 1, rtol=tolerance):
        return sign
    sizes = [(length, f"the size of axis {axis}") for axis, length in enumerate(reference.shape)]
    known = [(2, "the slope of a square"), *sizes, (reference.size, "the number of entries")]
    known += [(batch_size, "the batch size")] if batch_size else []
    times = [name for value, name in known if np.isclose(size, value, rtol=tolerance)]
    divided = [name for value, name in known if np.isclose(1 / size, value, rtol=tolerance)]
    if times:
        words = f"{size:.0f} times the reference: {' or '.join(times)}"
    elif divided:
        words = f"1/{1 / size:.0f} of the reference: divided by {' or '.join(divided)}"
    else:
        words = f"{size:.6g} times the reference"
    return f"{sign}, and {words}" if sign else words


def _transpose(ours: Array, reference: Array) -> str | None:
    """ours = reference.T, for a square matrix; another shape's transpose shows in the shape."""
    if ours.ndim == 2 and ours.shape == ours.T.shape and _close(ours, reference.T):
        return "the transpose of the reference"
    return None


def _term(ours: Array, reference: Array) -> str | None:
    """ours = reference + a term that is constant along some axes, along which the reference varies; most axes first."""
    for axes in _long_axes(ours):
        term = (ours - reference).mean(axis=axes, keepdims=True)
        if _close(ours, reference + term) and not _constant(reference, axes):
            if term.size == 1:
                return f"the reference plus {term.item():.6g} everywhere"
            return f"the reference plus a term that is constant along axis {axes}: a bias or a mean, extra or missing"
    return None


def _lost_structure(ours: Array, reference: Array) -> str | None:
    """ours constant along axes along which the reference varies; or a matrix that is a sum of rows and columns."""
    for axes in _long_axes(ours):
        if _constant(ours, axes) and not _constant(reference, axes):
            return f"constant along axis {axes}, along which the reference varies: summed or broadcast too early"
    if ours.ndim == 2 and _sum_of_rows_and_columns(ours) and not _sum_of_rows_and_columns(reference):
        return "a term for each row plus one for each column: sums, where the reference has a product"
    return None


def _constant(array: Array, axes: tuple[int, ...]) -> bool:
    """Whether all entries along the axes are the same."""
    return _close(np.broadcast_to(array.mean(axis=axes, keepdims=True), array.shape), array)


def _sum_of_rows_and_columns(matrix: Array) -> bool:
    """Whether matrix[i, j] = r[i] + c[j], in which case its means are r and c, up to constants."""
    return _close(matrix.mean(axis=1, keepdims=True) + matrix.mean(axis=0) - matrix.mean(), matrix)


def _long_axes(array: Array) -> list[tuple[int, ...]]:
    """Every choice of axes with more than one entry, the largest choices first."""
    axes = [axis for axis, size in enumerate(array.shape) if size > 1]
    return [choice for count in range(len(axes), 0, -1) for choice in itertools.combinations(axes, count)]


def _places(ours: Array, reference: Array, kinks: Array | None) -> str:
    """Which positions differ: kinks, or part of an axis and what is wrong in that part, or a list."""
    wrong = _wrong(ours, reference)
    if kinks is not None and not (wrong & ~kinks).any():
        return f"differs at ties or kinks only, {_positions(wrong)}"
    for axis, size in enumerate(wrong.shape):
        indices = np.flatnonzero(wrong.any(axis=tuple(other for other in range(wrong.ndim) if other != axis)))
        if len(indices) < size and len(indices) <= LISTED:
            part = describe_difference(ours.take(indices, axis), reference.take(indices, axis))
            return f"only index {', '.join(map(str, indices))} of axis {axis} differs; there: {part}"
    worst = np.unravel_index(np.argmax(np.abs(ours - reference)), ours.shape)
    return f"{_positions(wrong)}; worst {ours[worst]:.6g}, the reference has {reference[worst]:.6g}"
