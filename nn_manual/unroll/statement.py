"""Statement: a line of the step; and lines that repeat become loops."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from nn_manual.trace.observed import MethodCall
from nn_manual.unroll.loops import CodeLine, rolled
from nn_manual.unroll.syntax import Name, Parts


class Statement(NamedTuple):
    """A line of the step: the index of its operation (`place`); the call of a layer or the loss that it stands in, None
    if there is none; its owner and the owner's method; and its text in `parts`.

    `defines` is the variable that it makes. `depth` is the number of loops around it. `member` is the number of the
    optimizer's group that it moves. A line that `may_wait` can stand anywhere before its use. A line that `is_called`
    calls a function.
    """

    place: int
    call: MethodCall | None
    owner: str
    method: str
    parts: Parts
    defines: Name | None = None
    depth: int = 0
    member: int = 0
    may_wait: bool = False
    is_called: bool = False


def in_loops(lines: list[Statement], over_time: set[int]) -> Iterator[Statement]:
    """The lines of each layer, with loops for lines that repeat. `over_time` are the operations in loops over time."""
    for _, own in itertools.groupby(lines, key=lambda line: (id(line.call), line.owner, line.member)):
        yield from _unpacked(_late(list(_rolled(list(own), over_time))))


def _rolled(lines: list[Statement], over_time: set[int]) -> Iterator[Statement]:
    by_parts = {line.parts: line for line in reversed(lines)}
    counters = "t" if any(line.place in over_time for line in lines) else "itk"
    for item in rolled([(CodeLine(0, line.parts),) for line in lines], counters):
        for depth, parts in item:
            like = by_parts.get(parts, lines[0]._replace(may_wait=False, defines=None))
            yield like._replace(parts=parts, depth=depth)


def _unpacked(lines: list[Statement]) -> list[Statement]:
    """An np.empty whose parts get names in lines of their own becomes one assignment to all these names."""
    for line in lines:
        found = re.match(r"np\.empty\(\((\d+), ", str(line.parts[-1])) if len(line.parts) == 3 else None
        if found is None:
            continue
        parts = {own.parts[3]: own for own in lines if own.parts[1:3] == (" = ", line.parts[0]) and len(own.parts) == 4}
        uses = [own for own in lines if line.parts[0] in own.parts]
        if list(map(str, parts)) != [f"[{n}]" for n in range(int(found[1]))] or len(uses) != len(parts) + 1:
            continue
        names = [part for own in parts.values() for part in (own.parts[0], ", ")][:-1]
        together = line._replace(parts=(*names, *line.parts[1:]))
        return _unpacked([own if own is not line else together for own in lines if own not in parts.values()])
    return lines


def _late(lines: list[Statement]) -> list[Statement]:
    """The lines, with those that may wait as late as possible."""
    for place in reversed(range(len(lines))):
        line = lines[place]
        if not line.may_wait or line.depth:
            continue
        after = place + 1
        while after < len(lines):
            end = after + 1
            while end < len(lines) and lines[end].depth:  # a loop stays in one piece
                end += 1
            if any(line.defines in other.parts for other in lines[after:end]):
                break
            after = end
        lines[place:after] = [*lines[place + 1 : after], line]
    return lines
