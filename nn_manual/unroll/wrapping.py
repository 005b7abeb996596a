"""Statements on lines that are short enough."""

from __future__ import annotations

#: Columns of the page.
WIDTH = 120


def wrapped(line: str, indent: int) -> list[str]:
    """A statement that stands so far to the right, broken where brackets allow it."""
    width, left = WIDTH - indent, line.partition(" = ")[0]
    if len(line) <= width:
        return [line]
    if ", " in left and "(" not in left and len(left) > width - 3:  # many variables, as a tuple in brackets
        line = f"({left}) = {line[len(left) + 3 :]}"
    lines, start, last, depth = list[str](), 0, 0, 0
    for place, sign in enumerate(line):
        depth += (sign in "([") - (sign in ")]")
        room = width - (4 if lines else 0)
        if place - start >= room and last > start:
            lines.append(line[start:last])
            start = last + 1
        if sign == " " and depth and line[place - 1] in ",+-*/@":
            last = place
    lines.append(line[start:])
    return [lines[0], *(f"    {each}" for each in lines[1:])]
