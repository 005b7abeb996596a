"""A table as a model takes it: a number for each name of a column, and something in the place of an empty cell."""

from __future__ import annotations

import numpy as np

from nn_manual.arrays import Array
from nn_manual.data.base import Examples
from nn_manual.data.categories import one_hot
from nn_manual.data.held_out import held_out, held_out_of_each, keep_each_value
from nn_manual.data.reading import SLICE_SIZE
from nn_manual.data.tables import BY_UNIQUE, NO_CLASS, Kind, Part, Table
from nn_manual.data.transform import Transform
from nn_manual.errors import DataError
from nn_manual.messages.text import counted, quoted


def with_names_of(table: Table, known: Transform, source: str, num_classes: int | None = None) -> Transform:
    """What is `known` from training, with the names of the table's columns, of its classes, if it has any, and of the
    names in its columns. Where `num_classes` says how many classes there are, they needn't occur. Raises DataError for
    a class that isn't among them or that training didn't have, and for a column of names without any.
    """
    input, target = table.input, table.target
    classes = _classes(table, known.names.classes, source, num_classes) if target.kind is Kind.CLASSES else None
    categories = tuple((name, input.categories[name].names) for name in input.names if name in input.categories)
    for name, names in categories:
        if not names:
            raise DataError(f"{source}: column {quoted(name)} has no name, only empty cells")
    is_named = bool(target.categories)
    return known._replace(
        names=table.names._replace(classes=classes), categories=categories, has_named_classes=is_named
    )


def numbers_of(input: Part) -> Array:
    """The input's numbers, (rows, ...)."""
    return one_hot(input.array, input.names, {name: own.names for name, own in input.categories.items()})


def joined(examples: Examples, others: Examples, source: str) -> tuple[Examples, Array]:
    """Both, one after the other, and which of them are the others. Raises DataError for others of another shape."""
    for what, own, its in zip(("input", "target"), examples, others, strict=True):
        if own.shape[1:] != its.shape[1:]:
            words = f"has shape {its.shape[1:]}, in training {own.shape[1:]}"
            raise DataError(f"{source}: the {what} of an example {words}")
    pairs = zip(examples, others, strict=True)
    are_others = np.repeat([False, True], [len(examples.target), len(others.target)])
    return Examples(*(np.concatenate(pair) for pair in pairs)), are_others


def held_out_of(table: Table, validation_fraction: float, seed: int, source: str, *, stratify: bool) -> Array:
    """Which rows are held out. One row of each name stays in the training part, which has a number for it. Raises
    DataError for rows of several classes that are to be stratified.
    """
    input, labels = table.input, table.target.array
    if stratify and table.target.has_several_classes:
        raise DataError(f"{source}: stratify must be false where an example has several classes")
    if stratify:
        is_validation = held_out_of_each(labels, validation_fraction, seed)
    else:
        is_validation = held_out(len(labels), validation_fraction, seed)
    for place, name in enumerate(input.names):
        if name in input.categories:
            keep_each_value(is_validation, input.array[:, place])
        elif input.may_miss:  # the mean needs a number
            there = np.where(np.isnan(input.array[:, place]), np.nan, 0.0)
            keep_each_value(is_validation, there)
    if table.target.categories:
        keep_each_value(is_validation, labels.astype(np.float64))
    return is_validation


def fill(array: Array, is_validation: Array, filled: Array | None, table: Table, source: str) -> Array:
    """Fill what is missing in the input's numbers, in place: with what was `filled` in training, or else with the mean
    of the training part. Returns what was filled. Raises DataError for a column that has no number there.
    """
    is_missing = np.isnan(array)
    if filled is None:
        training = ~is_validation[:, np.newaxis] & ~is_missing
        counts = training.sum(axis=0)
        if not counts.all():
            column = _column_of(table.input, int(counts.argmin()))
            raise DataError(f"{source}: column {quoted(column)} has no number in the training part")
        filled = np.where(training, array, 0).sum(axis=0) / counts
    np.copyto(array, filled, where=is_missing)
    return filled


def _column_of(input: Part, number: int) -> str:
    """The column that the example's number of this index comes from."""
    widths = [len(input.categories[name].names) if name in input.categories else 1 for name in input.names]
    return input.names[int(np.searchsorted(np.cumsum(widths), number, side="right"))]


def _classes(
    table: Table, known: tuple[str, ...] | None, source: str, num_classes: int | None
) -> tuple[str, ...]:
    """The names of the classes: those in the target's column, those `known` from training, or "0", "1", ...: of
    `num_classes`, or of as many as `_num_classes` counts.
    """
    target = table.target
    if target.categories:
        if num_classes is not None:
            raise DataError(f"{source}: num_classes must be null where the classes are names")
        (named,) = target.categories.values()
        return named.names
    words = f"and num_classes is {num_classes}"
    if known is not None:
        num_classes, words = len(known), f"training had {counted(len(known), 'class', 'classes')}"
    if num_classes is None:
        num_classes = _num_classes(target, source, has_columns=table.names.target is not None)
    if target.largest >= num_classes:
        raise DataError(f"{target.largest_place} holds class {target.largest:.0f}, {words}")
    return tuple(map(str, range(num_classes))) if known is None else known


def _num_classes(target: Part, source: str, *, has_columns: bool) -> int:
    """The number of classes. Raises DataError if one below the largest doesn't occur, or none at all.

    A gap is far more often a wrong label, or classes counted from 1, than a class that just doesn't occur. But class 0
    needn't occur where an example has several: it is the blank of CTCLoss.
    """
    if target.largest < 0:
        raise DataError(f"{source}: array {quoted(target.names[0])} holds {NO_CLASS} alone, so no target counts")
    labels = target.array.reshape(-1)
    is_there = np.zeros(len(labels) + 2, dtype=bool)  # at most as many classes as labels, and the blank: one is missing
    is_there[0] = target.has_several_classes
    for start in range(0, len(labels), SLICE_SIZE):
        part = labels[start : start + SLICE_SIZE]
        is_there[part[(part >= 0) & (part < len(is_there))]] = True
    missing = int(is_there.argmin())
    if missing < target.largest:
        more = ", or are names, listed in categories" if has_columns else f"; number them {BY_UNIQUE}"
        if target.has_several_classes:
            more = f", and {NO_CLASS} stands for none"
        raise DataError(
            f"{target.largest_place} holds class {target.largest:.0f}, but class {missing} doesn't occur: "
            f"classes are counted from 0 without gaps{more}; num_classes allows gaps"
        )
    return missing
