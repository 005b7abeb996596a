"""What a data set has loaded, looked at before a model meets it."""

from __future__ import annotations

from typing import Any

import numpy as np

from nn_manual.arrays import unpadded
from nn_manual.data.base import Dataset, Examples, Split
from nn_manual.errors import DataError


def checked_split(data: Dataset, split: Split, dtype: np.dtype[Any]) -> Split:
    """The split, if it keeps the contract of `Dataset.load`. Raises DataError, which names the data set's class."""
    name = type(data).__name__
    if not isinstance(split, Split):
        raise DataError(f"{name}.load returned {type(split).__name__}, and must return a Split")
    for part, examples in (("training part", split.train), ("validation part", split.validation)):
        if problem := _problem_of(examples, split.num_classes, dtype):
            raise DataError(f"{name}.load: in the {part}, {problem}")
    if not len(split.train.input):
        raise DataError(f"{name}.load returned no example for training")
    shape = data.example_shape
    if shape is not None and shape != split.train.input.shape[1:]:
        raise DataError(f"{name}: example_shape is {shape}, and an example has {split.train.input.shape[1:]}")
    return split


def _problem_of(examples: Examples, num_classes: int | None, dtype: np.dtype[Any]) -> str:
    """What is wrong with a part, in words; empty where nothing is."""
    input, target = unpadded(examples.input), examples.target
    for what, array in (("the input", input), ("the target", target)):
        if not isinstance(array, np.ndarray) or not array.ndim:
            return f"{what} is no array of examples"
        if array.dtype not in (dtype, np.int64):
            return f"{what} has dtype {array.dtype}, and must have {dtype} or int64"
    if len(input) != len(target):
        return f"there are {len(input)} inputs and {len(target)} targets"
    if num_classes is not None and target.dtype != np.int64:
        return f"the target of {num_classes} classes has dtype {target.dtype}, and must have int64"
    if num_classes is not None and target.size and target.max() >= num_classes:  # a loss may ignore some below 0
        return f"there is a class {target.max()}, and num_classes is {num_classes}"
    return ""
