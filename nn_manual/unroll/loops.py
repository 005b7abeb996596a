"""Finds loops in lines: lines that repeat, except for numbers that grow evenly, become one loop."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from nn_manual.unroll.syntax import NUMBER, Name, Parts, followed_alone

#: The values of one number in a repeated text, one value per repetition.
Column: TypeAlias = tuple[int, ...]

#: A loop needs so many repetitions, and a repeated piece has at most so many items.
LEAST, LONGEST = 3, 120


class CodeLine(NamedTuple):
    """A line, and how deep in loops it is."""

    depth: int
    parts: Parts


class ForHeader(NamedTuple):
    """The text between `for` and the colon, and the text that replaces each number that varies, by its place."""

    header: str
    numbers: dict[int, str]


def rolled(items: Sequence[tuple[CodeLine, ...]], counters: str = "itk") -> list[tuple[CodeLine, ...]]:
    """The lines, with loops in the place of lines that repeat, innermost loops first. `counters` are the letters for
    counters.
    """
    found = list(items)
    while True:
        shorter = _roll_once(found, counters)
        if shorter is None:
            return found
        found = shorter


def in_list(elements: Sequence[Parts]) -> Parts | None:
    """The elements of a list as one element with `for`; None if there are too few, or if more differs than numbers."""
    if len(elements) < 2:
        return None
    items = [(CodeLine(0, parts),) for parts in elements]
    if len({_skeleton(item) for item in items}) > 1:
        return None
    loop = _fitted([_numbers(item) for item in items], items[0], "itk")
    if loop is None or (len(elements) <= LEAST and not loop.header.startswith("start")):
        return None
    ((_, parts),) = _replaced(items[0], loop.numbers)
    return (*parts, f" for {loop.header}")


def _roll_once(items: list[tuple[CodeLine, ...]], counters: str) -> list[tuple[CodeLine, ...]] | None:
    kinds: dict[object, int] = {}
    ids = [kinds.setdefault(_skeleton(item), len(kinds)) for item in items]
    for length in range(1, min(len(items) // 2, LONGEST) + 1):
        run = 0
        for place in range(len(items) - length, -1, -1):
            same = place + length < len(items) and ids[place] == ids[place + length]
            run = run + 1 if same else 0
            starts = place - 1 < 0 or ids[place - 1] != ids[place - 1 + length]
            if run >= length and starts:
                for count in range(run // length + 1, 1, -1):
                    made = _loop(items[place : place + count * length], length, count, counters)
                    if made is not None:
                        return [*items[:place], made, *items[place + count * length :]]
    return None


def _loop(items: list[tuple[CodeLine, ...]], length: int, count: int, counters: str) -> tuple[CodeLine, ...] | None:
    """The repetitions as a loop; None if their numbers don't allow it or if it isn't shorter."""
    repeated = [tuple(itertools.chain(*items[n * length : (n + 1) * length])) for n in range(count)]
    size = len(repeated[0])
    if count * size < size + 3 and count < LEAST:
        return None
    loop = _fitted([_numbers(lines) for lines in repeated], repeated[0], counters)
    if loop is None:
        return None
    body = _replaced(repeated[0], loop.numbers)
    return (CodeLine(0, (f"for {loop.header}:",)), *(CodeLine(line.depth + 1, line.parts) for line in body))


def _skeleton(item: tuple[CodeLine, ...]) -> tuple[object, ...]:
    return tuple(
        (line.depth, tuple(part if isinstance(part, Name) else NUMBER.sub("#", part) for part in line.parts))
        for line in item
    )


def _texts(item: Iterable[CodeLine]) -> Iterator[str]:
    return (part for line in item for part in line.parts if not isinstance(part, Name))


def _numbers(item: tuple[CodeLine, ...]) -> list[str]:
    return [number for text in _texts(item) for number in NUMBER.findall(text)]


def _replaced(item: tuple[CodeLine, ...], numbers: dict[int, str]) -> tuple[CodeLine, ...]:
    """The lines with the numbers at these places replaced."""
    place = itertools.count()

    def number(match: re.Match[str]) -> str:
        wanted = numbers.get(next(place), match[0])
        is_plain = re.fullmatch(r"\w+", wanted) is not None
        return wanted if is_plain or followed_alone(match.string, match.start(), match.end()) else f"({wanted})"

    return tuple(
        CodeLine(line.depth, tuple(part if isinstance(part, Name) else NUMBER.sub(number, part) for part in line.parts))
        for line in item
    )


def _fitted(numbers: list[list[str]], item: tuple[CodeLine, ...], counters: str) -> ForHeader | None:
    """The header of the loop, and the expression of each number in it; None if there is none."""
    columns: dict[int, Column] = {}
    for place, values in enumerate(zip(*numbers, strict=True)):
        if len(set(values)) > 1:
            if not all(value.isdigit() for value in values):
                return None
            columns[place] = tuple(map(int, values))
    if not columns:
        return None
    taken = set(re.findall(r"\b[a-z]\w*\b", " ".join(_texts(item))))
    pairs = _slices(item) & columns.keys()
    for fit in (_in_pieces, functools.partial(_in_steps, counters), _in_grid, _listed):
        loop = fit(columns, pairs, taken)
        if loop is not None:
            return loop
    return None


def _slices(item: tuple[CodeLine, ...]) -> set[int]:
    """The places of numbers that begin a slice `start:stop`."""
    found, place = set(), 0
    for text in _texts(item):
        matches = list(NUMBER.finditer(text))
        for own, after in itertools.pairwise(matches):
            if text[own.end() : after.start()] == ":":
                found.add(place + matches.index(own))
        place += len(matches)
    return found


def _in_pieces(columns: dict[int, Column], pairs: set[int], taken: set[str]) -> ForHeader | None:
    """Consecutive slices, of which the last may be shorter: `for start in range(0, 64, 37)`."""
    for place in sorted(pairs):
        starts, stops = columns[place], columns.get(place + 1, ())
        if not stops or "start" in taken:
            continue
        size, total = stops[0] - starts[0], stops[-1]
        count = len(starts)
        pieces = [(starts[0] + n * size, min(starts[0] + (n + 1) * size, total)) for n in range(count)]
        if pieces != list(zip(starts, stops, strict=True)) or starts[0] + count * size - total >= size:
            continue
        numbers = {}
        for other, column in columns.items():
            if column == starts:
                numbers[other] = "start"
            elif column == stops:
                numbers[other] = f"start + {size}"
            elif all(value % (stop - start) == 0 and value // (stop - start) == column[0] // size
                     for value, start, stop in zip(column, starts, stops, strict=True)):  # fmt: skip
                times = column[0] // size
                numbers[other] = f"{f'{times} * ' * (times > 1)}min({size}, {total} - start)"
            else:
                return None
        return ForHeader(f"start in range({starts[0]}, {total}, {size})", numbers)
    return None


def _in_steps(counters: str, columns: dict[int, Column], pairs: set[int], taken: set[str]) -> ForHeader | None:  # noqa: ARG001 - as others
    """Numbers that grow or fall evenly: `for t in range(64)`."""
    slopes = {place: column[1] - column[0] for place, column in columns.items()}
    count = len(next(iter(columns.values())))
    if any(column != tuple(column[0] + n * slopes[place] for n in range(count)) for place, column in columns.items()):
        return None
    name = _free(counters, taken)
    least = min(slopes.values(), key=lambda slope: (abs(slope), slope))
    if count < LEAST or not name:
        return None
    if -1 in slopes.values():  # it counts down
        low = min(column[-1] for place, column in columns.items() if slopes[place] == -1)
        header = f"{name} in reversed(range({f'{low}, ' * (low > 0)}{low + count}))"
        numbers = {
            place: _sum([(name, -slopes[place])], column[0] + slopes[place] * (low + count - 1))
            for place, column in columns.items()
        }
        return ForHeader(header, numbers) if all(numbers.values()) else None
    low = min((column[0] for place, column in columns.items() if slopes[place] == 1), default=0)
    if least < 0:
        return None
    header = f"{name} in range({f'{low}, ' * (low > 0)}{low + count})"
    numbers = {
        place: _sum([(name, slopes[place])], column[0] - slopes[place] * low) for place, column in columns.items()
    }
    return ForHeader(header, numbers) if all(numbers.values()) else None


def _in_grid(columns: dict[int, Column], pairs: set[int], taken: set[str]) -> ForHeader | None:  # noqa: ARG001
    """The places of a window, row by row: `for i, j in np.ndindex(3, 3)`."""
    count = len(next(iter(columns.values())))
    outer, inner = _free("iku", taken), _free("jlv", taken)
    for width in range(2, count // 2 + 1):
        if count % width or not outer or not inner:
            continue
        numbers = {}
        for place, column in columns.items():
            down, right = column[width] - column[0], column[1] - column[0]
            even = tuple(column[0] + down * (n // width) + right * (n % width) for n in range(count))
            if even != column or down < 0 or right < 0:
                break
            numbers[place] = _sum([(outer, down), (inner, right)], column[0])
        else:
            return ForHeader(f"{outer}, {inner} in np.ndindex({count // width}, {width})", numbers)
    return None


def _listed(columns: dict[int, Column], pairs: set[int], taken: set[str]) -> ForHeader | None:
    """Any numbers: `for start, stop in ((0, 4), (9, 16))`."""
    distinct = list(dict.fromkeys(columns.values()))
    count = len(distinct[0])
    names = ["start", "stop"] if pairs and len(distinct) == 2 else [_free(letters, taken) for letters in "abcdefg"]
    names = [name for name in names if name]
    if count <= LEAST or len(distinct) > len(names) or taken & set(names[: len(distinct)]):
        return None
    names = names[: len(distinct)]
    shown = ", ".join(str(row) if len(row) > 1 else str(row[0]) for row in zip(*distinct, strict=True))
    numbers = {place: names[distinct.index(column)] for place, column in columns.items()}
    return ForHeader(f"{', '.join(names)} in ({shown})", numbers)


def _free(letters: str, taken: set[str]) -> str:
    return next((letter for letter in letters if letter not in taken), "")


def _sum(terms: list[tuple[str, int]], rest: int) -> str:
    """A sum as a text: `2 * i + j + 3`."""
    shown = [name if factor == 1 else f"{factor} * {name}" for name, factor in terms if factor]
    if rest < 0:
        return f"{' + '.join(shown)} - {-rest}"
    return " + ".join([*shown, *([str(rest)] if rest else [])])
