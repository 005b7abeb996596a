"""What stands in the columns of a CSV: numbers, names, or nothing."""

from __future__ import annotations

import math
import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nn_manual.data.cells import BLANK, add_numbers, looks_like_a_number
from nn_manual.data.csv_records import opened, records_of
from nn_manual.data.reading import check_name, reading
from nn_manual.errors import DataError
from nn_manual.messages import counted, quoted

#: A column of more different names than this is text, which a model takes no number for.
MOST_NAMES = 100


@dataclass
class Column:
    """A column's cells: how many are numbers, and how many are empty; the names of all others, and of numbers, too,
    up to MOST_NAMES + 1 of them. `first_name` is the line of the first cell that is no number.
    """

    name: str
    num_rows: int = 0
    num_numbers: int = 0
    num_empty: int = 0
    are_integers: bool = True
    smallest: float = math.inf
    largest: float = -math.inf
    names: set[str] = field(default_factory=set)
    first_name: int | None = None

    def add(self, line: int, cell: str) -> None:
        """Take a cell in."""
        self.num_rows += 1
        if not (text := cell.strip(BLANK)):
            self.num_empty += 1
            return
        if len(self.names) <= MOST_NAMES:
            self.names.add(text)
        if add_numbers(found := array("d"), [cell]):
            self.num_numbers += 1
            self.are_integers &= found[0].is_integer()
            self.smallest, self.largest = min(self.smallest, found[0]), max(self.largest, found[0])
        elif self.first_name is None:
            self.first_name = line

    @property
    def is_number(self) -> bool:
        """Whether each cell is a number, or empty."""
        return self.num_numbers == self.num_rows - self.num_empty

    @property
    def looks_like_numbers(self) -> bool:
        """Whether a cell may be taken for a number."""
        return any(map(looks_like_a_number, self.names))

    @property
    def has_few_names(self) -> bool:
        """Whether the names are so few that most occur again."""
        return len(self.names) <= min(MOST_NAMES, max(2, self.num_rows // 2))

    @property
    def is_constant(self) -> bool:
        """Whether there is nothing to learn from it."""
        return len(self.names) + (self.num_empty > 0) < 2

    @property
    def counts_rows(self) -> bool:
        """Whether it may count the rows: integers without a gap, each of them once."""
        spans_rows = self.largest - self.smallest == self.num_rows - 1
        return self.is_number and self.are_integers and spans_rows and len(self.names) > MOST_NAMES


def columns_of(
    file: Path, delimiter: str | None, *, needed: Sequence[str], without_gaps: Sequence[str] = ()
) -> list[Column]:
    """The columns of a CSV, which has the `needed` ones. Rows with an empty cell in a column `without_gaps` don't
    count. Raises DataError.
    """
    with reading(file, EOFError, zlib.error), opened(file) as stream:
        records = records_of(str(file), stream, delimiter)
        line, header = next(records, (1, []))
        columns = [Column(name.strip()) for name in header]
        _check_header(f"{file}:{line}", [column.name for column in columns], needed)
        whole = [place for place, column in enumerate(columns) if column.name in without_gaps]
        for line, cells in records:
            if len(cells) != len(columns):
                named = counted(len(columns), "column")
                raise DataError(f"{file}:{line}: the header names {named}, this row has {len(cells)}")
            if all(cells[place].strip(BLANK) for place in whole):
                for column, cell in zip(columns, cells, strict=True):
                    column.add(line, cell)
    if not columns[0].num_rows:
        raise DataError(f"{file}: has a header and no rows" + " without empty cells" * bool(whole))
    return columns


def _check_header(place: str, names: list[str], needed: Sequence[str]) -> None:
    if not names:
        raise DataError(f"{place}: is empty; the first line of a CSV file names the columns")
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"{place}: column {quoted(name)} occurs {names.count(name)} times")
    for name in needed:
        check_name(place, "column", name, names)
