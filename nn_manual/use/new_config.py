"""A config for data of the user's own: it trains at once, and its comments say why it is as it is."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array
from nn_manual.config import RunConfig
from nn_manual.data.arrays_dataset import Arrays, Task
from nn_manual.data.npz_files import names_in, read_npz
from nn_manual.data.reading import check_name
from nn_manual.data.tables import BY_UNIQUE, Kind, Part
from nn_manual.errors import ConfigError, DataError
from nn_manual.messages.text import counted, one_line, quoted
from nn_manual.run_directory.files import write_atomically
from nn_manual.use.new_text import of_text
from nn_manual.use.proposal import Line, commented, of_examples
from nn_manual.use.schema_file import FIRST_LINE, SCHEMA_FILE, check_replaceable, write_schema
from nn_manual.use.table_columns import MOST_NAMES, Column, cited, columns_of

#: The endings of tables, of arrays and of texts.
TABLES, ARRAYS, TEXTS = (".csv", ".csv.gz"), (".npz",), (".txt",)

#: Integers are classes if there are no more different ones than this; more are more likely quantities.
MOST_CLASSES = 20
#: A comment lists this many names.
LISTED = 3
#: With fewer rows, none is held out; else this part of them is.
FEW_ROWS, HELD_OUT = 10, 0.2


class NewConfig(NamedTuple):
    """The text of a config, and what to know of it at once: what it predicts, and what it leaves out."""

    text: str
    notes: tuple[str, ...]


def new_config(file: Path, targets: Sequence[str], output: Path | None = None, task: Task | None = None) -> NewConfig:
    """A config that trains on a file, .csv, .csv.gz, .npz or .txt. `targets` are the columns, or the one
    array, to predict. It is written to `output`, if that is given, and the schema beside it, which its first line names
    for editors. The `task` is what the target looks like, unless it is given.

    Raises ConfigError for another ending, a target that is missing or too many, and an output that exists, has the
    schema's name, or stands beside another file of that name; DataError for a file that can't be read, has no such
    column, or has nothing to learn from.
    """
    if output is not None and (output.exists() or output.is_symlink()):
        raise ConfigError(f"-o {one_line(str(output))} exists: choose another name, or remove it")
    if output is not None and output.name == SCHEMA_FILE:
        raise ConfigError(f"-o {one_line(str(output))}: the schema beside the config has this name")
    if output is not None:
        check_replaceable(output.with_name(SCHEMA_FILE))
    if not file.name.endswith((*TABLES, *ARRAYS, *TEXTS)):
        endings = ", ".join((*TABLES, *ARRAYS, *TEXTS))
        raise ConfigError(f"FILE must end in one of {endings}, not {one_line(file.name)}")
    is_text = file.name.endswith(TEXTS)
    if is_text and targets:
        raise ConfigError("--target is for tables and arrays: a text predicts its next character")
    if not is_text and not targets:
        raise ConfigError("--target must name what to predict")
    if len(set(targets)) < len(targets):
        raise ConfigError("--target must name each column once")
    if len(targets) > 1 and task == "classification":
        raise ConfigError("--target must name one column for a classification")
    # Through links, as the system reads a path: else `..` leads elsewhere.
    shown = os.path.relpath(file.resolve(), (Path() if output is None else output.parent).resolve())
    notes: list[str] = []
    if is_text:
        lines = of_text(file, shown)
    elif file.name.endswith(ARRAYS):
        lines = _of_arrays(file, shown, targets, task)
    else:
        lines = _of_table(file, shown, targets, task, notes)
    text = "".join(f"{line}\n" for line in commented(lines))
    if output is not None:
        text = f"{FIRST_LINE}\n{text}"
        write_schema(output.with_name(SCHEMA_FILE))
        write_atomically(output, text.encode())
    return NewConfig(text, tuple(notes))


def _of_table(file: Path, shown: str, targets: Sequence[str], task: Task | None, notes: list[str]) -> Iterator[Line]:
    """For a CSV."""
    columns, num_left_out = columns_of(file, needed=targets)
    by_name = {column.name: column for column in columns}
    of_target = [by_name[name] for name in targets]
    _check_numbers(file, [*of_target, *(column for column in columns if column.name not in targets)], task)
    chosen = [column for column in columns if column.name not in targets and not column.why_left_out]
    is_classification = _is_classification(file, of_target, task)
    left_out = _left_out(columns, targets)
    if not chosen:
        raise DataError(f"{file}: has no column to predict from{f': {_listed(left_out)}' if left_out else ''}")
    named = [column.name for column in chosen if not column.is_number]
    described = _described(of_target, is_classification)
    kind = "a classification" if is_classification else "a regression"
    notes.append(f"{kind} of {', '.join(map(quoted, targets))}: {described}")
    notes += [f"left out: {quoted(name)}, {why}" for name, why in left_out.items()]
    num_rows, num_empty = columns[0].num_rows, sum(column.num_empty for column in chosen)
    data: dict[str, tuple[Any, str]] = {"file": (shown, f"{counted(num_rows, 'row')} with a target")}
    data["target"] = targets[0] if len(targets) == 1 else list(targets), described
    data["task"] = "classification" if is_classification else "regression", "the other one: --task"
    if left_out:
        data["input"] = [column.name for column in chosen], f"without {_listed(left_out)}"
    if is_classification and of_target[0].looks_like_numbers and not of_target[0].counts_from_0:
        named.append(of_target[0].name)
    _check_printable(file, [shown, *targets, *named, *(column.name for column in chosen if left_out)])
    if named:
        data["categories"] = named, "cells are names, and each name is a number"
    data["standardize"] = True, "columns of different sizes would train badly"
    if num_empty:
        data["missing"] = "mean", f"what {counted(num_empty, 'empty cell')} become: the mean of the column"
    elif num_left_out:
        data["missing"] = "mean", f"{counted(num_left_out, 'row')} without a target are left out"
    classes = of_target[0].names if is_classification else None
    if is_classification:
        data["stratify"] = True, "of each class the same share is held out"
    data["validation_fraction"] = HELD_OUT, "held out, to see how good the model is on other rows"
    can_hold_out = num_rows >= FEW_ROWS and _num_held_out(file, data) > 0
    if not can_hold_out:
        data.pop("stratify", None)
        data["validation_fraction"] = 0.0, "too few rows to hold some out"
    width = sum(1 if column.is_number else len(column.names) for column in chosen)
    num_outputs = len(targets) if classes is None else len(classes)
    yield from of_examples(data, (width,), num_outputs, is_classification=is_classification, holds_out=can_hold_out)


def _num_held_out(file: Path, data: Mapping[str, tuple[Any, str]]) -> int:
    """How many rows are held out with these fields. Training keeps one of each name, and all of a small class."""
    arrays = Arrays(**{name: value for name, (value, _) in data.items()} | {"file": file})
    return len(arrays.load(RunConfig.seed, np.dtype(np.float64)).validation.target)


def _check_numbers(file: Path, columns: Sequence[Column], task: Task | None) -> None:
    """Raise DataError for a column of numbers, some of which are written as no number is."""
    for column in columns:
        if column.is_mixed and task != "classification":
            assert column.odd is not None  # it has such a cell
            line, text = column.odd
            of = f"{column.num_numbers} of {column.num_rows - column.num_empty} cells of the column are numbers"
            advice = "a number has a point, and a missing one is an empty cell"
            raise DataError(f"{file}:{line}: column {quoted(column.name)} holds {quoted(text)}; {of}: {advice}")


def _check_printable(file: Path, names: Sequence[str]) -> None:
    """Raise DataError for a name that can't stand in a config."""
    for name in names:
        if not name.isprintable():
            words = "isn't one line of printable characters, as a config needs"
            raise DataError(f"{file}: the name {quoted(name)} {words}")


