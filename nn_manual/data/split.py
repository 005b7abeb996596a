"""From all examples to a training and a validation part: the split, standardising, the dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.data.base import Examples, Split
from nn_manual.data.transform import Names, Standardization, Transform
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
    names: Names = Names(),  # noqa: B008 - a tuple, which nobody can change
    transform: Transform | None = None,
) -> Split:
    """Hold out round(validation_fraction * examples) examples, chosen by `seed`, but never all of them.

    Both parts keep the order of the source: shuffling is the business of `batches`. `standardize` applies to the inputs
    and, where `num_classes` is None, to the targets. It is computed in float64, before the cast. Inputs that are
    integers stay as they are, in int64. Where `transform` is given, it is applied instead; raises ValueError where it
    has other columns.
    """
    if transform is not None:
        _check_columns(names.input, transform.names.input)
    num_examples = len(examples.input)
    num_validation = min(round(validation_fraction * num_examples), num_examples - 1)
    is_validation = np.zeros(num_examples, dtype=bool)
    is_validation[generator(seed, Stream.SPLIT).permutation(num_examples)[:num_validation]] = True

    def parts(
        array: Array, given: Standardization | None, *, are_indices: bool
    ) -> tuple[Array, Array, Standardization | None]:
        train, validation = array[~is_validation], array[is_validation]
        standardization = given
        if transform is None and standardize and not are_indices:
            standardization = Standardization.of(train)
        if standardization is not None:
            train, validation = standardization.apply(train), standardization.apply(validation)
        part_dtype = np.dtype(np.int64) if are_indices else dtype
        return np.ascontiguousarray(train, part_dtype), np.ascontiguousarray(validation, part_dtype), standardization

    given_input, given_target, _ = transform or Transform()
    input_kind = examples.input.dtype.kind
    train_input, validation_input, of_input = parts(examples.input, given_input, are_indices=input_kind == "i")
    train_target, validation_target, of_target = parts(
        examples.target, given_target, are_indices=num_classes is not None
    )
    return Split(
        Examples(train_input, train_target),
        Examples(validation_input, validation_target),
        num_classes,
        Transform(of_input, of_target, names),
    )


def _check_columns(names: tuple[str, ...] | None, of_training: tuple[str, ...] | None) -> None:
    """Raise ValueError where both are known and differ."""
    if names is None or of_training is None or names == of_training:
        return
    if len(names) != len(of_training):
        raise ValueError(f"has {len(names)} columns, training had {len(of_training)}")
    index = [name == other for name, other in zip(names, of_training, strict=True)].index(False)
    raise ValueError(f"column {index}, counted from 0, is {names[index]!r}, in training it was {of_training[index]!r}")
