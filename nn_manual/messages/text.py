"""What a message may show: one printable line of a sensible length, and the name that was meant."""

from __future__ import annotations

import difflib
import os
import shlex
import sys
import textwrap
from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import TextIO

#: Columns of a terminal.
WIDTH = 80
#: The longest line of a message: about twelve lines of a terminal.
LONGEST_LINE = 1000
#: The longest name or value that a message cites.
LONGEST_VALUE = 60

#: Characters that Python calls printable and that show nothing: ignorable ones, fillers and the blank of Braille.
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
    """`text` as one line. Where it has more than `length` characters, "..." takes the place of its middle: so it has
    three characters more at most.

    Characters that can't be printed or seen are escaped: line ends, blanks other than the plain one, and all that
    moves a terminal's cursor, hides text or reverses it.
    """
    line = printable(text, but="")
    half = length // 2
    return line if len(line) <= length else f"{line[:half]}...{line[-half:]}"


def wrapped(text: str) -> list[str]:
    """The lines of a text for a terminal. All but the first are indented, so that no word of somebody's exception can
    pass for the beginning of a line of ours.
    """
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def noted(text: str, stream: TextIO) -> str:
    """A note as the stream gets it: wrapped for a terminal, and elsewhere one line, which a search finds."""
    return in_lines(one_line(text), stream)


def in_lines(text: str, stream: TextIO) -> str:
    """Printable lines as the stream gets them: those that are longer than a terminal's are wrapped for one."""
    if not stream.isatty():
        return text
    return "\n".join("\n".join(wrapped(line)) for line in text.split("\n"))


def print_note(text: str) -> None:
    """Print a note on standard error."""
    print(noted(text, sys.stderr), file=sys.stderr)


def printable(text: str, but: str = "\n\t") -> str:
    """`text` as a terminal may show it: characters that can't be printed or seen are escaped, except those in `but`."""
    return "".join(c if c in but or _is_seen(c) else c.encode("unicode_escape").decode() for c in text)


def _is_seen(character: str) -> bool:
    return character.isprintable() and character not in INVISIBLE


def first_line(text: str) -> str:
    """The first line of `text` that isn't blank. In the text of an error, the others are advice or a listing."""
    return one_line(text.strip().partition("\n")[0])


def quoted(name: str) -> str:
    """A name or a text from a file or a command line, as a message cites it."""
    return one_line(repr(name), LONGEST_VALUE)


def shell_word(path: str | os.PathLike[str]) -> str:
    """A path as a command has it that somebody copies into a shell."""
    if sys.platform == "win32":  # its shells don't take the quotes of the others
        from subprocess import list2cmdline  # heavy, and needed here alone

        return list2cmdline([os.fspath(path)])
    return shlex.quote(os.fspath(path))


def counted(number: int, noun: str, nouns: str = "") -> str:
    """A number with its noun: "1 class", "2 classes". `nouns` is the plural where it isn't the noun with an s."""
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


def listed(names: Sequence[str], separator: str = ", ") -> str:
    """Names in a sentence: "a, b and c"; with "; " as the separator, "a, b; and c"."""
    *others, last = names
    before_last = separator if separator == "; " else " "
    return f"{separator.join(others)}{before_last}and {last}" if others else last


def nearest(name: str, known: Collection[str]) -> str | None:
    """The one of the `known` names that was probably meant by `name`; None where none is near. Names that differ from
    it by a single slip come first, and of several the most similar one. Upper and lower case are the same.
    """
    by_lowercase = {candidate.lower(): candidate for candidate in known}
    lowercase = name[:LONGEST_LINE].lower()
    slips = [candidate for candidate in by_lowercase if _is_one_slip(lowercase, candidate)]
    match = difflib.get_close_matches(lowercase, slips or by_lowercase, n=1, cutoff=0.0 if slips else 0.6)
    return by_lowercase[match[0]] if match else None


def advice(name: str, known: Collection[str]) -> str:
    """The hint that ends an error about an unknown name: the nearest one, or all where none is near."""
    meant = nearest(name, known)
    if meant is not None:
        return f"; did you mean {meant!r}?"
    return f"; known: {', '.join(known)}" if known else "; it has none"


def _is_one_slip(name: str, other: str) -> bool:
    """Whether the two names differ by one slip: one letter too many, too few or wrong, or two letters in the wrong
    order. A name of a single letter never does: every other letter would be a slip of it.
    """
    if min(len(name), len(other)) <= 1:
        return False
    start = _num_equal(name, other)
    name, other = name[start:], other[start:]
    end = _num_equal(name[::-1], other[::-1])
    name, other = name[: len(name) - end], other[: len(other) - end]
    return (len(name) <= 1 and len(other) <= 1) or (len(name) == 2 and name == other[::-1])


def _num_equal(name: str, other: str) -> int:
    """How many letters at their beginning are the same in both."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(name, other, strict=False)))