def _left_out(columns: Sequence[Column], targets: Sequence[str]) -> dict[str, str]:
    """The columns that are left out, each with the reason."""
    whys = {column.name: column.why_left_out for column in columns if column.name not in targets}
    return {name: why for name, why in whys.items() if why}


def _listed(left_out: Mapping[str, str]) -> str:
    return one_line(", ".join(f"{quoted(name)} ({why})" for name, why in left_out.items()))


def _is_classification(file: Path, of_target: Sequence[Column], task: Task | None) -> bool:
    """Whether the target is classes. Raises DataError where it can't be what it must."""
    first = of_target[0]
    may_be_classes = task != "regression" and len(of_target) == 1
    for column in of_target:
        if column.odd is not None and not may_be_classes:
            line, text = column.odd
            words = f"has names, and a regression needs numbers, not {cited(text)}"
            raise DataError(f"{file}:{line}: column {quoted(column.name)} {words}")
        if column.is_constant:
            raise DataError(f"{file}: column {quoted(column.name)} is always the same: there is nothing to predict")
    if not may_be_classes:
        return False
    are_classes = not first.is_number or task == "classification"
    if are_classes and not first.has_few_names:
        words = f"{len(first.names):,} different cells in {first.num_rows - first.num_empty:,} rows"
        place, such_as = ("", "") if first.odd is None else (f":{first.odd[0]}", f", such as {cited(first.odd[1])}")
        raise DataError(f"{file}{place}: column {quoted(first.name)} has {words}, too many for classes{such_as}")
    return are_classes or (first.are_integers and len(first.names) <= MOST_CLASSES and first.has_few_names)


