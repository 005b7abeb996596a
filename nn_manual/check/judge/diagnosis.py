"""What is wrong with a gradient that differs: the mistakes of deriving by hand, recognised by the trace they leave."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nn_manual.arrays import Array
from nn_manual.check.compare.tolerances import EXPLAINED, SUM_OF_PRODUCTS, UNEXPLAINED
from nn_manual.check.judge.factors import Near, factor_of
from nn_manual.defaults import defines

if TYPE_CHECKING:  # it needs torch, which plain differences don't
    from nn_manual.check.step.calls import LayerCalls

#: At most this many positions, rows or columns are listed: enough to see a pattern in one line.
LISTED = 4


def diagnose(ours: Array, reference: Array, index: tuple[int, ...], calls: LayerCalls | None, batch_size: int) -> str:
    """In words, how a tensor of a step differs, worst at `index`, and how near the input of the layer that made it, if
    it was a layer, is to a kink there.
    """
    knows_kinks = calls is not None and defines(calls.layer, "kink_distance")
    if not knows_kinks or calls is None or calls.input is None or calls.input.shape != ours.shape:
        return describe_difference(ours, reference, batch_size=batch_size)
    distance = calls.layer.kink_distance(calls.input)
    words = describe_difference(ours, reference, kinks=distance == 0, batch_size=batch_size)
    return f"{words}\n{describe_kinks(distance, index)}"


@np.errstate(all="ignore")  # what overflows explains nothing
def describe_difference(
    ours: Array, reference: Array, kinks: Array | None = None, batch_size: int | None = None
) -> str:
    """In words, how a hand-derived gradient differs from the reference: two numpy arrays of one floating dtype.

    The first of these that explains all of the difference is returned: equal; a shape (transposed, reshaped, not
    summed over a broadcast axis); values that aren't finite; zero everywhere; a wrong sign or constant factor,
    named where it is 2, a size of the array, `batch_size` or an inverse of these; a transpose; a term constant
    along an axis, as a missing mean or bias leaves it; a shift by one; bounds that it never leaves; a sum in place of
    a product, or an axis lost; float64 with the digits of float32. Otherwise which positions differ: those marked in
    `kinks` (bool, shaped as both: where the input is tied or at a kink), those of a few rows or columns, with what is
    wrong there, or how many and the first of them. For a single number, only a factor that has a name is reported:
    any other number is some factor of it.
    """
    if ours.shape != reference.shape:
        return _shape(ours, reference)
    if not np.isfinite(reference).all():
        return f"the reference is not finite at {positions(~np.isfinite(reference))}"
    if not np.isfinite(ours).all():
        never = "; 0 / 0, or it was never written, or added to what was there" if np.isnan(ours).all() else ""
        overflow = "; an overflow, or the logarithm of 0" if np.isinf(ours).any() else ""
        return f"not finite at {positions(~np.isfinite(ours))}{never}{overflow}"
    # In float64: the squares of what float32 holds may overflow in it.
    in_double = ours.astype(np.float64), reference.astype(np.float64)
    dtype = reference.dtype.name if reference.dtype.kind == "f" else "float64"  # integers are exact
    return _values(*in_double, dtype, kinks, batch_size, [*map(np.arange, ours.shape)])


def _values(
    ours: Array, reference: Array, dtype: str, kinks: Array | None, batch_size: int | None, of: Sequence[Array]
) -> str:
    """How finite values of one shape differ, which were computed in `dtype`. They may be a part of a tensor: `of` are
    the indices that it has along each of the tensor's axes.
    """
    worst = float(np.abs(ours - reference).max(initial=0))
    if worst <= SUM_OF_PRODUCTS[dtype] * np.abs(reference).max(initial=0):
        return "equal up to rounding"
    if not ours.any():
        return "zero everywhere: the gradient was not passed on"
    wrong = _wrong(ours, reference, dtype, UNEXPLAINED * worst)
    near = functools.partial(_near, dtype=dtype, most=UNEXPLAINED * worst)
    return (
        factor_of(ours, reference, near, EXPLAINED[dtype], batch_size)
        or _transpose(ours, reference, near)
        or _term(ours, reference, near)
        or _shifted(ours, reference, near)
        or _clipped(ours, reference, near)
        or _lost_structure(ours, reference, near)
        or _of_float32(ours, reference, dtype)
        or _kinks(wrong, kinks, of)
        or _part(ours, reference, wrong, dtype, batch_size, of)
        or _places(ours, reference, wrong, of)
    )


def describe_kinks(distance: Array, index: tuple[int, ...]) -> str:
    """In words, how far the input is from a kink: at `index`, and where it is nearest to one."""
    nearest = tuple(int(i) for i in np.unravel_index(np.argmin(distance), distance.shape))
    return f"the input is {distance[index]:.2g} from a kink there; the nearest is {distance[nearest]:.2g}, at {nearest}"


def _near(ours: Array, candidate: Array, dtype: str, most: float = math.inf) -> bool:
    """Whether no more than rounding in `dtype`, and no more than `most`, is left between two arrays of one shape."""
    return not _wrong(ours, candidate, dtype, most).any()


def _wrong(ours: Array, candidate: Array, dtype: str, most: float) -> npt.NDArray[np.bool_]:
    """Where two arrays of one shape differ by more than that. NaN, of which a product may consist, is wrong."""
    scale = max(np.abs(ours).max(initial=0), np.abs(candidate).max(initial=0))
    right: npt.NDArray[np.bool_] = np.abs(ours - candidate) <= min(EXPLAINED[dtype] * scale, most)
    return ~right


def positions(marked: npt.NDArray[np.bool_], of: Sequence[Array] | None = None) -> str:
    """How many positions are marked, of how many, and the first of them: in the tensor, of which `of` may be a part."""
    places = np.flatnonzero(marked)
    of = of or [*map(np.arange, marked.shape)]
    indices = (np.unravel_index(place, marked.shape) for place in places[:LISTED])
    first = [str(tuple(int(axis[i]) for axis, i in zip(of, index, strict=True))) for index in indices]
    more = ", ..." if len(places) > LISTED else ""
    return f"{len(places)} of {marked.size} positions: {', '.join(first)}{more}"


def _shape(ours: Array, reference: Array) -> str:
    """Shapes that differ, and whether the values are right otherwise."""
    sentence = f"shape {ours.shape}, the reference has {reference.shape}"
    near = functools.partial(_near, dtype=reference.dtype.name)
    ours, reference = ours.astype(np.float64), reference.astype(np.float64)
    if ours.T.shape == reference.shape and near(ours.T, reference):
        return f"{sentence}: transposed, the values are right"
    if ours.size == reference.size and near(ours.reshape(reference.shape), reference):
        return f"{sentence}: reshaped, the values are right"
    for num_axes in range(1, ours.ndim + 1):
        for axes in itertools.combinations(range(ours.ndim), num_axes):
            total = ours.sum(axis=axes)
            if total.size == reference.size and near(total.reshape(reference.shape), reference):
                return f"{sentence}: summed over axis {axes}, the values are right; the operand was broadcast along it"
    return sentence


def _transpose(ours: Array, reference: Array, near: Near) -> str | None:
    """ours = reference.T, for a square matrix; another shape's transpose shows in the shape."""
    if ours.ndim == 2 and ours.shape == ours.T.shape and near(ours, reference.T):
        return "the transpose of the reference"
    return None


