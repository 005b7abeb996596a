"""Arrays: the user's own numbers, from a CSV or an .npz file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from nn_manual.data.base import Dataset, Examples, Split
from nn_manual.data.csv_files import STANDARD_INPUT, read_csv
from nn_manual.data.npz_files import read_npz, read_padded
from nn_manual.data.reading import SLICE_SIZE
from nn_manual.data.split import check_validation_fraction, split_examples
from nn_manual.data.tables import Kind, Part, Table
from nn_manual.data.transform import Names, Transform
from nn_manual.errors import DataError
from nn_manual.messages import counted

Task = Literal["classification", "regression"]


@dataclass
class Arrays(Dataset):
    """The user's own data, from a .csv or .csv.gz whose first line names the columns or from an .npz.

    The file "-" is a CSV on standard input, which can be read once: to run the config again, pipe it again. `target`
    and `input` name columns of the CSV, or one array each of the .npz; without `input`, a CSV's input is every column
    that isn't a target. The target of a classification is classes 0, 1, ..., num_classes - 1, each of which occurs. The
    target of a regression is any numbers, one output for each column.

    Numbers are taken as they are, unless `standardize`: then the input's columns, and a regression's targets, are
    standardised by the training part. With `integer_input` the inputs are indices, such as words or categories: each
    must be an integer, they stay int64, and `standardize` leaves them as they are.

    `lengths` names an array of the .npz with the length of each sequence of the input, (examples, time, ...): what
    follows is padding.
    """

    file: Path
    target: str | list[str]
    task: Task
    input: str | list[str] | None = None
    standardize: bool = False
    integer_input: bool = False
    lengths: str | None = None
    validation_fraction: float = 0.2

    def __post_init__(self) -> None:
        self.file = Path(self.file)  # Python code may pass a str
        if self.file.name == STANDARD_INPUT.name:  # a config puts its own folder before each path
            self.file = STANDARD_INPUT
        elif not self.file.name.endswith((".csv", ".csv.gz", ".npz")):
            raise ValueError(f"file must be - or end in .csv, .csv.gz or .npz, not {self.file.name}")
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
        if self.input is not None and not inputs:
            raise ValueError("input must name at least one column, or be null: all but the targets")
        for name in inputs:
            if inputs.count(name) > 1:
                raise ValueError(f"input must name {name} once")
        for name in targets:
            if (inputs + targets).count(name) > 1:
                raise ValueError(f"target must name {name} once, and input must not name it")
        if self.standardize and self.integer_input and self.task == "classification":
            raise ValueError("standardize must be false where the inputs are integers and the targets classes")
        if self.lengths is not None and not is_npz:
            raise ValueError("lengths must be null unless the file is an .npz")
        if self.lengths is not None and self.standardize:
            raise ValueError("standardize must be false with lengths: the padding would count")
        check_validation_fraction(self.validation_fraction)

    def load(self, seed: int, dtype: np.dtype[Any], transform: Transform | None = None) -> Split:
        """Read the file, check every number in it and split it by `seed`. Raises DataError, which names the place."""
        # Numbers stay in float64 until they are standardised. Others get the run's dtype, which takes less memory.
        kept = np.dtype(np.float64) if self.standardize or transform is not None else dtype
        of_input = Kind.INTEGERS if self.integer_input else Kind.NUMBERS
        of_target = Kind.NUMBERS if self.task == "regression" else Kind.CLASSES
        read: Callable[[Path, Part, Part], Table] = read_npz
        input_names = _names(self.input)
        known = Names() if transform is None else transform.names
        if self.file.suffix != ".npz":
            read, input_names = read_csv, list(known.input or input_names)
        parts = Part(input_names, of_input, kept), Part(_names(self.target), of_target, kept)
        input, target, names = read(self.file, *parts)
        examples = Examples(input.array, target.array)
        if self.lengths is not None:
            examples = Examples(read_padded(self.file, input, self.lengths), target.array)
        classes = None if self.task == "regression" else _classes(target, known.classes)
        try:
            with np.errstate(over="raise"):
                return split_examples(
                    examples,
                    None if classes is None else len(classes),
                    self.validation_fraction,
                    seed,
                    dtype,
                    standardize=self.standardize,
                    names=names._replace(classes=classes),
                    transform=transform,
                    use_up=True,
                )
        except FloatingPointError as error:
            part = max(input, target, key=lambda part: part.largest)
            raise DataError(
                f"{part.largest_place} holds {part.largest:g}, too large to be standardised in {dtype}"
            ) from error


def _names(names: str | list[str] | None) -> list[str]:
    if names is None:
        return []
    return [names] if isinstance(names, str) else names


def _classes(target: Part, known: tuple[str, ...] | None) -> tuple[str, ...]:
    """The names of the classes: those `known` from training, or "0", "1", ... for the classes that occur."""
    if known is None:
        return tuple(map(str, range(_num_classes(target))))
    if target.largest >= len(known):
        of_training = counted(len(known), "class", "classes")
        raise DataError(f"{target.largest_place} holds class {target.largest:.0f}, training had {of_training}")
    return known


def _num_classes(target: Part) -> int:
    """The number of classes. Raises DataError if one below the largest doesn't occur.

    A gap is far more often a wrong label, or classes counted from 1, than a class that just doesn't occur.
    """
    labels = target.array
    is_there = np.zeros(len(labels) + 1, dtype=bool)  # at most as many classes as labels: one is missing
    for start in range(0, len(labels), SLICE_SIZE):
        part = labels[start : start + SLICE_SIZE]
        is_there[part[part < len(is_there)]] = True
    missing = int(is_there.argmin())
    if missing < target.largest:
        raise DataError(
            f"{target.largest_place} holds class {target.largest:.0f}, but class {missing} doesn't occur: "
            "classes are counted from 0 without gaps"
        )
    return missing
