"""Arrays: the user's own numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from nn_manual.arrays import Array
from nn_manual.data.base import Dataset, Examples, Split
from nn_manual.data.split import check_validation_fraction, split_examples
from nn_manual.data.tables import Table, read_csv, read_npz
from nn_manual.data.transform import Names, Transform
from nn_manual.errors import DataError

Task = Literal["classification", "regression"]

#: A table is read in float64, which holds every integer up to here.
LARGEST_INTEGER = 2**53


@dataclass
class Arrays(Dataset):
    """The user's own data, from a .csv whose first line names the columns or from an .npz.

    `target` and `input` name columns of the CSV, or one array each of the .npz; without `input`, a CSV's input is
    every column that isn't a target. Target of a classification: classes 0, 1, ..., num_classes - 1, each of which
    occurs. Target of a regression: any numbers, one output for each column.

    Numbers are taken as they are, unless `standardize`: then the input's columns, and a regression's targets, are
    standardised by the training part. With `integer_input` the inputs are indices, of words or categories: each must be
    an integer, they stay int64, and `standardize` leaves them as they are.
    """

    file: Path
    target: str | list[str]
    task: Task
    input: str | list[str] | None = None
    standardize: bool = False
    integer_input: bool = False
    validation_fraction: float = 0.2

    def __post_init__(self) -> None:
        self.file = Path(self.file)  # a str is welcome from Python
        if self.file.suffix not in (".csv", ".npz"):
            raise ValueError(f"file must end in .csv or .npz, not {self.file.name}")
        if self.task not in get_args(Task):
            raise ValueError(f"task must be {' or '.join(get_args(Task))}, not {self.task}")
        is_npz = self.file.suffix == ".npz"
        inputs, targets = _names(self.input), _names(self.target)
        if is_npz and len(inputs) != 1:
            raise ValueError(f"input must name one array of the .npz, not {self.input}")
        if len(targets) != 1 and (is_npz or self.task == "classification"):
            raise ValueError(f"target must be one name for an .npz or a classification, not {self.target}")
        if not targets:
            raise ValueError("target must name at least one column")
        for name in targets:
            if (inputs + targets).count(name) > 1:
                raise ValueError(f"target must name {name} once, and input must not name it")
        if self.standardize and self.integer_input and self.task == "classification":
            raise ValueError("standardize must be false where the inputs are integers and the targets classes")
        check_validation_fraction(self.validation_fraction)

    def load(self, seed: int, dtype: np.dtype[Any], transform: Transform | None = None) -> Split:
        """Read the file, check every number in it and split it by `seed`. Raises DataError naming the place."""
        read, input_names = read_npz, _names(self.input)
        known = Names() if transform is None else transform.names
        if self.file.suffix == ".csv":
            read, input_names = read_csv, list(known.input or input_names)
        table = read(self.file, input_names, _names(self.target))
        target, classes = table.target, None
        if self.task == "classification":
            target, classes = _classes(self.file, table, known.classes)
        input = integers(table) if self.integer_input else table.input
        try:
            with np.errstate(over="raise"):
                return split_examples(
                    Examples(input, target),
                    None if classes is None else len(classes),
                    self.validation_fraction,
                    seed,
                    dtype,
                    standardize=self.standardize,
                    names=table.names._replace(classes=classes),
                    transform=transform,
                )
        except FloatingPointError as error:
            largest = max(np.abs(table.input).max(), np.abs(table.target).max())
            raise DataError(f"{self.file}: holds numbers up to {largest:g}, too large for {dtype}") from error


def _names(names: str | list[str] | None) -> list[str]:
    if names is None:
        return []
    return [names] if isinstance(names, str) else names


def integers(table: Table) -> Array:
    """The inputs as int64. Raises DataError for one that is no integer."""
    wrong = np.argwhere((table.input != np.floor(table.input)) | (np.abs(table.input) > LARGEST_INTEGER))
    if wrong.size:
        index = tuple(wrong[0].tolist())
        place, value = table.input_place(*index), table.input[index]
        raise DataError(f"{place} holds {value}, not an integer up to 2**53")
    return table.input.astype(np.int64)


def _classes(file: Path, table: Table, known: tuple[str, ...] | None) -> tuple[Array, tuple[str, ...]]:
    """The targets as int64 class indices (examples,), and the classes: the `known` ones, or those that occur."""
    if table.target.shape[1:] != (1,):
        raise DataError(f"{file}: the classes have shape {table.target.shape}, not (examples,)")
    labels = table.target[:, 0]
    wrong = np.flatnonzero((labels < 0) | (labels != np.floor(labels)))
    if wrong.size:
        raise DataError(f"{table.target_place(wrong[0])} holds {labels[wrong[0]]}, not a class 0, 1, 2, ...")
    if known is not None:
        if labels.max() >= len(known):
            place = table.target_place(int(labels.argmax()))
            raise DataError(f"{place} holds class {labels.max():.0f}, training had {len(known)} classes")
        return labels.astype(np.int64), known
    classes = np.unique(labels)
    # A gap is far more often a label that is wrong, or classes counted from 1, than a class nobody has seen.
    missing = np.flatnonzero(classes != np.arange(len(classes)))
    if missing.size:
        raise DataError(
            f"{table.target_place(int(labels.argmax()))} holds class {labels.max():.0f}, but class {missing[0]} is "
            "nowhere: classes are counted from 0 without gaps"
        )
    return labels.astype(np.int64), tuple(f"{label:.0f}" for label in classes)
