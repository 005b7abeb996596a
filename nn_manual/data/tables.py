"""Numbers from the user's own files, checked while they are read, so that an error names the place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.data.categories import Categories
from nn_manual.data.reading import check_memory
from nn_manual.data.transform import Names
from nn_manual.errors import DataError

#: Numbers are read in float64, which has every integer up to this one.
LARGEST_INTEGER = 2**53
#: Stands for no class where an example has several: the losses ignore it, as torch's do.
NO_CLASS = -100
#: How names and other numbers become classes. An .npz has no categories.
BY_UNIQUE = "with np.unique(y, return_inverse=True)"


class Kind(Enum):
    """Which numbers are allowed."""

    NUMBERS = "finite numbers"
    INTEGERS = "integers up to 2**53"
    CLASSES = "0, 1, 2, ..."
    LENGTHS = "1, 2, 3, ..."
    LABELS = "0 or 1"


class Part:
    """The inputs or the targets of a table: the `names` of their columns or arrays, the `kind` of their numbers, and
    their `dtype`, int64 for every kind but NUMBERS and LABELS. A reader fills `array`, (rows, ...), which owns its
    memory and has its number of dimensions before any number is checked.

    `categories` has those columns of a CSV whose cells are names: `array` has their codes. `are_found` says that a
    class column was found to be one, by its first cell; its names are those `known_names` from training, if any. Where
    cells `may_miss`, NaN stands for an empty one.

    `largest` is the largest magnitude so far, -1 where there was none, and `largest_place` says where it first occurs.
    """

    def __init__(
        self,
        names: Sequence[str],
        kind: Kind,
        dtype: np.dtype[Any],
        categories: Mapping[str, Categories] | None = None,
        *,
        may_miss: bool = False,
        known_names: Sequence[str] | None = None,
    ) -> None:
        self.names, self.kind, self.may_miss = names, kind, may_miss
        self.categories, self.are_found, self.known_names = dict(categories or {}), False, known_names
        self.dtype = dtype if kind in (Kind.NUMBERS, Kind.LABELS) else np.dtype(np.int64)
        self.array: Array = np.empty(0, self.dtype)
        self.largest, self.largest_place = -1.0, ""

    def checked(self, values: Array, place: Callable[[int], str]) -> Array:
        """float64 `values` in the part's dtype. `place(index)` says where one of them stands in the file.

        Raises DataError for the first value that isn't of this kind, or is too large for the dtype.
        """
        is_none = np.zeros(values.shape, dtype=bool)
        if self.may_miss:
            is_none = np.isnan(values)
        elif self.has_several_classes:
            is_none = values == NO_CLASS
        self._refuse(values, ~(np.isfinite(values) | is_none), "not a finite number", place)
        magnitudes = np.where(is_none, -1, np.abs(values))
        if self.kind is Kind.NUMBERS:
            self._refuse(values, magnitudes > np.finfo(self.dtype.type).max, f"too large for {self.dtype}", place)
        elif self.kind is Kind.LABELS:
            self._refuse(values, (values != 0) & (values != 1), "not 0 or 1", place)
        else:
            wrong = (values != np.floor(values)) | (magnitudes > LARGEST_INTEGER)
            if self.kind is Kind.LENGTHS:
                self._refuse(values, wrong | (values < 1), "not a length 1, 2, 3, ...", place)
            if self.kind is Kind.CLASSES:
                or_none = f" or {NO_CLASS}" if self.has_several_classes else ""
                self._refuse(values, wrong | ((values < 0) & ~is_none), f"not a class 0, 1, 2, ...{or_none}", place)
            self._refuse(values, wrong, "not an integer up to 2**53", place)
        if values.size and (largest := magnitudes.max()) > self.largest:
            self.largest, self.largest_place = float(largest), place(int(magnitudes.argmax()))
        return values.astype(self.dtype)

    @property
    def has_several_classes(self) -> bool:
        """Whether a row has several classes, and not one."""
        return self.kind is Kind.CLASSES and self.array.ndim > 1

    @staticmethod
    def _refuse(values: Array, wrong: Array, why: str, place: Callable[[int], str]) -> None:
        if wrong.any():
            index = int(wrong.argmax())
            number = str(values.flat[index]).removesuffix(".0")  # in the file, most whole numbers have no point
            raise DataError(f"{place(index)} holds {number}, {why}")

    def row_shape(self, shape: Shape) -> Shape:
        """The shape of a row of `array`, for a row of this shape in the file: () for one class and for a length, and
        never () for others.
        """
        if shape in ((), (1,)):
            return () if self.kind in (Kind.CLASSES, Kind.LENGTHS) else (1,)
        return shape

    def put_in_order(self) -> None:
        """When all rows are read: let the codes be positions among the names of their column."""
        for place, name in enumerate(self.names):
            if name in self.categories:
                column = self.array[:, place] if self.array.ndim > 1 else self.array
                column[...] = self.categories[name].in_order(column.astype(np.float64))

    def append(self, rows: Array, place: Callable[[int], str], file: str) -> None:
        """Check rows of columns, float64, and append them."""
        shape, num_before = self.row_shape(rows.shape[1:]), len(self.array)
        checked = self.checked(rows, place).reshape(len(rows), *shape)
        check_memory(file, self.array.nbytes + checked.nbytes)
        # The array grows in place: to collect pieces and join them would take twice the memory. No view of it exists,
        # so numpy need not look for one by counting references.
        self.array.resize((num_before + len(rows), *shape), refcheck=False)
        self.array[num_before:] = checked


class Table(NamedTuple):
    """The inputs and the targets, with the same number of rows, at least one. `names` are those of a CSV's columns."""

    input: Part
    target: Part
    names: Names
