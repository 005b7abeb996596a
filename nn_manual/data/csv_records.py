"""CSV as text: the records of a file, gzipped or not, or of standard input, and what stands between their cells."""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from nn_manual.data.reading import LISTED_NAMES
from nn_manual.errors import DataError
from nn_manual.messages.text import counted, one_line, quoted
from nn_manual.opening import open_file

#: The file name that stands for standard input.
STANDARD_INPUT = Path("-")

#: How a file is read as text. Line ends stay as they are: the csv module needs them.
AS_TEXT: dict[str, Any] = {"encoding": "utf-8-sig", "errors": "surrogateescape", "newline": ""}

#: A row has at most this many characters: a million columns. A longer one isn't a table's, and could fill the memory.
LONGEST_ROW = 1 << 24

#: What may stand between the cells, the first of them where the header shows none.
DELIMITERS = (",", ";", "\t", "|")


@contextmanager
def opened(file: Path | io.StringIO) -> Iterator[TextIO]:
    """The text of a file, or that in memory. Bytes that aren't UTF-8 become surrogates, so that a message can name
    their line.
    """
    if isinstance(file, io.StringIO):
        yield file
        return
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


def rows_of(
    source: str, stream: TextIO, delimiter: str | None = None
) -> tuple[int, list[str], Iterator[tuple[int, list[str]]]]:
    """The line of the header, the names of the columns, and line number and cells of each row. Raises DataError where
    the file is empty, names a column twice, or a row has another number of cells, which the iterator finds.
    """
    records = _records(source, stream, delimiter)
    header_line, header = next(records, (1, []))
    names = [name.strip() for name in header]
    if not names:
        raise DataError(f"{source}: is empty; the first line of a CSV file names the columns")
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise DataError(f"{source}:{header_line}: column {quoted(name)} occurs {count} times")

    def rows() -> Iterator[tuple[int, list[str]]]:
        for line, cells in records:
            if len(cells) != len(names):
                named = counted(len(names), "column")
                raise DataError(f"{source}:{line}: the header names {named}, this row has {len(cells)}")
            yield line, cells

    return header_line, names, rows()


def _records(source: str, stream: TextIO, delimiter: str | None) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each record that isn't blank; the line is the record's last one. Without a `delimiter`,
    it is the one of DELIMITERS that gives the first line the most cells. Raises DataError, which names the line.
    """
    lines = _Lines(source, stream)
    first = next((line for line in lines if line.strip("\r\n")), "")
    reader = csv.reader(_followed(first, lines), strict=True, delimiter=delimiter or _delimiter_of(first))
    before = lines.num_lines - 1  # blank lines that the reader didn't see
    if delimiter is not None:
        _check_delimiter(f"{source}:{lines.num_lines}", first, delimiter)
    try:
        for cells in reader:
            lines.num_characters = 0
            if cells:
                yield before + reader.line_num, cells
    except csv.Error as error:
        is_too_long = str(error).startswith("field larger")
        too_long = f"a cell has more than {csv.field_size_limit():,} characters"
        problem = too_long if is_too_long else one_line(str(error), LISTED_NAMES)
        raise DataError(f"{source}:{before + reader.line_num}: {problem}") from error


def _followed(first: str, lines: Iterator[str]) -> Iterator[str]:
    if first:
        yield first
    yield from lines


def _num_cells(line: str, delimiter: str) -> int:
    try:
        return len(next(csv.reader([line], delimiter=delimiter), []))
    except csv.Error:  # the first line of a record with line ends in quotes
        return 1


def _delimiter_of(line: str) -> str:
    return max(DELIMITERS, key=lambda delimiter: _num_cells(line, delimiter))


def _check_delimiter(place: str, line: str, delimiter: str) -> None:
    """Raise DataError for a delimiter that the header doesn't have, where it has another one."""
    better = _delimiter_of(line)
    if _num_cells(line, delimiter) == 1 < (count := _num_cells(line, better)):
        raise DataError(f"{place}: the header has no {delimiter!r}, the delimiter; {better!r} gives it {count} columns")


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
