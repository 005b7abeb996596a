"""The table of a report: a row for each tensor that was compared, for a terminal and for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from nn_manual.check.compare.comparison import Comparison
from nn_manual.messages import notebook
from nn_manual.messages.text import WIDTH

#: The name of a tensor, its shape, its figures, and what is said of them.
Cells: TypeAlias = tuple[str, ...]

#: The headings of the figures, and in a terminal the width of each.
FIGURES = {"absolute": 9, "relative": 9, "allowed": 8, "ULPs": 8}
HEADINGS = ("tensor", "shape", *FIGURES, "")
#: What is said of a tensor that is beyond its tolerance.
WRONG, ROUNDING = "WRONG", "rounding"


def cells_of(c: Comparison, *, is_rounding: bool) -> Cells:
    """The row of a tensor; `is_rounding` says that rounding is why it is beyond its tolerance, if it is."""
    said = "" if c.passed else ROUNDING if is_rounding else WRONG
    shape = "x".join(map(str, c.shape)) or "scalar"
    return (c.name, shape, *figures(c.absolute, c.relative, c.tolerance, c.ulps), said)


def figures(absolute: float, relative: float, tolerance: float, ulps: float) -> Cells:
    """The figures of a tensor as texts."""
    return f"{absolute:.1e}", f"{relative:.1e}", f"{tolerance:.1e}", f"{ulps:.3g}"


def in_terminal(rows: Sequence[Cells]) -> list[str]:
    """The lines of the table: names are aligned to the left, numbers to the right. A name that leaves too little room
    for the numbers has a line of its own.
    """
    rows = [HEADINGS, *rows]
    shape, last = (max(len(row[column]) for row in rows) for column in (1, -1))
    widths = (max(shape, len("scalar")), *FIGURES.values())
    room = WIDTH - sum(widths) - len(widths) - (last + 1 if last else 0)
    name = max((len(row[0]) for row in rows if len(row[0]) <= room), default=0)
    lines = []
    for first, *others, said in rows:
        right = (f"{cell:>{width}}" for cell, width in zip(others, widths, strict=True))
        if len(first) > name:
            lines.append(first)
            first = ""
        lines.append(" ".join([f"{first:{name}}", *right, said]).rstrip())
    return lines


def in_notebook(rows: Sequence[Cells], headings: Sequence[str] = HEADINGS) -> str:
    """The table as HTML, with the wrong rows marked."""
    alignments = f"<{'>' * (len(headings) - 2)}<"
    return notebook.table(headings, [notebook.Row(row, row[-1] == WRONG) for row in rows], alignments)


def worst_place(failure: Comparison) -> list[str]:
    """The index where a tensor is furthest off, and both values, below each other."""
    place = failure.name + (f"[{', '.join(map(str, failure.index))}]" if failure.index else "")
    width = max(len(place), len(failure.origin))
    return [f"{place:>{width}} is {failure.ours!r}", f"{failure.origin:>{width}}    {failure.reference!r}"]
