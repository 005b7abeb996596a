"""YAML text as a tree in which every value knows where it was written.

Only YAML's events are used, never its constructors: those run code for tags, let the last of two equal keys win, and
read `1e-3` as text, `no` as false, `010` as 8 and `1:30` as 90. Here plain text is

    true, false           a bool, in no other spelling
    null, ~ or nothing    None
    10, -3                an int, where 64 bits hold it; a float beyond that
    0.5, .5, 1e-3, 1e3    a float, where it is finite, and is 0 only where 0 is written
    anything else         text, and so are 010, 1:30, 0x10, 1_000, .inf, yes, no, on, off and all that is quoted

so that what YAML would silently turn into something else is refused wherever a number or a bool is expected.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import yaml

from nn_manual.errors import ConfigError
from nn_manual.messages.text import counted, quoted
from nn_manual.opening import open_file

#: A config of a thousand layers takes 50 kB and a fifth of a second; anything beyond this is not a config.
MAX_BYTES = 256 * 1024
#: A Sequential takes two levels; reading recurses once a level, and Python's own limit is 1,000 calls.
MAX_DEPTH = 64
#: Nobody reads more errors than these.
MAX_ERRORS = 100

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,18})")
_FLOAT = re.compile(r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")


class Place(NamedTuple):
    """Where something was written: line and column of a file, from 1; or an override, at line 0 and its number."""

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


#: Makes a Place of a line and a column.
Locate: TypeAlias = Callable[[int, int], Place]


class Errors:
    """The errors found so far: a config is looked at to its end before any is raised."""

    def __init__(self) -> None:
        self.found: dict[tuple[Place, str], None] = {}  # a set in the order in which they were found

    def add(self, place: Place, message: str) -> None:
        """Record one error, once."""
        self.found[place, message] = None

    def raise_if_any(self) -> None:
        """Raise ConfigError, one line an error: the file's from top to bottom, then the overrides' in their order."""
        if self.found:
            ordered = sorted(self.found, key=lambda error: (error[0].line == 0, *error[0][1:]))
            lines = [f"{place}: {message}" for place, message in ordered[:MAX_ERRORS]]
            more = len(ordered) - len(lines)
            raise ConfigError(*lines, *([f"and {counted(more, 'more error')}"] if more else []))


@dataclass
class Node:
    """A value: a scalar, a list of Nodes or a dict of Nodes by key.

    `place` is the value's own, `name_place` that of the key before it; a list's item has no key, its two are one.
    `is_faulty` marks a Repeat that can't be expanded: what is wrong with it is among the errors.
    """

    value: Any
    place: Place
    name_place: Place
    is_faulty: bool = False

    def copied(self) -> Node:
        """Nodes of their own at the same places. copy.deepcopy takes 20 times as long: that is felt in a Repeat."""
        value = self.value
        if isinstance(value, dict):
            value = {key: child.copied() for key, child in value.items()}
        elif isinstance(value, list):
            value = [child.copied() for child in value]
        return Node(value, self.place, self.name_place, self.is_faulty)


def read_file(path: str | os.PathLike[str]) -> str:
    """The text of a config. Raises ConfigError where there is no readable one."""
    try:
        with open_file(path) as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        raise ConfigError(f"{os.fspath(path)}: {getattr(error, 'strerror', None) or error}") from None
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{os.fspath(path)}: is larger than {MAX_BYTES} bytes, the most that a config may have")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        place = Place(os.fspath(path), *_end_of(content[: error.start].decode()))
        raise ConfigError(f"{place}: is not UTF-8: {error.reason} {content[error.start]:#04x}") from None


def parse_scalar(text: str) -> Any:
    """What unquoted text stands for, by the table at the top."""
    if text in ("", "~", "null"):
        return None
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text) and -(2**63) <= int(text) < 2**63:
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(float(text)) and not becomes_zero(text):
        return float(text)
    return text


def read_tree(text: str, locate: Locate, errors: Errors, scalar: Callable[[str], Any] = parse_scalar) -> Node | None:
    """The tree of a YAML document; None where the text has no tree. All that is wrong is recorded in `errors`. `scalar`
    says what unquoted text stands for.
    """
    try:
        loader: Any = yaml.SafeLoader(text)  # Any: its stubs leave the events' methods untyped
        try:
            return _Reader(loader, locate, errors, scalar).document()
        except (ValueError, OverflowError) as error:  # PyYAML's chr() of "\U00110000", its int() of %YAML 9999...
            mark, message = loader.get_mark(), str(error)
    except yaml.MarkedYAMLError as error:
        mark, message = error.problem_mark, " ".join(filter(None, (error.problem, error.context)))
    except yaml.reader.ReaderError as error:
        errors.add(locate(*_end_of(text[: error.position])), f"YAML doesn't allow {chr(error.character)!r}")
        return None
    errors.add(locate(mark.line + 1, mark.column + 1), message)
    return None


def plain(node: Node) -> Any:
    """The value without its places."""
    if isinstance(node.value, list):
        return [plain(item) for item in node.value]
    if isinstance(node.value, dict):
        return {key: plain(item) for key, item in node.value.items()}
    return node.value


def becomes_zero(text: str) -> bool:
    """Whether the text is a number, not 0, that is so near to 0 that float64 rounds it to 0."""
    return bool(_FLOAT.fullmatch(text) and not float(text) and re.match(r"[^eE]*[1-9]", text))


def becomes_infinite(text: str) -> bool:
    """Whether the text is a number that is too large for float64."""
    return bool(_FLOAT.fullmatch(text) and math.isinf(float(text)))


def _end_of(text: str) -> tuple[int, int]:
    """Line and column of the character after `text`."""
    return text.count("\n") + 1, len(text) - text.rfind("\n")


class _Reader:
    """Builds the tree out of the events, by recursive descent."""

    def __init__(self, loader: Any, locate: Locate, errors: Errors, scalar: Callable[[str], Any]) -> None:
        self.loader, self.locate, self.errors, self.scalar = loader, locate, errors, scalar

    def document(self) -> Node | None:
        """The only document in the stream."""
        self.loader.get_event()  # the stream's start
        if self.loader.check_event(yaml.StreamEndEvent):
            self.errors.add(self.locate(1, 1), "is empty")
            return None
        self.loader.get_event()  # the document's start
        root = self.node()
        self.loader.get_event()  # the document's end
        if not self.loader.check_event(yaml.StreamEndEvent):
            self.errors.add(self.place(self.loader.peek_event()), "a second document begins; a config is one document")
        return root

    def node(self, depth: int = 0, name_place: Place | None = None) -> Node:
        """The value that the next events describe."""
        event = self.loader.get_event()
        if depth > MAX_DEPTH:
            raise yaml.MarkedYAMLError(problem=f"nested more than {MAX_DEPTH} deep", problem_mark=event.start_mark)
        place = self.place(event)
        self.refuse_features(event)
        value: Any
        if isinstance(event, yaml.SequenceStartEvent):
            value = self.items(depth + 1)
        elif isinstance(event, yaml.MappingStartEvent):
            value = self.entries(depth + 1)
        elif isinstance(event, yaml.ScalarEvent):
            value = event.value if event.style else self.scalar(event.value)  # a style is a kind of quotes
        else:
            value = f"*{event.anchor}"  # an alias, refused above: text, so that the rest is still looked at
        return Node(value, place, name_place or place)

    def items(self, depth: int) -> list[Node]:
        """A list's items, up to its end."""
        items = []
        while not self.loader.check_event(yaml.SequenceEndEvent):
            items.append(self.node(depth))
        self.loader.get_event()
        return items

    def entries(self, depth: int) -> dict[str, Node]:
        """A mapping's entries, up to its end; of two equal keys the first counts."""
        entries: dict[str, Node] = {}
        while not self.loader.check_event(yaml.MappingEndEvent):
            event = self.loader.peek_event()
            place = self.place(event)
            self.node(depth)  # the key: only its text, as it is written, counts
            value = self.node(depth, place)
            if not isinstance(event, yaml.ScalarEvent):
                self.errors.add(place, "a key must be text")
            elif event.value in entries:
                first = entries[event.value].name_place
                self.errors.add(place, f"duplicate key {quoted(event.value)}, already given at {first}")
            else:
                entries[event.value] = value
        self.loader.get_event()
        return entries

    def place(self, event: Any) -> Place:
        """Where an event begins."""
        return self.locate(event.start_mark.line + 1, event.start_mark.column + 1)

    def refuse_features(self, event: Any) -> None:
        """Record what a config doesn't need and what might hide something: anchors (with them a file of 300 bytes grows
        to gigabytes), tags (they run constructors), and text that can't be printed.
        """
        if isinstance(event, yaml.AliasEvent):
            self.errors.add(self.place(event), f"alias *{event.anchor} is not supported: write the value out")
        elif event.anchor is not None:
            self.errors.add(self.place(event), f"anchor &{event.anchor} is not supported")
        if getattr(event, "tag", None) is not None:
            self.errors.add(self.place(event), f"tag {quoted(event.tag)} is not supported")
        if isinstance(event, yaml.ScalarEvent) and not event.value.isprintable():
            self.errors.add(self.place(event), f"{quoted(event.value)} is not one line of printable characters")
