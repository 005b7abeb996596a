"""Columns whose cells are names: classes, and inputs that become one number for each name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from nn_manual.arrays import Array


def name_in(cell: str) -> str:
    """The name in a cell: without blanks around it, and without the zeros of an integer that was written as 5.0."""
    text = cell.strip()
    return text.partition(".")[0] if re.fullmatch(r"[+-]?\d+\.0+", text) else text


class Categories:
    """The names in the cells of a column, and a code for each: 0, 1, ... in the order in which they first occur, or in
    that of the names that are `known` from training. Then there are no others.
    """

    def __init__(self, known: Sequence[str] | None = None) -> None:
        self.is_known = known is not None
        self.codes = {name: code for code, name in enumerate(known or ())}

    def code(self, name: str) -> int | None:
        """The name's code; None for one that isn't known."""
        if self.is_known:
            return self.codes.get(name)
        return self.codes.setdefault(name, len(self.codes))

    @property
    def names(self) -> tuple[str, ...]:
        """The names: in the order of training, or else of the alphabet."""
        return tuple(self.codes if self.is_known else sorted(self.codes))

    def in_order(self, codes: Array) -> Array:
        """The codes of a column, float64, as positions among `names`. NaN, a cell that is empty, stays."""
        position = {name: place for place, name in enumerate(self.names)}
        positions = np.array([*(position[name] for name in self.codes), np.nan])
        return positions[np.where(np.isnan(codes), len(self.codes), codes).astype(np.int64)]


def one_hot(array: Array, columns: Sequence[str], categories: Mapping[str, Sequence[str]]) -> Array:
    """The array (rows, columns), in which each column of names, given by their positions, is replaced by a column for
    each name: 1 where the cell is this name, and else 0. For a cell that is empty, NaN, all of them are NaN.
    """
    if not categories:
        return array
    pieces = []
    for place, column in enumerate(columns):
        piece = array[:, place : place + 1]
        if column in categories:
            hot = (piece == np.arange(len(categories[column]))).astype(array.dtype)
            piece = np.where(np.isnan(piece), piece, hot)
        pieces.append(piece)
    return np.concatenate(pieces, axis=1)
