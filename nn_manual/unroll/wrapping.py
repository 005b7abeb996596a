"""Breaks statements into lines that are short enough."""

from __future__ import annotations

#: The width of the page.
WIDTH = 120


def wrapped(line: str, indent: int) -> list[str]:
    """A statement behind `indent` columns, broken into lines where brackets allow it."""
    width, left = WIDTH - indent, line.partition(" = ")[0]
    if len(line) <= width:
        return [line]
    if ", " in left and "(" not in left and line.find("(") + 12 > width:  # many variables: as a tuple in brackets
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
    """The best space for a break: behind a comma rather than an operator, in as few brackets as possible, far right."""
    found = []
    for place, sign in enumerate(line[: room + 1]):
        depth += (sign in "([") - (sign in ")]")
        if sign == " " and depth and line[place - 1] in ",+-*/@" and place > room // 3:
            found.append((line[place - 1] == ",", -depth, place))
    return max(found)[2] if found else None
