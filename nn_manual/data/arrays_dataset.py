"""Arrays: the user's own numbers, from a CSV or an .npz file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from nn_manual.data.base import Dataset, Examples, Split
from nn_manual.data.categories import Categories
from nn_manual.data.csv_files import CsvForm, read_csv
from nn_manual.data.csv_records import STANDARD_INPUT
from nn_manual.data.held_out import check_validation_fraction
from nn_manual.data.npz_files import read_npz, read_padded
from nn_manual.data.prepared import fill, held_out_of, joined, numbers_of, with_names_of
from nn_manual.data.split import split_examples
from nn_manual.data.tables import Kind, Part, Table
from nn_manual.data.transform import Transform
from nn_manual.errors import DataError

Task = Literal["classification", "regression", "labels"]
Missing = Literal["mean", "drop"]
#: Which numbers a target has.
OF_TASK = {"classification": Kind.CLASSES, "regression": Kind.NUMBERS, "labels": Kind.LABELS}
#: Each class has a name, in memory and in a run's data.json: a typing error in their number must not fill either.
MOST_CLASSES = 1 << 20
#: A config can't hold the character itself.
TAB = "tab"


@dataclass
class Arrays(Dataset):
    """The user's own data, from a .csv or .csv.gz whose first line names the columns or from an .npz.

    The file "-" is a CSV on standard input, which can be read once: to run the config again, pipe it again. `target`
    and `input` name columns of the CSV, or one array each of the .npz; without `input`, a CSV's input is every column
    that isn't a target. `delimiter` stands between the cells; without it, the header shows which one does. A tab is
    called `tab`.

    The target of a classification is classes 0, 1, ..., num_classes - 1, each of which occurs, or names: a column whose
    first cell isn't a number. The classes then are the names in the order of the alphabet. The target of a regression
    is any numbers, one output for each column. The target of `labels` is 1 or 0 in each column, whether an example has
    the label of this name. `categories` names columns whose cells are names, even where they look like numbers: an
    input column becomes one number for each name, 1 for the cell's name and 0 for the others.

    In an .npz, an example may have several classes, (examples, ...): one for each time or pixel, or labels in their
    order. Then -100 stands for none, as in the losses, and class 0 needn't occur: it is the blank of CTCLoss.

    `num_classes` says how many classes there are, of which some may not occur, as the tokens of a fixed vocabulary. A
    class from `num_classes` on is refused.

    Other numbers are taken as they are, unless `standardize`: then the input's columns, and a regression's targets, are
    standardised by the training part. With `integer_input` the inputs are indices, such as words or categories: each
    must be an integer, they stay int64, and `standardize` leaves them as they are.

    Empty cells are refused, unless `missing` says what to do. With `drop`, rows that have one are left out. With
    `mean`, the input's become the mean of their column in the training part, or of each of its names; rows without a
    target are left out.

    `validation_fraction` of the examples are held out for validation, with `stratify` the same part of each class; but
    one example of each name stays in the training part. Where `validation_file` names a second table, its examples are
    held out, and no other.

    `lengths` names an array of the .npz with the length of each sequence of the input, (examples, time, ...): what
    follows is padding. Where each time has a class, the file has -100 there.
    """

    file: Path
    target: str | list[str]
    task: Task
    input: str | list[str] | None = None
    standardize: bool = False
    integer_input: bool = False
    lengths: str | None = None
    validation_fraction: float = 0.2
    categories: list[str] = field(default_factory=list)
    missing: Missing | None = None
    stratify: bool = False
    validation_file: Path | None = None
    delimiter: str | None = None
    num_classes: int | None = None

    def __post_init__(self) -> None:
        self.file = _checked_file("file", self.file)
        if self.validation_file is not None:
            self.validation_file = _checked_file("validation_file", self.validation_file)
            if STANDARD_INPUT in (self.file, self.validation_file):
                raise ValueError("validation_file must be null where a file is standard input")
        if isinstance(self.categories, str):  # it would be taken letter by letter
            raise ValueError(f"categories must be a list of columns, not {self.categories!r}")
        for name in ("input", "target", "categories"):
            if isinstance(getattr(self, name), tuple):  # as Python code may have it
                setattr(self, name, list(getattr(self, name)))
        if self.task not in get_args(Task):
            raise ValueError(f"task must be {' or '.join(get_args(Task))}, not {self.task}")
        inputs, targets = _names(self.input), _names(self.target)
        self._check_names(inputs, targets)
        self._check_table()
        if self.standardize and self.integer_input and self.task != "regression":
            raise ValueError(f"standardize must be false where the inputs are integers and task={self.task}")
        if self.lengths is not None and not self._is_npz:
            raise ValueError("lengths must be null unless the file is an .npz")
        if self.lengths is not None and self.validation_file is not None:
            raise ValueError("validation_file must be null with lengths")
        if self.lengths is not None and self.standardize:
            raise ValueError("standardize must be false with lengths: the padding would count")
        check_validation_fraction(self.validation_fraction)

    @property
    def _is_npz(self) -> bool:
        return self.file.suffix == ".npz"

    def _check_names(self, inputs: list[str], targets: list[str]) -> None:
        """Raise ValueError for names of columns or arrays that don't go together."""
        if self._is_npz and len(inputs) != 1:
            raise ValueError(f"input must name one array of the .npz, not {self.input}")
        if len(targets) != 1 and (self._is_npz or self.task == "classification"):
            raise ValueError(f"target must be one name for an .npz or task=classification, not {self.target}")
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
        for name in self.categories:
            if self.categories.count(name) > 1:
                raise ValueError(f"categories must name {name} once")
            if name in targets and self.task != "classification":
                raise ValueError(f"categories must not name {name}: only classes have names")
            if inputs and name not in inputs + targets:
                raise ValueError(f"categories must name columns of input or the target, not {name}")

    def _check_table(self) -> None:
        """Raise ValueError for settings that only a CSV has, or that don't go together."""
        if self.missing is not None and self.missing not in get_args(Missing):
            raise ValueError(f"missing must be null, {' or '.join(get_args(Missing))}, not {self.missing}")
        of_csv = {"categories": self.categories, "missing": self.missing, "delimiter": self.delimiter}
        for name, value in of_csv.items():
            if value and self._is_npz:
                raise ValueError(f"{name} must be left out for an .npz")
        if self.delimiter not in (None, TAB) and (len(self.delimiter or "") != 1 or self.delimiter in '"\r\n'):
            raise ValueError(f"delimiter must be one character or {TAB}, not {self.delimiter!r}")
        if self.integer_input and (self.missing == "mean" or set(self.categories) - set(_names(self.target))):
            raise ValueError("integer_input must be false with categories of the input, and with the mean")
        if self.validation_file is not None and (self.validation_file.suffix == ".npz") != self._is_npz:
            raise ValueError("validation_file must be of the same kind as file")
        if self.stratify and self.task != "classification":
            raise ValueError("stratify must be false where the targets are no classes")
        if self.num_classes is not None and self.task != "classification":
            raise ValueError("num_classes must be null where the targets are no classes")
        if self.num_classes is not None and not 1 <= self.num_classes <= MOST_CLASSES:
            raise ValueError(f"num_classes must be from 1 to {MOST_CLASSES:,}, not {self.num_classes:,}")

    def load(self, seed: int, dtype: np.dtype[Any], transform: Transform | None = None) -> Split:
        """Read the file, check every number in it and split it by `seed`. Raises DataError, which names the place."""
        # Numbers stay in float64 until they are standardised. Others get the run's dtype, which takes less memory.
        is_wider = self.standardize or transform is not None or self.missing == "mean"
        wide = np.dtype(np.float64) if is_wider else dtype
        # Where training filled nothing, there is nothing to fill with.
        fills = self.missing == "mean" and (transform is None or transform.filled is not None)
        table, source = self._read(self.file, wide, transform or Transform(), fills=fills), str(self.file)
        known = with_names_of(table, transform or Transform(), source, self.num_classes)
        examples, is_validation = Examples(numbers_of(table.input), table.target.array), None
        if self.validation_file is not None:
            other = self._read(self.validation_file, table.input.dtype, known, fills=fills)
            with_names_of(other, known, str(self.validation_file))
            others = Examples(numbers_of(other.input), other.target.array)
            examples, is_validation = joined(examples, others, str(self.validation_file))
        elif self.stratify or self.missing == "mean" or table.input.categories or table.target.categories:
            is_validation = held_out_of(table, self.validation_fraction, seed, source, stratify=self.stratify)
        if fills:
            assert is_validation is not None
            filled = fill(examples.input, is_validation, known.filled, table, source)
            known = known._replace(filled=filled)
        if self.lengths is not None:
            examples = examples._replace(input=read_padded(self.file, table.input, self.lengths))
        try:
            with np.errstate(over="raise"):
                split = split_examples(
                    examples,
                    None if known.names.classes is None else len(known.names.classes),
                    self.validation_fraction,
                    seed,
                    dtype,
                    standardize=self.standardize,
                    standardize_target=self.task == "regression",
                    names=known.names,
                    transform=transform,
                    use_up=True,
                    is_validation=is_validation,
                )
        except FloatingPointError as error:
            part = max(table.input, table.target, key=lambda part: part.largest)
            raise DataError(
                f"{part.largest_place} holds {part.largest:g}, too large to be standardised in {dtype}"
            ) from error
        kept = known._replace(input=split.transform.input, target=split.transform.target)
        return split._replace(transform=kept)

    def _read(self, file: Path, dtype: np.dtype[Any], known: Transform, *, fills: bool) -> Table:
        """The table in a file, by what is `known` of the training's columns and classes. `fills` says whether empty
        cells of the input are filled.
        """
        of_input = Kind.INTEGERS if self.integer_input else Kind.NUMBERS
        of_target = OF_TASK[self.task]
        targets = _names(self.target)
        if self._is_npz:
            return read_npz(file, Part(_names(self.input), of_input, dtype), Part(targets, of_target, dtype))
        named = dict(known.categories)
        categories = {name: Categories(named.get(name)) for name in self.categories if name not in targets}
        inputs = list(known.names.input or _names(self.input))
        input = Part(inputs, of_input, dtype, categories, may_miss=fills)
        target = Part(targets, of_target, dtype, known_names=known.names.classes)
        if targets[0] in self.categories or known.has_named_classes:
            target.categories = {targets[0]: Categories(known.names.classes)}
        form = CsvForm(self.character, self.missing == "drop")
        if self.missing == "mean":
            form = form._replace(advice="a run trained with `missing: mean` takes them")
        return read_csv(file, input, target, form)

    @property
    def character(self) -> str | None:
        """The delimiter itself."""
        return "\t" if self.delimiter == TAB else self.delimiter


def _names(names: str | list[str] | None) -> list[str]:
    if names is None:
        return []
    return [names] if isinstance(names, str) else names


def _checked_file(name: str, file: Path) -> Path:
    """The file of a field. Raises ValueError for a name of another kind."""
    file = Path(file)  # Python code may pass a str
    if file.name == STANDARD_INPUT.name:  # a config puts its own folder before each path
        return STANDARD_INPUT
    if not file.name.endswith((".csv", ".csv.gz", ".npz")):
        raise ValueError(f"{name} must be - or end in .csv, .csv.gz or .npz, not {file.name}")
    return file
