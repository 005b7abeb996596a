"""Numbers from the user's own files, .csv and .npz, checked so that an error names the place."""

from __future__ import annotations

import csv
import math
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nn_manual.arrays import Array
from nn_manual.data.reading import check_name, reading
from nn_manual.data.transform import Names
from nn_manual.errors import DataError

#: What numpy and zipfile raise for an archive that is cut off, flipped, encrypted, of pickles, or beyond the memory.
CORRUPT_ARCHIVE = (ValueError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error)


class Table(NamedTuple):
    """float64 inputs (rows, ...) and targets (rows, outputs), all finite, at least one row.

    For an error message, `target_place(row)` says where the target of that row stands, and `input_place(row, ...)`
    where a number of the inputs does. `names` are those of a CSV's columns.
    """

    input: Array
    target: Array
    input_place: Callable[..., str]
    target_place: Callable[[int], str]
    names: Names


def read_csv(file: Path, input: Sequence[str], target: Sequence[str]) -> Table:
    """The named columns of a CSV file whose first line names the columns; no `input`: all but the targets.

    UTF-8 with commas, quotes and blank lines as the csv module reads them. Columns that are not named may hold
    anything. Raises DataError with the line and column.
    """
    records = _records(file)
    line, header = next(records, (1, []))
    if not header:
        raise DataError(f"{file}: is empty; the first line of a CSV file names the columns")
    for name in header:
        if header.count(name) > 1:
            raise DataError(f"{file}:{line}: column {name!r} is there {header.count(name)} times")
    input = input or [name for name in header if name not in target]
    names = [*input, *target]
    for name in names:
        check_name(file, "column", name, header)
    if not input:
        raise DataError(f"{file}: every column is a target, none is left for the input")

    columns = [header.index(name) for name in names]
    lines: list[int] = []
    values = array("d")  # 8 bytes a number, where a list would take 32
    for line, cells in records:
        if len(cells) != len(header):
            raise DataError(f"{file}:{line}: the header names {len(header)} columns, this row has {len(cells)}")
        lines.append(line)
        for name, column in zip(names, columns, strict=True):
            try:
                values.append(_number(cells[column]))
            except ValueError as error:
                raise DataError(f"{file}:{line}: column {name!r} {error}") from None
    if not lines:
        raise DataError(f"{file}: has a header and no rows")
    table = np.array(values).reshape(len(lines), len(names))
    num_inputs = len(input)
    return Table(
        table[:, :num_inputs],
        table[:, num_inputs:],
        lambda row, column: f"{file}:{lines[row]}: column {input[column]!r}",
        lambda row: f"{file}:{lines[row]}: column {target[0]!r}",
        Names(input=tuple(input), target=tuple(target)),
    )


def _records(file: Path) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each record that isn't blank; a record's line is the one that it ends on."""
    with reading(file, UnicodeDecodeError), file.open(newline="", encoding="utf-8-sig") as stream:
        reader = csv.reader(stream, strict=True)
        try:
            for cells in reader:
                if cells:
                    yield reader.line_num, [cell.strip() for cell in cells]
        except csv.Error as error:
            raise DataError(f"{file}:{reader.line_num}: {error}") from error


def _number(cell: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        raise ValueError(f"holds {cell!r}, not a number") from None
    if not math.isfinite(number):
        raise ValueError(f"holds {cell!r}, not a finite number")
    return number


def read_npz(file: Path, input: Sequence[str], target: Sequence[str]) -> Table:
    """The named arrays, one for each, of an .npz file; a target (rows,) is taken as (rows, 1). Without one, the targets
    have no columns.

    Nothing in the file is executed: pickled objects are refused. Raises DataError with the array and index.
    """
    with reading(file, *CORRUPT_ARCHIVE), file.open("rb") as stream:
        if not zipfile.is_zipfile(stream):
            raise DataError(f"{file}: is not an .npz archive")
        with np.load(stream, allow_pickle=False) as archive:
            inputs, *others = (_read_array(file, archive, name) for name in (*input, *target))
    if inputs.ndim < 2:
        raise DataError(f"{file}: array {input[0]!r} has shape {inputs.shape}, not (examples, features)")
    targets = others[0] if others else inputs[:, :0]
    if targets.shape[:1] != inputs.shape[:1]:
        raise DataError(
            f"{file}: array {input[0]!r} has {len(inputs)} examples, but {target[0]!r} has shape {targets.shape}"
        )
    if inputs.size == 0:
        raise DataError(f"{file}: array {input[0]!r} of shape {inputs.shape} is empty")
    if targets.ndim == 1:
        targets = targets.reshape(-1, 1)
    return Table(
        inputs,
        targets,
        lambda *index: f"{file}: array {input[0]!r}[{', '.join(map(str, index))}]",
        lambda row: f"{file}: array {target[0]!r}[{row}]",
        Names(),
    )


def _read_array(file: Path, archive: np.lib.npyio.NpzFile, name: str) -> Array:
    check_name(file, "array", name, archive.files)
    try:
        values = archive[name]
    except CORRUPT_ARCHIVE as error:
        raise DataError(f"{file}: array {name!r}: {error}") from error
    if values.dtype.kind not in "biuf":
        raise DataError(f"{file}: array {name!r} has dtype {values.dtype}, not real numbers")
    values = values.astype(np.float64)
    faults = np.argwhere(~np.isfinite(values))
    if len(faults):
        index = tuple(map(int, faults[0]))
        raise DataError(f"{file}: array {name!r}[{', '.join(map(str, index))}] is {values[index]}, not a finite number")
    return values
