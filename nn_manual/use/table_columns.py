"""What stands in the columns of a CSV: numbers, names, or nothing."""

from __future__ import annotations

import math
import re
import zlib
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nn_manual.data.categories import name_in
from nn_manual.data.cells import BLANK, add_numbers, looks_like_a_number
from nn_manual.data.csv_records import opened, records_of
from nn_manual.data.reading import check_name, reading
from nn_manual.errors import DataError
from nn_manual.messages import counted, quoted

#: An input column of more different names than this is text, for which a model has no number; a target of more has no
#: classes that could be learned.
MOST_NAMES = 100
#: Different cells are counted up to this many.
MOST_COUNTED = 10_000
#: How a column is called that counts the rows. pandas writes its index under an empty name.
IDS = ("", "id", "index", "row", "nr", "no", "number", "unnamed: 0")


@dataclass
class Column:
    """A column's cells: how many are numbers, and how many are empty; how often each name occurs, and the text of a
    number is one, too. `odd` is the line and the text of the first cell that is neither number nor empty.
    """

    name: str
    num_rows: int = 0
    num_numbers: int = 0
    num_empty: int = 0
    are_integers: bool = True
    smallest: float = math.inf
    largest: float = -math.inf
    names: Counter[str] = field(default_factory=Counter)
    odd: tuple[int, str] | None = None

    def add(self, line: int, cell: str) -> None:
        """Take a cell in."""
        self.num_rows += 1
        if not cell.strip():
            self.num_empty += 1
            return
        text = name_in(cell)
        if text in self.names or len(self.names) < MOST_COUNTED:
            self.names[text] += 1
        if add_numbers(found := array("d"), [cell]):
            self.num_numbers += 1
            self.are_integers &= found[0].is_integer()
            self.smallest, self.largest = min(self.smallest, found[0]), max(self.largest, found[0])
        elif self.odd is None:
            self.odd = line, text

    @property
    def is_number(self) -> bool:
        """Whether each cell is a number, or empty."""
        return self.odd is None

    @property
    def is_mixed(self) -> bool:
        """Whether it looks like numbers, some of which are written as no number is: 1,5, or NA."""
        if self.odd is None:
            return False
        num_commas = sum(count for name, count in self.names.items() if re.fullmatch(r"[+-]?\d+,\d+", name))
        return 2 * (self.num_numbers + num_commas) > self.num_rows - self.num_empty

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
        """Whether it is a number for each row: different integers, without a gap, or under a name such as id."""
        if not (self.is_number and self.are_integers and len(self.names) == self.num_rows):
            return False
        name = self.name.lower()
        is_id = name in IDS or name.endswith(("_id", " id", "-id"))
        return is_id or (len(self.names) > MOST_NAMES and self.largest - self.smallest == self.num_rows - 1)

    @property
    def counts_from_0(self) -> bool:
        """Whether the names are 0, 1, 2, ..., each of which occurs."""
        return self.names.keys() == {str(number) for number in range(len(self.names))}


def columns_of(file: Path, *, needed: Sequence[str]) -> list[Column]:
    """The columns of a CSV, which has the `needed` ones. Rows in which one of these is empty don't count. Raises
    DataError.
    """
    columns: list[Column] = []
    for line, header, cells in _rows(file, needed):
        columns = columns or [Column(name) for name in header]
        if all(cells[header.index(name)].strip(BLANK) for name in needed):
            for column, cell in zip(columns, cells, strict=True):
                column.add(line, cell)
    if not columns or not columns[0].num_rows:
        raise DataError(f"{file}: has a header and no rows" + " with a target" * bool(columns))
    return columns


def has_gaps(file: Path, names: Sequence[str]) -> bool:
    """Whether one of these columns has an empty cell."""
    return any(not cells[header.index(name)].strip(BLANK) for _, header, cells in _rows(file, names) for name in names)


def _rows(file: Path, needed: Sequence[str]) -> Iterator[tuple[int, list[str], list[str]]]:
    """Line, header and cells of each row."""
    with reading(file, EOFError, zlib.error), opened(file) as stream:
        records = records_of(str(file), stream)
        line, header = next(records, (1, []))
        header = [name.strip() for name in header]
        _check_header(f"{file}:{line}", header, needed)
        for line, cells in records:
            if len(cells) != len(header):
                named = counted(len(header), "column")
                raise DataError(f"{file}:{line}: the header names {named}, this row has {len(cells)}")
            yield line, header, cells


def _check_header(place: str, names: list[str], needed: Sequence[str]) -> None:
    if not names:
        raise DataError(f"{place}: is empty; the first line of a CSV file names the columns")
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"{place}: column {quoted(name)} occurs {names.count(name)} times")
    for name in needed:
        check_name(place, "column", name, names)
