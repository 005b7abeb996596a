"""From all examples to a training and a validation part: the split, standardising, the dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.data.base import Examples, Split
from nn_manual.streams import Stream, generator


def check_validation_fraction(validation_fraction: float) -> None:
    """Raise ValueError unless `validation_fraction` is in [0, 1)."""
    if not 0 <= validation_fraction < 1:
        raise ValueError(f"validation_fraction must be at least 0 and less than 1, not {validation_fraction}")


def split_examples(
    examples: Examples,
    num_classes: int | None,
    validation_fraction: float,
    seed: int,
    dtype: np.dtype[Any],
    *,
    standardize: bool,
) -> Split:
    """Hold out round(validation_fraction * examples) examples, chosen by `seed`, but never all of them.

    Both parts keep the order of the source: shuffling is the business of `batches`. `standardize` applies to
    the inputs and, where `num_classes` is None, to the targets. It is computed in float64, before the cast.
    """
    num_examples = len(examples.input)
    num_validation = min(round(validation_fraction * num_examples), num_examples - 1)
    is_validation = np.zeros(num_examples, dtype=bool)
    is_validation[generator(seed, Stream.SPLIT).permutation(num_examples)[:num_validation]] = True

    def parts(array: Array, standardize: bool, dtype: np.dtype[Any]) -> tuple[Array, Array]:
        train, validation = array[~is_validation], array[is_validation]
        if standardize:
            train, validation = standardized(train, validation)
        return np.ascontiguousarray(train, dtype), np.ascontiguousarray(validation, dtype)

    is_regression = num_classes is None
    train_input, validation_input = parts(examples.input, standardize, dtype)
    train_target, validation_target = parts(
        examples.target, standardize and is_regression, dtype if is_regression else np.dtype(np.int64)
    )
    return Split(
        Examples(train_input, train_target), Examples(validation_input, validation_target), num_classes
    )


def standardized(train: Array, validation: Array) -> tuple[Array, Array]:
    """(array - mean) / std for both parts, with the mean and std of the training part, column by column.

    std is the population's, divided by n. A column that is constant in the training part is divided by 1.
    """
    mean = train.mean(axis=0)
    # Compared by values: the std of a constant column is often not 0 but a rounding error of the mean.
    std = np.where((train == train[0]).all(axis=0), 1.0, train.std(axis=0))
    return (train - mean) / std, (validation - mean) / std
