"""What stands in the columns of a CSV: numbers, names, or nothing."""

from __future__ import annotations

import math
import re
import zlib
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nn_manual.data.categories import name_in
from nn_manual.data.cells import BLANK, add_numbers, looks_like_a_number
from nn_manual.data.csv_records import opened, rows_of
from nn_manual.data.reading import check_name, reading
from nn_manual.errors import DataError
from nn_manual.messages.text import quoted

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
        if not cell.strip(BLANK):
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
        are_different = len(self.names) == min(self.num_rows, MOST_COUNTED)
        if not (self.is_number and self.are_integers and are_different):
            return False
        name = self.name.lower()
        is_id = name in IDS or name.endswith(("_id", " id", "-id"))
        return is_id or (len(self.names) > MOST_NAMES and self.largest - self.smallest == self.num_rows - 1)

    @property
    def counts_from_0(self) -> bool:
        """Whether the names are 0, 1, 2, ..., each of which occurs."""
        return self.names.keys() == {str(number) for number in range(len(self.names))}

    @property
    def why_left_out(self) -> str:
        """Why nothing can be learned from it, in words; empty where something can."""
        if self.is_constant:
            return "always the same" if self.names else "always empty"
        if self.counts_rows:
            return "a number for each row"
        if self.odd is not None and not self.has_few_names:
            hint = f", such as {cited(self.odd[1])}" if looks_like_a_number(self.odd[1]) else ""
            return f"{len(self.names):,} different names{' or more' * (len(self.names) == MOST_COUNTED)}{hint}"
        return ""


def cited(cell: str) -> str:
    """A cell that is no number, in quotes, and what is wrong with it if it looks like one."""
    return quoted(cell) + ": a number has a point and nothing else" * looks_like_a_number(cell)


def columns_of(file: Path, *, needed: Sequence[str]) -> tuple[list[Column], int]:
    """The columns of a CSV, which has the `needed` ones, and in how many rows one of these is empty: such rows don't
    count. Raises DataError.
    """
    with reading(file, EOFError, zlib.error), opened(file) as stream:
        line, header, rows = rows_of(str(file), stream)
        for name in needed:
            check_name(f"{file}:{line}", "column", name, header)
        columns, places, num_left_out = [Column(name) for name in header], [*map(header.index, needed)], 0
        for line, cells in rows:
            if all(cells[place].strip(BLANK) for place in places):
                for column, cell in zip(columns, cells, strict=True):
                    column.add(line, cell)
            else:
                num_left_out += 1
    if not columns[0].num_rows:
        raise DataError(f"{file}: has a header and no rows" + " with a target" * bool(num_left_out))
    return columns, num_left_out
