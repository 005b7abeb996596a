"""The training and the validation part of a data set: split, standardised and cast."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Padded, size_of, unpadded
from nn_manual.data.base import Examples, Split
from nn_manual.data.held_out import held_out
from nn_manual.data.reading import SLICE_SIZE
from nn_manual.data.transform import Names, Standardization, Transform
from nn_manual.messages.text import counted


def split_examples(
    examples: Examples,
    num_classes: int | None,
    validation_fraction: float,
    seed: int,
    dtype: np.dtype[Any],
    *,
    standardize: bool,
    standardize_target: bool = True,
    names: Names = Names(),  # noqa: B008 - a tuple, which nobody can change
    transform: Transform | None = None,
    use_up: bool = False,
    is_validation: Array | None = None,
) -> Split:
    """Hold out round(validation_fraction * examples) examples, chosen by `seed`, but never all of them; or those that
    `is_validation` says.

    Both parts keep the order of the source: `batches` shuffles. `standardize` applies to the inputs and, if
    `num_classes` is None, to the targets, unless `standardize_target` is false. It is computed in float64, before the
    cast. Integer inputs stay as they are, in int64. If `transform` is given, it is applied instead. Raises ValueError
    if it has other columns, for a class that isn't a whole number, for another number of targets than of inputs, and
    for a `validation_fraction` outside of [0, 1).

    The lengths of an input that is Padded go with its sequences.

    With `use_up` the arrays of `examples` give back their memory while they are copied, and are empty at the end. So
    the two parts need no additional memory, unless their dtype is wider. The arrays must own their memory, and no view
    of them may exist.
    """
    num_inputs, num_targets = len(examples.input), len(examples.target)
    if num_inputs != num_targets:
        raise ValueError(f"there are {counted(num_inputs, 'input')}, and {counted(num_targets, 'target')} for them")
    if transform is not None:
        _check_columns(names.input, transform.names.input)
    if num_classes is not None:
        _check_whole(examples.target)
    if is_validation is None:
        is_validation = held_out(num_inputs, validation_fraction, seed)
    input = unpadded(examples.input)

    def parts(
        array: Array, given: Standardization | None, *, are_indices: bool, standardize: bool
    ) -> tuple[Array, Array, Standardization | None]:
        standardization = None if are_indices else given
        if transform is None and standardize and not are_indices:
            standardization = Standardization.of(_TrainingPart(array, is_validation))
        part_dtype = np.dtype(np.int64) if are_indices else dtype
        return *_moved(array, is_validation, standardization, part_dtype, use_up=use_up), standardization

    given_input, given_target, *_ = transform or Transform()
    of_training, of_validation, of_input = parts(
        input, given_input, are_indices=input.dtype.kind == "i", standardize=standardize
    )
    train_input: Array | Padded = of_training
    validation_input: Array | Padded = of_validation
    if isinstance(examples.input, Padded):
        lengths = examples.input.lengths
        train_input = Padded(of_training, lengths[~is_validation])
        validation_input = Padded(of_validation, lengths[is_validation])
    train_target, validation_target, of_target = parts(
        examples.target,
        given_target,
        are_indices=num_classes is not None,
        standardize=standardize and standardize_target,
    )
    return Split(
        Examples(train_input, train_target),
        Examples(validation_input, validation_target),
        num_classes,
        Transform(of_input, of_target, names),
    )


def _check_columns(names: tuple[str, ...] | None, of_training: tuple[str, ...] | None) -> None:
    """Raise ValueError if both are known and differ."""
    if names is None or of_training is None or names == of_training:
        return
    if len(names) != len(of_training):
        raise ValueError(f"has {counted(len(names), 'column')}, training had {len(of_training)}")
    index = [name == other for name, other in zip(names, of_training, strict=True)].index(False)
    raise ValueError(f"column {index}, counted from 0, is {names[index]!r}, in training it was {of_training[index]!r}")


def _check_whole(target: Array) -> None:
    """Raise ValueError for a class that isn't a whole number: as an integer it would be another class."""
    if target.dtype.kind == "f":
        wrong = target[target != np.trunc(target)]  # a NaN differs from itself
        if wrong.size:
            raise ValueError(f"a class must be a whole number, not {wrong[0]}")


def _starts(array: Array) -> range:
    """The starts of slices of rows. Each slice has at most SLICE_SIZE numbers, or is one row."""
    return range(0, len(array), max(1, SLICE_SIZE // max(1, size_of(array.shape[1:]))))


@dataclass(frozen=True, eq=False)
class _TrainingPart:
    """The rows of `array` that aren't held out, in slices."""

    array: Array
    is_validation: Array

    def __iter__(self) -> Iterator[Array]:
        starts = _starts(self.array)
        for rows in (slice(start, start + starts.step) for start in starts):
            yield self.array[rows][~self.is_validation[rows]]


def _moved(
    array: Array,
    is_validation: Array,
    standardization: Standardization | None,
    dtype: np.dtype[Any],
    *,
    use_up: bool,
) -> tuple[Array, Array]:
    """The training and the validation part. They are filled from the end, where a used-up array can shrink."""
    num_validation = int(np.count_nonzero(is_validation))
    ends = {False: len(array) - num_validation, True: num_validation}
    parts = {key: np.empty((end, *array.shape[1:]), dtype) for key, end in ends.items()}
    starts = _starts(array)
    for start in reversed(starts):
        is_held_out = is_validation[start : start + starts.step]
        rows = array[start : start + starts.step]
        if standardization is not None:
            rows = standardization.apply(rows)
        for key, part in parts.items():
            chosen = rows[is_held_out == key]
            part[ends[key] - len(chosen) : ends[key]] = chosen
            ends[key] -= len(chosen)
        del rows
        if use_up:
            array.resize((start, *array.shape[1:]), refcheck=False)
    return parts[False], parts[True]
