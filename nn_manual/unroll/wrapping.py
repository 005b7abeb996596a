"""Statements on lines that are short enough."""

from __future__ import annotations

#: Columns of the page.
WIDTH = 120


def wrapped(line: str, indent: int) -> list[str]:
    """A statement that stands so far to the right, broken where brackets allow it."""
    width, left = WIDTH - indent, line.partition(" = ")[0]
    if len(line) <= width:
        return [line]
    if ", " in left and "(" not in left and line.find("(") + 12 > width:  # many variables, as a tuple in brackets
        line = f"({left}) = {line[len(left) + 3 :]}"
    lines, depth = list[str](), 0
    while True:
        room = width - 4 * bool(lines)
        place = _break(line, room, depth)
        if len(line) <= room or place is None:
            break
        lines.append(line[:place])
        depth += sum(line[:place].count(sign) for sign in "([") - sum(line[:place].count(sign) for sign in ")]")
        line = line[place + 1 :]
    lines.append(line)
    return [lines[0], *(f"    {each}" for each in lines[1:])]


def _break(line: str, room: int, depth: int) -> int | None:
    """The last blank behind a comma or an operator that stands in as few brackets as any in the second half."""
    found = []
    for place, sign in enumerate(line[: room + 1]):
        depth += (sign in "([") - (sign in ")]")
        if sign == " " and depth and line[place - 1] in ",+-*/@" and place > room // 3:
            found.append((line[place - 1] == ",", -depth, place))
    return max(found)[2] if found else None
