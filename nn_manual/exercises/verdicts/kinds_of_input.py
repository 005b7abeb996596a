"""On which kinds of input something is wrong, and on which it is right, in a sentence."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from nn_manual.messages.text import listed

#: At most so many kinds are listed.
LISTED = 5
_SIZES = re.compile(r", shape \([\d, ]+\)")
_BRACKETS = re.compile(r"\([^()]*\)")
#: A setting in the text of a component: dilation=2, axis=(0, 2).
_SETTING = re.compile(r"\b(?P<name>\w+)=(?:\([^()]*\)|\[[^\[\]]*\]|[^,()\[\]]+)")


class Sayings(NamedTuple):
    """How a sentence begins about what is wrong, and one about the others; and what all inputs are called."""

    wrong: str = "It is wrong"
    others: str = "It is right"
    every: str = "every input"

    def at(self, where: str) -> Sayings:
        """The same of a part of the inputs: "There it is wrong"."""
        return Sayings(f"{where} {self.wrong[:1].lower()}{self.wrong[1:]}", self.others)


def where_wrong(
    inputs: Sequence[tuple[str, str]], wrong: Collection[int], asked: Sequence[int], say: Sayings
) -> str:
    """For example "It is wrong on tied input. It is right on random input and negative input." `inputs` are settings
    and kinds, `wrong` and `asked` places in them.

    The inputs are told apart by what is special about them, by the value of a setting, or by all settings: the way with
    the fewest groups of which each is all wrong or all right. Where there is none, it is said which setting all wrong
    inputs have, or which is right, and then how often each kind is wrong.
    """
    ways = _Ways(inputs, wrong, asked)
    if ways.tells_apart:
        return ways.told(say)
    places = ways.places
    alone = [place for place, own in places.items() if own.issuperset(wrong) and len(own) < len(asked)]
    if alone:
        place = min(alone, key=lambda place: len(places[place]))
        there = _Ways(inputs, wrong, sorted(places[place]))
        return f"{say.wrong} {place} alone. {there.told(say.at('There'))}"
    free: list[str] = []
    others = {*asked}
    for place in sorted(places, key=lambda place: -len(places[place])):
        if places[place] & others and places[place].isdisjoint(wrong):
            free.append(place)
            others -= places[place]
    if not free:
        return ways.told(say)
    elsewhere = _Ways(inputs, wrong, sorted(others))
    return f"{say.others} {_listed(free)}. {elsewhere.told(say.at('Elsewhere'))}"


class _Ways:
    """Ways to tell some of the inputs apart, as groups with a name of which each input is wrong or not."""

    def __init__(self, inputs: Sequence[tuple[str, str]], wrong: Collection[int], asked: Sequence[int]) -> None:
        kinds = {i: _SIZES.sub(", other sizes", inputs[i][1]) for i in asked}
        settings = {i: inputs[i][0] for i in asked}
        values = _with_value(settings)
        wholes = {i: _whole(kind) for i, kind in kinds.items()}
        names = [*_by_part(kinds), wholes, *(_by_value(asked, value, own) for value, own in values.items()), settings]
        self._groups = [_groups(way, wrong) for way in names]
        #: The inputs that have a setting, or all settings, in common.
        self.places = {f"with {value}": own for value, own in values.items()}
        self.places |= {f"on {one}": {i for i in asked if settings[i] == one} for one in settings.values()}
        self._is_everywhere = {*asked} <= {*wrong}

    @property
    def _pure(self) -> list[dict[str, list[bool]]]:
        """The ways of which each group is all wrong or all right."""
        return [ways for ways in self._groups if all(all(group) or not any(group) for group in ways.values())]

    @property
    def tells_apart(self) -> bool:
        """Whether there is such a way."""
        return bool(self._pure)

    def told(self, say: Sayings) -> str:
        """The groups that are wrong, and those that are right."""
        if self._is_everywhere:
            return f"{say.wrong} on {say.every}."
        return _said(min(self._pure, key=len) if self._pure else self._groups[0], say, is_pure=self.tells_apart)


def _said(groups: dict[str, list[bool]], say: Sayings, *, is_pure: bool) -> str:
    counts = {name: "" if all(group) else f" ({sum(group)} of {len(group)})" for name, group in groups.items()}
    bad = [f"{name}{counts[name]}" for name, group in groups.items() if any(group)]
    good = [name for name, group in groups.items() if not any(group)]
    if len(good) < len(bad) and is_pure:
        return f"{say.wrong} on {say.every} but {_listed(good)}."
    return f"{say.wrong} on {_listed(bad)}.{f' {say.others} on {_listed(good)}.' if good else ''}"


def _whole(kind: str) -> str:
    """A kind of several parts as one of a list: "random input (a batch of 1)"."""
    first, _, rest = kind.partition(", ")
    return f"{first} ({rest})" if rest else first


def _by_part(kinds: dict[int, str]) -> Iterator[dict[int, str]]:
    """The first part of each kind, the second one where each kind has it, ..."""
    parts = {i: kind.split(", ") for i, kind in kinds.items()}
    for place in range(min(map(len, parts.values()))):
        yield {i: part[place] for i, part in parts.items()}


def _with_value(settings: dict[int, str]) -> dict[str, set[int]]:
    """The value of a setting, several that always come together, or any value, and the inputs that have it."""
    by_name: dict[str, dict[str, set[int]]] = {}
    for i, setting in settings.items():
        for found in _SETTING.finditer(setting):
            by_name.setdefault(found["name"], {}).setdefault(found.group(), set()).add(i)
    own = {value: places for values in by_name.values() for value, places in values.items()}
    own |= {f"a given {name}": set().union(*values.values()) for name, values in by_name.items() if len(values) > 1}
    together: dict[frozenset[int], list[str]] = {}
    for value, places in own.items():
        together.setdefault(frozenset(places), []).append(value)
    return {listed(values): {*places} for places, values in together.items()}


def _by_value(asked: Sequence[int], value: str, own: Collection[int]) -> dict[int, str]:
    return {i: f"inputs {'with' if i in own else 'without'} {value}" for i in asked}


def _groups(names: dict[int, str], wrong: Collection[int]) -> dict[str, list[bool]]:
    groups: dict[str, list[bool]] = {}
    for i, name in names.items():
        groups.setdefault(name, []).append(i in wrong)
    return groups


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:LISTED])
    if len(names) > LISTED:
        shown.append(f"{len(names) - LISTED} more")
    bare = [_BRACKETS.sub("", name) for name in shown]
    return listed(shown, "; " if any(", " in name or " and " in name for name in bare) else ", ")