def _term(ours: Array, reference: Array, near: Near) -> str | None:
    """ours = reference + a term that is constant along some axes, along which the reference varies; most axes first."""
    for axes in _long_axes(ours):
        term = (ours - reference).mean(axis=axes, keepdims=True)
        if near(ours, reference + term) and not _constant(reference, axes, near):
            if term.size == 1:
                return f"the reference plus {term.item():.6g} everywhere"
            return f"the reference plus a term that is constant along axis {axes}: a bias or a mean, extra or missing"
    return None


def _shifted(ours: Array, reference: Array, near: Near) -> str | None:
    """ours[i] = reference[i + 1], or reference[i - 1], along an axis of four or more entries, but at its end."""
    for axis, size in enumerate(ours.shape):
        first, last = (np.arange(i, size - 1 + i) if size > 3 else np.arange(0) for i in (0, 1))
        for one, other, where in ((first, last, "i + 1"), (last, first, "i - 1")):
            here, there = ours.take(one, axis), reference.take(other, axis)
            if here.size and near(here, there) and not near(here, reference.take(one, axis)):
                return f"shifted by one along axis {axis}: at i it is the reference at {where}"
    return None


def _clipped(ours: Array, reference: Array, near: Near) -> str | None:
    """ours = reference inside of bounds, which at least two entries have met: the largest of all may be any number."""
    low, high = float(ours.min()), float(ours.max())
    at_low, at_high = ((ours == low) & (reference < low)).sum(), ((ours == high) & (reference > high)).sum()
    is_both = low == -high and at_low + at_high > 1
    is_low, is_high = is_both or at_low > 1, is_both or at_high > 1
    bounded = np.clip(reference, low if is_low else -np.inf, high if is_high else np.inf)
    meets_zero = (is_low and low == 0) or (is_high and high == 0)  # values that were lost, not a bound
    if low == high or meets_zero or not near(ours, bounded):
        return None
    if is_low and is_high:
        return f"never beyond {high:.6g} and {low:.6g}: clipped"
    return f"never {f'above {high:.6g}' if is_high else f'below {low:.6g}'}: clipped"