def _described(of_target: Sequence[Column], is_classification: bool) -> str:
    if not is_classification:
        numbers = [f"{column.smallest:g} to {column.largest:g}" for column in of_target[:LISTED]]
        return f"numbers from {', '.join(numbers)}{', ...' * (len(of_target) > LISTED)}"
    names = sorted(of_target[0].names)
    listed = one_line(", ".join(names[:LISTED]) + ", ..." * (len(names) > LISTED))
    return f"{counted(len(names), 'class', 'classes')}: {listed}"


def _of_arrays(file: Path, shown: str, targets: Sequence[str], task: Task | None) -> Iterator[Line]:
    """For an .npz of two arrays."""
    if len(targets) > 1:
        raise ConfigError("--target must name one array of an .npz")
    input_name, input, target = _two_arrays(file, targets[0])
    _check_printable(file, [shown, targets[0], input_name])
    values = np.unique(target)
    if len(values) < 2:
        raise DataError(f"{file}: array {targets[0]!r} is always the same: there is nothing to predict")
    is_counted = target.shape[1] == 1 and np.array_equal(values, np.arange(len(values)))
    is_classification = (is_counted and len(values) <= MOST_NAMES) if task is None else task == "classification"
    if is_classification and target.shape[1] > 1:
        words = f"{target.shape[1]} classes for each example, and a new config is for one"
        raise DataError(f"{file}: array {targets[0]!r} has {words}")
    if is_classification and not is_counted:
        words = f"must be 0, 1, 2, ... without gaps: number them {BY_UNIQUE}"
        raise DataError(f"{file}: the classes in {targets[0]!r} {words}")
    can_hold_out = len(target) >= FEW_ROWS
    data: dict[str, tuple[Any, str]] = {
        "file": (shown, counted(len(target), "example")),
        "input": (input_name, "the other array"),
        "target": (targets[0], f"{len(values)} classes" if is_classification else "numbers"),
        "task": ("classification" if is_classification else "regression", "the other one: --task"),
        "standardize": (True, "numbers of different sizes would train badly"),
        "validation_fraction": (HELD_OUT if can_hold_out else 0.0, "held out, to see how good the model is"),
    }
    num_outputs = len(values) if is_classification else target.shape[1]
    yield from of_examples(
        data, input.shape[1:], num_outputs, is_classification=is_classification, holds_out=can_hold_out
    )


def _two_arrays(file: Path, target_name: str) -> tuple[str, Array, Array]:
    """The other array's name, it and the target, (examples, ...). Raises DataError for arrays that no model takes."""
    names = names_in(file)
    check_name(file, "array", target_name, names)
    others = [name for name in names if name != target_name]
    if len(others) != 1:
        raise DataError(f"{file}: has {counted(len(others), 'array')} beside the target, and one is needed")
    parts = (Part([name], Kind.NUMBERS, np.dtype(np.float64)) for name in (*others, target_name))
    input, target, _ = read_npz(file, *parts)
    if target.array.ndim > 2:
        raise DataError(f"{file}: array {target_name!r} has shape {target.array.shape}, not (examples, outputs)")
    return others[0], input.array, target.array
