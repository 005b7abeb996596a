"""CSV: columns of the user's own tables."""

from __future__ import annotations

import io
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nn_manual.data.cells import Cells
from nn_manual.data.csv_records import STANDARD_INPUT, opened, rows_of
from nn_manual.data.reading import SLICE_SIZE, check_name, reading
from nn_manual.data.tables import Part, Table
from nn_manual.data.transform import Names
from nn_manual.errors import DataError
from nn_manual.messages.text import quoted


class CsvForm(NamedTuple):
    """What stands between the cells, None for what the header shows; whether rows with an empty cell are left out; and
    what a message about empty cells advises.
    """

    delimiter: str | None = None
    drops: bool = False
    advice: str = "`missing: mean` or `missing: drop` takes them"


def read_csv(file: Path | io.StringIO, input: Part, target: Part, form: CsvForm = CsvForm()) -> Table:  # noqa: B008 - a tuple, which nobody can change
    """The columns that the parts name, from a CSV file whose first line names the columns. If `input` names none, it
    gets all columns but the targets.

    The text is UTF-8, with delimiters, quotes and blank lines as the csv module reads them, gunzipped if the name ends
    in .gz. The file "-" is standard input; a table in memory is text, too. Columns that are not named may hold
    anything. Raises DataError, which names the line and the column.
    """
    source = "standard input" if file == STANDARD_INPUT else "the table" if isinstance(file, io.StringIO) else str(file)
    with reading(source, EOFError, zlib.error), opened(file) as stream:
        _, header, rows = rows_of(source, stream, form.delimiter)
        _choose(source, header, input, target)
        num_rows = _read_rows(source, rows, header, input, target, form)
    if not num_rows:
        raise DataError(f"{source}: has a header and no rows" + " without empty cells" * form.drops)
    return Table(input, target, Names(input=tuple(input.names), target=tuple(target.names)))


def _choose(source: str, header: list[str], input: Part, target: Part) -> None:
    """Complete the input's names. Raises DataError if the header doesn't have a column."""
    known = set(header)
    for name in (*input.names, *target.names, *input.categories, *target.categories):
        if name not in known:
            check_name(source, "column", name, header)
    input.names = input.names or [name for name in header if name not in target.names]
    if not input.names:
        raise DataError(f"{source}: every column is a target, none is left for the input")


def _read_rows(
    source: str,
    rows: Iterator[tuple[int, list[str]]],
    header: list[str],
    input: Part,
    target: Part,
    form: CsvForm,
) -> int:
    """Fill both parts, a slice of rows at a time. Returns the number of rows."""
    cells_of_row = Cells(source, input, target, drops=form.drops)
    names, num_inputs, num_rows = cells_of_row.names, len(input.names), 0
    column_of = {name: column for column, name in enumerate(header)}
    columns = [column_of[name] for name in names]
    numbers, lines = array("d"), list[int]()

    def keep() -> None:
        read = np.array(numbers).reshape(len(lines), len(names))
        input.append(read[:, :num_inputs], _place(source, lines, input.names), source)
        target.append(read[:, num_inputs:], _place(source, lines, target.names), source)

    for line, cells in rows:
        if cells_of_row.add(numbers, line, [cells[column] for column in columns]):
            lines.append(line)
        if len(numbers) >= SLICE_SIZE:
            keep()
            num_rows += len(lines)
            numbers, lines = array("d"), []
    keep()
    cells_of_row.check_none_empty(form.advice)
    input.put_in_order()
    target.put_in_order()
    return num_rows + len(lines)


def _place(source: str, lines: list[int], names: Sequence[str]) -> Callable[[int], str]:
    """A function that says where in the file the number with this index stands."""
    return lambda index: f"{source}:{lines[index // len(names)]}: column {quoted(names[index % len(names)])}"
