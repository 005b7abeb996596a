"""The cells of a CSV's rows: numbers, names that have codes, and cells that are empty."""

from __future__ import annotations

import math
from array import array
from typing import NoReturn

from nn_manual.data.categories import Categories, name_in
from nn_manual.data.reading import LISTED_NAMES
from nn_manual.data.tables import Kind, Part
from nn_manual.errors import DataError
from nn_manual.messages.text import counted, one_line, quoted

NAN = float("nan")

#: A cell of these alone is empty. Other blanks, as the ideographic one, are a mistake that nobody sees.
BLANK = " \t"


class Cells:
    """Makes numbers of the cells that a row has in the columns of two parts, the input's first. Rows in which one is
    empty are left out where `drops` says so, and rows without a target where the input `may_miss`.

    A class column is one of names if its first cell is none of a number. Raises DataError, which names line and column,
    for a cell that isn't what its column has; and from `check_none_empty`.
    """

    def __init__(self, source: str, input: Part, target: Part, *, drops: bool) -> None:
        self.source, self.input, self.target, self.drops = source, input, target, drops
        self.names = [*input.names, *target.names]
        self.categories = input.categories | target.categories
        #: Whether a number has been read in the target's column: then its cells are no names.
        self.has_numbers = False
        #: For each column that may not be empty and is: how many cells are, and the line of the first one.
        self.empty: dict[str, tuple[int, int]] = {}

    def add(self, numbers: array[float], line: int, cells: list[str]) -> bool:
        """Append the numbers of a row. Returns False for one that is left out."""
        if not self.categories and add_numbers(numbers, cells):
            self.has_numbers = True
            return True
        if self.drops or self.input.may_miss:
            needed = cells if self.drops else cells[len(self.input.names) :]
            if not all(cell.strip(BLANK) for cell in needed):
                return False
        numbers.extend([self._number(line, *each) for each in zip(self.names, cells, strict=True)])
        return True

    def _number(self, line: int, name: str, cell: str) -> float:
        if not cell.strip(BLANK):
            return self._of_empty(line, name)
        if name in self.categories:
            return self._code(line, name, cell)
        if add_numbers(found := array("d"), [cell]):
            self.has_numbers |= name in self.target.names
            return found[0]
        is_class = self.target.kind is Kind.CLASSES and name in self.target.names
        if self.has_numbers or not is_class or looks_like_a_number(cell):
            hint = "; a number has a point, and no comma" if "," in cell and looks_like_a_number(cell) else ""
            self._refuse(line, name, cell, f"not {'a finite number' if found else 'a number'}{hint}")
        self.categories[name] = self.target.categories[name] = Categories(self.target.known_names)
        self.target.are_found = True
        return self._code(line, name, cell)

    def _of_empty(self, line: int, name: str) -> float:
        part = self.target if name in self.target.names else self.input
        if not part.may_miss:
            count, first = self.empty.get(name, (0, line))
            self.empty[name] = count + 1, first
        return NAN if part.may_miss else 0.0

    def _code(self, line: int, name: str, cell: str) -> float:
        if self.target.are_found and name in self.target.names and looks_like_a_number(cell):
            self._refuse(line, name, cell, f"a number among names; if it is a name, list {name!r} in categories")
        categories = self.categories[name]
        if not (text := name_in(cell)):
            self._refuse(line, name, cell, "not a name")
        code = categories.code(text)
        if code is None:
            known = one_line(", ".join(map(quoted, categories.names)), LISTED_NAMES)
            self._refuse(line, name, cell, f"which training never saw; it had {known}")
        return float(code)

    def _refuse(self, line: int, name: str, cell: str, why: str) -> NoReturn:
        raise DataError(f"{self.source}:{line}: column {quoted(name)} holds {quoted(cell)}, {why}")

    def check_none_empty(self, advice: str) -> None:
        """Raise DataError if a cell was empty that may not be."""
        for name, (count, line) in self.empty.items():
            cells = f"{counted(count, 'cell')} of column {quoted(name)} {'is' if count == 1 else 'are'} empty"
            raise DataError(f"{self.source}:{line}: {cells}; {advice}")


def add_numbers(numbers: array[float], cells: list[str]) -> bool:
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


def looks_like_a_number(cell: str) -> bool:
    """Whether a person may have meant a number: it begins with a digit, of any script, or is `nan` or `inf`."""
    text = cell.strip().lstrip("+-.,")
    try:
        float(text)
    except ValueError:
        return text[:1].isdigit() or not text
    return True
