"""What a data set has loaded, looked at before a model meets it."""

from __future__ import annotations

from typing import Any

import numpy as np

from nn_manual.arrays import Padded, unpadded
from nn_manual.data.base import Dataset, Examples, Split
from nn_manual.data.transform import Transform
from nn_manual.defaults import is_of_package
from nn_manual.errors import DataError


def loaded(data: Dataset, seed: int, dtype: np.dtype[Any], transform: Transform | None = None) -> Split:
    """What `data.load` returns, if it keeps the contract of Dataset. A data set of the user's own is loaded twice: both
    times it must return the same. Raises DataError, which names the data set's class, and whatever its code raises.
    """
    arguments = (seed, dtype) if transform is None else (seed, dtype, transform)
    split = checked_split(data, data.load(*arguments), dtype)
    if is_of_package(type(data)):
        return split
    if different := _first_difference(split, checked_split(data, data.load(*arguments), dtype)):
        raise DataError(
            f"{type(data).__name__}.load returned {different} when it ran again with the same seed: the seed must "
            "determine it, as np.random.default_rng(seed) does"
        )
    return split


def checked_split(data: Dataset, split: Split, dtype: np.dtype[Any]) -> Split:
    """The split, if it keeps the contract of `Dataset.load`. Raises DataError, which names the data set's class."""
    name = type(data).__name__
    if not isinstance(split, Split):
        raise DataError(f"{name}.load returned {type(split).__name__}, and must return a Split")
    for part, examples in _parts(split):
        if problem := _problem_of(examples, split.num_classes, dtype):
            raise DataError(f"{name}.load: in the {part}, {problem}")
    if not len(split.train.input):
        raise DataError(f"{name}.load returned no example for training")
    shape, found = data.example_shape, split.train.input.shape[1:]
    if shape is not None and shape != found:
        raise DataError(f"{name}: example_shape is {shape}, and an example has {found}")
    for what in ("input", "target"):
        of_train, of_validation = (unpadded(getattr(part, what)).shape[1:] for part in (split.train, split.validation))
        if len(split.validation.input) and of_train != of_validation:
            raise DataError(
                f"{name}.load: an {what} has the shape {of_train} in the training part, and {of_validation} in the "
                "validation part"
            )
    num_classes = data.num_classes
    if num_classes is not None and num_classes != split.num_classes:
        raise DataError(f"{name}: num_classes is {num_classes}, and that of the Split is {split.num_classes}")
    return split


def _parts(split: Split) -> tuple[tuple[str, Examples], ...]:
    return ("training part", split.train), ("validation part", split.validation)


def _problem_of(examples: Examples, num_classes: int | None, dtype: np.dtype[Any]) -> str:
    """What is wrong with a part, in words; empty where nothing is."""
    if not isinstance(examples, Examples):
        return f"there is {type(examples).__name__}, and there must be Examples(input, target)"
    input, target = unpadded(examples.input), examples.target
    for what, array in (("the input", input), ("the target", target)):
        if not isinstance(array, np.ndarray) or not array.ndim:
            return f"{what} is no array of examples"
        if array.dtype not in (dtype, np.int64):
            return f"{what} has dtype {array.dtype}, and must have {dtype} or int64"
        if array.dtype.kind == "f" and not (finite := np.isfinite(array)).all():
            place = tuple(np.argwhere(~finite)[0].tolist())
            return f"{what} has the number {array[place]} at {place}"
    if len(input) != len(target):
        return f"there are {len(input)} inputs and {len(target)} targets"
    if num_classes is not None and target.dtype != np.int64:
        return f"the target of {num_classes} classes has dtype {target.dtype}, and must have int64"
    if num_classes is not None and target.size and target.max() >= num_classes:  # a loss may ignore some below 0
        return f"there is a class {target.max()}, and num_classes is {num_classes}"
    return ""


def _first_difference(first: Split, again: Split) -> str:
    """The first array that differs, in words; empty where none does."""
    for (part, one), (_, other) in zip(_parts(first), _parts(again), strict=True):
        for what in ("input", "target"):
            both = [getattr(examples, what) for examples in (one, other)]
            lengths = [each.lengths if isinstance(each, Padded) else None for each in both]
            if not (np.array_equal(*map(unpadded, both)) and np.array_equal(*lengths)):  # type: ignore[arg-type]  # None is equal to None
                return f"another {what} in the {part}"
    return ""