def _lost_structure(ours: Array, reference: Array, near: Near) -> str | None:
    """ours constant along axes along which the reference varies; or a matrix that is a sum of rows and columns."""
    for axes in _long_axes(ours):
        if _constant(ours, axes, near) and not _constant(reference, axes, near):
            return f"constant along axis {axes}, along which the reference varies: summed or broadcast too early"
    if ours.ndim == 2 and _sum_of_rows_and_columns(ours, near) and not _sum_of_rows_and_columns(reference, near):
        return "a term for each row plus one for each column: sums, where the reference has a product"
    return None


def _of_float32(ours: Array, reference: Array, dtype: str) -> str | None:
    """Each float64 value is right to the digits of float32, and most to few more, as where a constant was rounded."""
    error, one = np.abs(ours - reference), np.finfo(np.float32).eps * np.abs(reference)
    if dtype == "float64" and error.size > 1 and (error <= one).all() and 2 * (error > one / 64).sum() > error.size:
        return "right to the digits of float32: is something inside float32?"
    return None


def _constant(array: Array, axes: tuple[int, ...], near: Near) -> bool:
    """Whether all entries along the axes are the same."""
    return near(np.broadcast_to(array.mean(axis=axes, keepdims=True), array.shape), array)


def _sum_of_rows_and_columns(matrix: Array, near: Near) -> bool:
    """Whether matrix[i, j] = r[i] + c[j], in which case its means are r and c, up to constants."""
    return near(matrix.mean(axis=1, keepdims=True) + matrix.mean(axis=0) - matrix.mean(), matrix)


def _long_axes(array: Array) -> list[tuple[int, ...]]:
    """Every choice of axes with more than one entry, the largest choices first."""
    axes = [axis for axis, size in enumerate(array.shape) if size > 1]
    return [choice for count in range(len(axes), 0, -1) for choice in itertools.combinations(axes, count)]


def _kinks(wrong: npt.NDArray[np.bool_], kinks: Array | None, of: Sequence[Array]) -> str | None:
    """Wrong where the input is tied or at a kink, and nowhere else."""
    if kinks is None or (wrong & ~kinks).any():
        return None
    return f"differs at ties or kinks only, {positions(wrong, of)}"


def _part(
    ours: Array,
    reference: Array,
    wrong: npt.NDArray[np.bool_],
    dtype: str,
    batch_size: int | None,
    of: Sequence[Array],
) -> str | None:
    """Wrong in a few indices of an axis, and what is wrong in that part."""
    for axis, size in enumerate(wrong.shape):
        indices = np.flatnonzero(wrong.any(axis=tuple(other for other in range(wrong.ndim) if other != axis)))
        if len(indices) < size and len(indices) <= LISTED:
            inner = [*of[:axis], of[axis][indices], *of[axis + 1 :]]
            part = _values(ours.take(indices, axis), reference.take(indices, axis), dtype, None, batch_size, inner)
            which, differ = ("index", "differs") if len(indices) == 1 else ("indices", "differ")
            return f"only {which} {', '.join(map(str, inner[axis]))} of axis {axis} {differ}; there: {part}"
    return None


def _places(ours: Array, reference: Array, wrong: npt.NDArray[np.bool_], of: Sequence[Array]) -> str:
    """How many positions differ, the first of them, and the worst; of a single number the two values."""
    worst = np.unravel_index(np.argmax(np.abs(ours - reference)), ours.shape)
    short, exact = ([format(float(array[worst]), spec) for array in (ours, reference)] for spec in (".6g", ".17g"))
    values = "{}, the reference has {}".format(*(exact if short[0] == short[1] else short))
    return values if wrong.size == 1 else f"{positions(wrong, of)}; worst {values}"
