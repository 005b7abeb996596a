"""A config with one mistake in it: a key misspelled, given twice, with a value of another type or out of range."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import yaml

from nn_manual.config.component_names import is_component

#: The rows of a keyboard. A finger that slips lands beside its key, in its row or a row above or below.
ROWS = ("1234567890-", "qwertyuiop", "asdfghjkl", "zxcvbnm_")

#: For each kind of value, some of other kinds.
OTHER_TYPES = {
    "number": ("abc", "true", "{zz: 1}", "[abc]"),
    "bool": ("abc", "1", "[true]", "yes"),
    "text": ("3", "true", "{zz: 1}", "[3]"),
    "list of numbers": ("abc", "true", "{zz: 1}"),
    "list": ("3", "true", "{zz: 1}"),
    "mapping": ("3", "true", "[abc]"),
}
#: A number beyond every range: no size, rate or dimension is so small.
TOO_SMALL = "-7777777"
#: A word that no key takes.
NO_WORD = "zzz"


class Mistake(NamedTuple):
    """A config with a mistake: its kind, its line and column (from 1), the original key, and the whole text."""

    kind: str
    line: int
    column: int
    key: str
    text: str


class Key(NamedTuple):
    """A key, or the name of a component, in a YAML text: its node, the node of its value if there is one, and whether
    it stands in braces.
    """

    node: Any
    value: Any
    in_braces: bool


def keys(text: str) -> Iterator[Key]:
    """The keys of a YAML text, and the names of components that have no keyword arguments."""
    yield from _keys(yaml.compose(text, yaml.SafeLoader))


def _keys(node: Any) -> Iterator[Key]:
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            yield Key(name, value, bool(node.flow_style))
            yield from _keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _keys(item)
    elif is_component(node.value):
        yield Key(node, None, in_braces=False)


def misspelled(text: str, key: Key) -> Iterator[Mistake]:
    """The text with each typo of a key."""
    start, end = key.node.start_mark.index, key.node.end_mark.index
    for typo in typos(key.node.value):
        yield _mistake("misspelled", key, text[:start] + typo + text[end:])


def typos(name: str) -> list[str]:
    """The names that one slip of a finger makes of a name: a letter is missing, two letters are in the wrong order, a
    neighbour of the right letter stands in its place, or the letter or a neighbour is typed once more.
    """
    found = {name[:index] + name[index + 1 :] for index in range(len(name))}
    for index, (first, second) in enumerate(pairwise(name)):
        found.add(name[:index] + second + first + name[index + 2 :])
    for index, letter in enumerate(name):
        for other in neighbours(letter):
            found.add(name[:index] + other + name[index + 1 :])
        for other in letter + neighbours(letter):
            found |= {name[:index] + other + name[index:], name[: index + 1] + other + name[index + 1 :]}
    return sorted(found - {name, ""})


def neighbours(letter: str) -> str:
    """The keys around a letter's key, in the letter's case."""
    places = {key: (row, column) for row, keys in enumerate(ROWS) for column, key in enumerate(keys)}
    row, column = places[letter.lower()]
    near = [key for key, place in places.items() if abs(place[0] - row) <= 1 and abs(place[1] - column) <= 1]
    joined = "".join(key for key in near if key != letter.lower())
    return joined.upper() if letter.isupper() else joined


def duplicated(text: str, key: Key) -> Iterator[Mistake]:
    """The text with a key given twice. The second one, which is to blame, stands where the key stood, or below it."""
    if key.value is None:
        return
    start, mark = key.node.start_mark.index, key.node.start_mark
    first = f"{key.node.value}: 1" + (", " if key.in_braces else "\n" + " " * mark.column)
    mistake = _mistake("duplicated", key, text[:start] + first + text[start:])
    yield mistake._replace(
        line=mistake.line + (not key.in_braces), column=mistake.column + len(first) * key.in_braces
    )


def of_another_type(text: str, key: Key) -> Iterator[Mistake]:
    """The text with values of other types in the place of a key's."""
    if key.value is not None:
        for value in OTHER_TYPES[_type_of(key.value)]:
            yield _mistake("of another type", key, _replaced(text, key, value))


def out_of_range(text: str, key: Key) -> Iterator[Mistake]:
    """The text with a number or a word out of range in the place of a key's."""
    if key.value is None:
        return
    kind = _type_of(key.value)
    if kind == "number":
        yield _mistake("out of range", key, _replaced(text, key, TOO_SMALL))
    elif kind == "list of numbers":
        yield _mistake("out of range", key, _replaced(text, key, str([int(TOO_SMALL)] * len(key.value.value))))
    elif kind == "text" and "/" not in key.value.value:  # every path may be one
        yield _mistake("out of range", key, _replaced(text, key, NO_WORD))


def _type_of(node: Any) -> str:
    if isinstance(node, yaml.ScalarNode):
        if node.tag == "tag:yaml.org,2002:bool":
            return "bool"
        return "number" if node.value.lstrip("+-")[:1].isdigit() else "text"
    if isinstance(node, yaml.MappingNode):
        return "mapping"
    return "list of numbers" if {_type_of(item) for item in node.value} == {"number"} else "list"


def _replaced(text: str, key: Key, value: str) -> str:
    end = len(text[: key.value.end_mark.index].rstrip())  # a block ends where the next one begins
    return f"{text[: key.node.end_mark.index]}: {value}{text[end:]}"


def _mistake(kind: str, key: Key, text: str) -> Mistake:
    mark = key.node.start_mark
    return Mistake(kind, mark.line + 1, mark.column + 1, key.node.value, text)
