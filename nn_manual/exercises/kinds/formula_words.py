"""What the formulas in docstrings call things that are neither NumPy's nor attributes of the component."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from nn_manual import ops
from nn_manual.arrays import Array, Padded
from nn_manual.layers import Layer, MaskedFill, TimePool
from nn_manual.layers.batch_normalization import BatchNorm
from nn_manual.layers.fast_forms import rows
from nn_manual.layers.group_normalization import OverGroups
from nn_manual.losses import CTCLoss, Loss
from nn_manual.ops.reductions import chosen, spread

#: What the formulas of operations call by name, beside NumPy's functions.
WORDS_OF_OPERATIONS = {"unbroadcast": ops.unbroadcast, "spread": spread, "chosen": chosen}


def words_of_layer(layer: Layer, given: Array | Padded) -> dict[str, Any]:
    """The names in the formulas of a layer, for this input. `weight` and `bias` are what a layer without them
    multiplies by and adds.
    """
    input = given.array if isinstance(given, Padded) else given
    axes = getattr(layer, "axes", ())
    words: dict[str, Any] = {
        "axes": axes,
        "leading": tuple(range(input.ndim - len(axes))),
        "input_shape": input.shape,
        "output_shape": layer.output_shape(input.shape),
        "weight": np.ones(1, input.dtype),
        "bias": np.zeros(1, input.dtype),
        "rows": rows,
        "over": over,
        "ndtr": scipy.special.ndtr,
        "expit": scipy.special.expit,
        "softplus": lambda number: np.logaddexp(number, number.dtype.type(0)),
    }
    if isinstance(layer, BatchNorm | OverGroups):
        words["axes"] = (0, *range(2, input.ndim))
        words["across"] = lambda vector: vector.reshape(-1, *[1] * (input.ndim - 2))
    if isinstance(layer, OverGroups):
        words["groups"] = lambda images: images.reshape(len(images), layer.num_rows, -1)
        words["images"] = lambda groups: groups.reshape(input.shape)
    if input.ndim > 1:
        words["time"] = input.shape[1]
    if getattr(layer, "eps", 0) is None:
        words["eps"] = np.finfo(input.dtype).eps
    if isinstance(layer, TimePool | MaskedFill):
        words["mask"] = mask_of(given).astype(input.dtype)
    return words | {name: getattr(layer, name) for name in ("ALPHA", "SCALE") if hasattr(layer, name)}


def mask_of(input: Array | Padded) -> Array:
    """True up to each sequence's length, (batch, time, 1, ...)."""
    time = np.arange(input.shape[1])
    lengths = input.lengths if isinstance(input, Padded) else np.full(input.shape[:1], len(time))
    mask: Array = time < lengths[:, np.newaxis]
    return mask.reshape(*mask.shape, *[1] * (len(input.shape) - 2))


def over(array: Array, before: int, behind: int) -> Any:
    """The sum over the channels from so many before each one to so many behind it."""
    framed = np.pad(array, [(0, 0), (before, behind), *[(0, 0)] * (array.ndim - 2)])
    return sum(framed[:, first : first + array.shape[1]] for first in range(before + behind + 1))


def words_of_loss(loss: Loss, prediction: Array) -> dict[str, Any]:
    """The names in the formulas of a loss, for this prediction."""
    words: dict[str, Any] = {
        "N": prediction.size,
        "rows": len(prediction),
        "batch": len(prediction),
        "classes": prediction.shape[1],
        "labels": prediction.shape[1],
        "logsumexp": np.logaddexp.reduce,
        "expit": scipy.special.expit,
    }
    ones = np.ones(prediction.shape[1], prediction.dtype)
    for name in ("weight", "pos_weight"):
        if hasattr(loss, name):
            words[name] = ones if getattr(loss, name) is None else np.array(getattr(loss, name), prediction.dtype)
    return words | words_of_paths(loss) if isinstance(loss, CTCLoss) else words


def words_of_paths(loss: CTCLoss) -> dict[str, Any]:
    """The names in the formulas of CTCLoss, which are functions. They look at each pair of states."""

    def states(target: Array) -> Array:
        return loss.states(target)[0]

    def follows(target: Array) -> Array:
        """0 where the state of the second axis may follow that of the first, and -inf elsewhere."""
        state = states(target)
        before, behind = np.indices((state.shape[1],) * 2)
        over_a_blank = (behind == before + 2) & (state[:, np.newaxis] != state[:, :, np.newaxis])
        return np.where((behind == before) | (behind == before + 1) | over_a_blank, 0, -np.inf)

    def sums_before(at: Array, target: Array) -> Array:
        sums = [np.where(np.arange(at.shape[1]) < 2, at[:, :, 0], -np.inf)]
        for time in range(1, at.shape[2]):
            come = sums[-1][:, :, np.newaxis] + follows(target)
            sums.append(np.logaddexp.reduce(come, axis=1) + at[:, :, time])
        return np.stack(sums, axis=2)

    def sums_behind(at: Array, target: Array) -> Array:
        last, state = 2 * loss.states(target)[1][:, np.newaxis], np.arange(at.shape[1])
        sums = [np.where((state == last) | (state == last - 1), 0, -np.inf)]
        for time in range(at.shape[2] - 1, 0, -1):
            go_on = (sums[-1] + at[:, :, time])[:, np.newaxis] + follows(target)
            sums.append(np.logaddexp.reduce(go_on, axis=2))
        return np.stack(sums[::-1], axis=2)

    return {"states": states, "sums_before": sums_before, "sums_behind": sums_behind}
