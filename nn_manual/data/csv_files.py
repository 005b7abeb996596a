"""CSV: columns of the user's own tables, from a file, gzipped or not, or from standard input."""

from __future__ import annotations

import csv
import gzip
import io
import math
import sys
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TextIO

import numpy as np

from nn_manual.data.reading import LISTED_NAMES, SLICE_SIZE, check_name, reading
from nn_manual.data.tables import Part, Table
from nn_manual.data.transform import Names
from nn_manual.errors import DataError
from nn_manual.messages import counted, one_line, quoted
from nn_manual.opening import open_file

#: The file name that stands for standard input.
STANDARD_INPUT = Path("-")

#: How a file is read as text. Line ends stay as they are: the csv module needs them.
AS_TEXT: dict[str, Any] = {"encoding": "utf-8-sig", "errors": "surrogateescape", "newline": ""}

#: A row has at most this many characters: a million columns. A longer one isn't a table's, and could fill the memory.
LONGEST_ROW = 1 << 24


def read_csv(file: Path, input: Part, target: Part) -> Table:
    """The columns that the parts name, from a CSV file whose first line names the columns. If `input` names none, it
    gets all columns but the targets.

    The text is UTF-8, with commas, quotes and blank lines as the csv module reads them, gunzipped if the name ends in
    .gz. The file "-" is standard input. Columns that are not named may hold anything. Raises DataError, which names the
    line and the column.
    """
    source = "standard input" if file == STANDARD_INPUT else str(file)
    with reading(source, EOFError, zlib.error), _opened(file) as stream:
        records = _records(source, stream)
        line, header = next(records, (1, []))
        header = [name.strip() for name in header]
        _choose(source, line, header, input, target)
        num_rows = _read_rows(source, records, header, input, target)
    if not num_rows:
        raise DataError(f"{source}: has a header and no rows")
    return Table(input, target, Names(input=tuple(input.names), target=tuple(target.names)))


@contextmanager
def _opened(file: Path) -> Iterator[TextIO]:
    """The text of a file. Bytes that aren't UTF-8 become surrogates, so that a message can name their line."""
    if file == STANDARD_INPUT:
        if sys.stdin is None:
            raise DataError("standard input: is closed")
        stream = io.TextIOWrapper(sys.stdin.buffer, **AS_TEXT)
        try:
            yield stream
        finally:
            stream.detach()  # otherwise it would close standard input
        return
    with open_file(file) as raw, io.TextIOWrapper(gzip.open(raw) if file.suffix == ".gz" else raw, **AS_TEXT) as stream:
        yield stream


def _choose(source: str, line: int, header: list[str], input: Part, target: Part) -> None:
    """Complete the input's names. Raises DataError if the header doesn't have a column, or has one twice."""
    if not header:
        raise DataError(f"{source}: is empty; the first line of a CSV file names the columns")
    counts = Counter(header)
    name, count = counts.most_common(1)[0]
    if count > 1:
        raise DataError(f"{source}:{line}: column {quoted(name)} occurs {count} times")
    for name in (*input.names, *target.names):
        if name not in counts:
            check_name(source, "column", name, header)
    input.names = input.names or [name for name in header if name not in target.names]
    if not input.names:
        raise DataError(f"{source}: every column is a target, none is left for the input")


def _read_rows(
    source: str, records: Iterator[tuple[int, list[str]]], header: list[str], input: Part, target: Part
) -> int:
    """Fill both parts, a slice of rows at a time. Returns the number of rows."""
    names, num_inputs, num_rows = [*input.names, *target.names], len(input.names), 0
    column_of = {name: column for column, name in enumerate(header)}
    columns = [column_of[name] for name in names]
    numbers, lines = array("d"), list[int]()

    def keep() -> None:
        rows = np.array(numbers).reshape(len(lines), len(names))
        input.append(rows[:, :num_inputs], _place(source, lines, input.names), source)
        target.append(rows[:, num_inputs:], _place(source, lines, target.names), source)

    for line, cells in records:
        if len(cells) != len(header):
            named = counted(len(header), "column")
            raise DataError(f"{source}:{line}: the header names {named}, this row has {len(cells)}")
        chosen = [cells[column] for column in columns]
        if not _add_numbers(numbers, chosen):
            _refuse(f"{source}:{line}", names, chosen)
        lines.append(line)
        if len(numbers) >= SLICE_SIZE:
            keep()
            num_rows += len(lines)
            numbers, lines = array("d"), []
    keep()
    return num_rows + len(lines)


def _place(source: str, lines: list[int], names: Sequence[str]) -> Callable[[int], str]:
    """A function that says where in the file the number with this index stands."""
    return lambda index: f"{source}:{lines[index // len(names)]}: column {quoted(names[index % len(names)])}"


def _records(source: str, stream: TextIO) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each record that isn't blank; the line is the record's last one."""
    lines = _Lines(source, stream)
    reader = csv.reader(lines, strict=True)
    try:
        for cells in reader:
            lines.num_characters = 0
            if cells:
                yield reader.line_num, cells
    except csv.Error as error:
        is_too_long = str(error).startswith("field larger")
        too_long = f"a cell has more than {csv.field_size_limit():,} characters"
        problem = too_long if is_too_long else one_line(str(error), LISTED_NAMES)
        raise DataError(f"{source}:{reader.line_num}: {problem}") from error


class _Lines:
    """The lines, for the csv module. Raises DataError if a row is too long, or isn't UTF-8."""

    def __init__(self, source: str, stream: TextIO) -> None:
        self.source, self.stream = source, stream
        self.num_lines = 0
        self.num_characters = 0  # of the row so far: a quoted cell can have many lines

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self.stream.readline(LONGEST_ROW + 1)
        if not line:
            raise StopIteration
        self.num_lines += 1
        if self.num_lines == 1:  # "utf-8-sig" has removed one byte order mark; there may be more
            line = line.lstrip("\ufeff")
        self.num_characters += len(line)
        if self.num_characters > LONGEST_ROW:
            raise DataError(f"{self.source}:{self.num_lines}: a row has more than {LONGEST_ROW:,} characters")
        if not line.isascii():
            try:
                line.encode()
            except UnicodeEncodeError as error:
                byte = ord(line[error.start]) - 0xDC00  # where "surrogateescape" put it
                raise DataError(f"{self.source}:{self.num_lines}: is not UTF-8: byte 0x{byte:02x}") from error
        return line


def _add_numbers(numbers: array[float], cells: list[str]) -> bool:
    """Append the numbers of a row. False if a cell may not be a finite number."""
    text = "".join(cells)
    if not text.isascii() or "_" in text:  # Python takes other scripts' digits, and "_" between digits
        return False
    try:
        row = array("d", map(float, cells))
    except ValueError:
        return False
    numbers.extend(row)
    return all(map(math.isfinite, row))


def _refuse(place: str, names: list[str], cells: list[str]) -> NoReturn:
    """Raise DataError for the first cell that isn't a finite number."""
    for name, cell in zip(names, cells, strict=True):
        if not _add_numbers(found := array("d"), [cell]):
            kind = "a finite number" if found else "a number"
            raise DataError(f"{place}: column {quoted(name)} holds {quoted(cell)}, not {kind}")
    raise AssertionError(f"{place}: each cell is a number, and the row isn't")
