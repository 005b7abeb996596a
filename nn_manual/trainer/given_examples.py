"""Examples as people have them: arrays, lists, or anything that NumPy makes an array of."""

from __future__ import annotations

from typing import Any

import numpy as np

from nn_manual.arrays import Array, Padded, as_array, check_arrays, check_unmasked
from nn_manual.data import Examples
from nn_manual.losses import Loss
from nn_manual.losses.base import takes_numbers
from nn_manual.model import Sequential


def examples_of(given: Any, model: Sequential, loss: Loss) -> Examples:
    """The Examples that are given; or a pair of inputs and targets, made into arrays of the dtypes that the model and
    losses take: int64 for classes and indices, and the model's dtype for other numbers. The array of an input that is
    Padded is made in the same way, padding and all. Raises TypeError for anything else, and ValueError where they
    aren't equally many, a number is masked or isn't finite in the model's dtype, or an integer is 2**63 or more.
    """
    if isinstance(given, Examples):
        check_arrays(input=given.input, target=given.target)
        return given
    if not isinstance(given, tuple | list) or len(given) != 2:
        kind = f"{type(given).__name__}" + (f" of {len(given)}" if isinstance(given, tuple | list) else "")
        raise TypeError(f"examples are a pair, (input, target), and not {kind}")
    input, target = given
    input = _as_input(input, model)
    target = _as_array("target", target, model)
    if target.dtype.kind == "i" and takes_numbers(loss):
        target = target.astype(model.dtype)
    if not input.shape or not target.shape or len(input) != len(target):
        raise ValueError(f"there must be a target for each input: their shapes are {input.shape} and {target.shape}")
    return Examples(input, target)


def _as_input(values: Any, model: Sequential) -> Any:
    if isinstance(values, Padded):
        return Padded(_as_input(values.array, model), values.lengths)
    array = _as_array("input", values, model)
    return array.astype(model.dtype) if array.dtype.kind == "i" and not isinstance(model.domain, range) else array


def _as_array(name: str, values: Any, model: Sequential) -> Array:
    check_unmasked(name, values)
    array = as_array(name, values)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"the {name} has dtype {array.dtype}, and must be numbers")
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"the {name} holds {array.max()}: integers must be below 2**63")
    if array.dtype.kind != "f":
        return np.ascontiguousarray(array, np.int64)
    with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite
        made = np.ascontiguousarray(array, model.dtype)
    check_finite(name, made)
    return made


def check_finite(name: str, array: Array) -> None:
    """Raise ValueError, with the index, for a number that isn't finite: one step on it would spoil all parameters."""
    if array.dtype.kind == "f" and not (is_finite := np.isfinite(array)).all():
        index = tuple(np.argwhere(~is_finite)[0].tolist())
        raise ValueError(f"the {name} holds {array[index]} at index {index}: numbers must be finite")
