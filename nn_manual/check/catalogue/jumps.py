"""Where a layer branches: the inputs at which its own output, or its own derivative, jumps."""

from __future__ import annotations

import numpy as np

from nn_manual.arrays import DTYPES, Array, Shape
from nn_manual.check.catalogue.input_kinds import inside, spread
from nn_manual.defaults import defines
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.layers.base import Layer

#: How often an interval of half a unit is halved: down to neighbouring numbers of float64, except near 0.
NUM_BISECTIONS = 56

#: Nearer to 0 only 0 itself is tried: the neighbours of 0 are as small as 5e-324, where 1 / input overflows.
SMALLEST = 1e-9

#: From one number to the next a smooth function changes by a few eps of its value; where the value is small, by a few
#: eps of 1, or of its largest value if that is below 1: a derivative that vanishes is all rounding. More eps than this
#: are a jump.
SMOOTH = 64

#: At most this many jumps are taken, the largest first: noise that looks like jumps must not make an input large.
MAX_JUMPS = 16


def values_at_jumps(layer: Layer, input_shape: Shape, dtype: str) -> Array:
    """The values on both sides of each jump of a bound layer, and one number further to each side, in order.

    The layer is run on inputs with one value in each row. Each interval between two values of `spread` is halved again
    and again, and the half in which more changes is kept: once for the output, once for the gradient under an upstream
    gradient of ones. A kink that `kink_distance` states counts as a jump. A layer whose output has another shape than
    its input, or depends on the row's other numbers, isn't elementwise and has no jumps here. Neither has one that
    takes indices.
    """
    if isinstance(layer.domain, range):
        return np.empty(0)
    edges = spread(layer.domain).astype(DTYPES[dtype])
    column = edges.reshape(-1, *[1] * (len(input_shape) - 1))
    rows = np.broadcast_to(column, (len(edges), *input_shape[1:]))
    try:
        with np.errstate(all="ignore"):
            _check_elementwise(layer, rows)
            below, above = _jumps(layer, rows[:-1], rows[1:])
            kinks = _stated_kinks(layer, column)
    except BaseException as error:  # a layer may raise anything; it raises it again where it is checked
        raise_if_nobodys_fault(error)
        return edges[:0]
    up = edges.dtype.type(np.inf)
    further = np.nextafter(np.concatenate([below, kinks]), -up), np.nextafter(np.concatenate([above, kinks]), up)
    values = np.concatenate([below, above, kinks, *further])
    values = np.unique(np.where(np.abs(values) < SMALLEST, SMALLEST * np.sign(values), values))
    result: Array = values[inside(layer.domain, values)]
    return result


def _check_elementwise(layer: Layer, rows: Array) -> None:
    """Raise ValueError where an output changes with the other numbers of its row. `_jumps` takes rows of equal numbers:
    a normalization leaves only rounding of these, which looks like jumps.
    """
    order = np.random.default_rng(0).permuted(np.broadcast_to(_column(rows), rows.shape), axis=0)
    mixed, _ = layer.forward(np.take_along_axis(rows, order, axis=0))
    expected = np.take_along_axis(layer.forward(rows)[0], order, axis=0)
    if not np.allclose(mixed, expected, equal_nan=True):  # but for the rounding of either order
        raise ValueError("not an elementwise function")


def _column(rows: Array) -> Array:
    """The number of each row."""
    return np.arange(len(rows)).reshape(-1, *[1] * (rows.ndim - 1))


def _jumps(layer: Layer, below: Array, above: Array) -> tuple[Array, Array]:
    """Two vectors of neighbouring numbers, each two of them from one interval, between which the layer jumps."""
    # Two copies of each interval: the first half follows the output, the second the gradient.
    below, above = np.concatenate([below, below]), np.concatenate([above, above])
    of_below, of_above = _followed(layer, below), _followed(layer, above)
    for _ in range(NUM_BISECTIONS):
        middle = below + (above - below) / 2
        middle[np.abs(middle) < SMALLEST] = 0
        of_middle = _followed(layer, middle)
        left = np.abs(of_middle - of_below) >= np.abs(of_above - of_middle)
        below, above = np.where(left, below, middle), np.where(left, middle, above)
        of_below, of_above = np.where(left, of_below, of_middle), np.where(left, of_middle, of_above)
    scale = np.maximum(np.abs(of_above), np.abs(of_below))
    size = np.abs(of_above - of_below) / np.maximum(scale, min(scale.max(), 1))
    largest = [i for i in np.argsort(-size, axis=None) if size.flat[i] > SMOOTH * np.finfo(below.dtype).eps]
    return below.flat[largest[:MAX_JUMPS]], above.flat[largest[:MAX_JUMPS]]


def _followed(layer: Layer, input: Array) -> Array:
    """The output of the first half of the rows, the gradient of the second. Raises ValueError for another shape."""
    output, saved = layer.forward(input)
    grad_input = layer.backward(saved, np.ones_like(output))
    if not input.shape == output.shape == grad_input.shape:
        raise ValueError("not an elementwise function")
    return np.where(_column(input) < len(input) // 2, output, grad_input)


def _stated_kinks(layer: Layer, input: Array) -> Array:
    """The values at which the layer's own `kink_distance` is 0, found from `input`."""
    if not defines(layer, "kink_distance"):
        return np.empty(0, input.dtype)
    distance = layer.kink_distance(input)
    candidates = np.concatenate([input - distance, input + distance]).astype(input.dtype)  # distances may be float64
    kinks: Array = candidates[layer.kink_distance(candidates) == 0]
    return kinks
