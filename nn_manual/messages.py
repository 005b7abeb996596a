"""What a message may show: one printable line of a sensible length, and the name that was meant."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from itertools import takewhile

#: The longest line of a message, about twelve of a terminal's.
LONGEST_LINE = 1000
#: The longest name or value that a message cites.
LONGEST_VALUE = 60

#: What counts as printable, and shows nothing: Unicode's ignorable characters, fillers and the blank of Braille.
INVISIBLE = frozenset(
    chr(point)
    for first, last in (
        *((0x34F, 0x34F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180D), (0x180F, 0x180F), (0x2800, 0x2800)),
        *((0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0x16FE4, 0x16FE4), (0x1D159, 0x1D159)),
        (0xE0100, 0xE01EF),
    )
    for point in range(first, last + 1)
)


def one_line(text: str, length: int = LONGEST_LINE) -> str:
    """`text` as one line of at most `length` characters, or of three more where it was longer and lost its middle.

    What can't be printed or seen is escaped: line ends, and what moves a terminal's cursor, hides text or turns it
    around; blanks other than the plain one.
    """
    line = printable(text, but="")
    half = length // 2
    return line if len(line) <= length else f"{line[:half]}...{line[-half:]}"


def printable(text: str, but: str = "\n\t") -> str:
    """`text` as a terminal may show it: what can't be printed or seen is escaped, but for some characters."""
    return "".join(c if c in but or _is_seen(c) else c.encode("unicode_escape").decode() for c in text)


def _is_seen(character: str) -> bool:
    return character.isprintable() and character not in INVISIBLE


def first_line(text: str) -> str:
    """The first line of `text` that isn't blank: of what anyone's error says, the others are advice or a listing."""
    return one_line(text.strip().partition("\n")[0])


def quoted(name: str) -> str:
    """A name or a text from a file or a command line, as a message cites it."""
    return one_line(repr(name), LONGEST_VALUE)


def counted(number: int, noun: str, nouns: str = "") -> str:
    """So many of them: "1 class", "2 classes". `nouns` is the plural where it isn't the noun with an s."""
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


def nearest(name: str, known: Collection[str]) -> str | None:
    """The one of the `known` names that was meant by another one: the likest of those that a single slip makes of it,
    or else the likest of all; None where none is near. Upper and lower case are one.
    """
    by_lowercase = {candidate.lower(): candidate for candidate in known}
    lowercase = name[:LONGEST_LINE].lower()
    slips = [candidate for candidate in by_lowercase if _is_one_slip(lowercase, candidate)]
    match = difflib.get_close_matches(lowercase, slips or by_lowercase, n=1, cutoff=0.0 if slips else 0.6)
    return by_lowercase[match[0]] if match else None


def _is_one_slip(name: str, other: str) -> bool:
    """Whether one letter too many, too few or wrong, or two in the wrong order, are all in which these differ: of a
    single letter, any other would be.
    """
    if min(len(name), len(other)) <= 1:
        return False
    start = _num_equal(name, other)
    name, other = name[start:], other[start:]
    end = _num_equal(name[::-1], other[::-1])
    name, other = name[: len(name) - end], other[: len(other) - end]
    return (len(name) <= 1 and len(other) <= 1) or (len(name) == 2 and name == other[::-1])


def _num_equal(name: str, other: str) -> int:
    """How many letters both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(name, other, strict=False)))
