"""On which kinds of input something is wrong, and on which it is right, in a sentence."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from nn_manual.exercises.verdicts.settings import setting_of
from nn_manual.messages.text import listed

#: At most so many kinds are listed.
LISTED = 5
#: Where all kinds or examples have more letters, the wrong ones or the right ones are told, and not both.
LONG = 160
_SIZES = re.compile(r", shape \([\d, ]+\)")
_BRACKETS = re.compile(r"\([^()]*\)")


class Sayings(NamedTuple):
    """How a sentence begins about what is wrong, and one about the others; and what all inputs are called."""

    wrong: str = "It is wrong"
    others: str = "It is right"
    every: str = "every input"

    def at(self, where: str) -> Sayings:
        """The same of a part of the inputs: "There it is wrong"."""
        return Sayings(f"{where} {self.wrong[:1].lower()}{self.wrong[1:]}", self.others)


def where_wrong(
    inputs: Sequence[tuple[str, str]], wrong: Collection[int], asked: Sequence[int], say: Sayings, owner: Any = None
) -> str:
    """For example "It is wrong on tied input. It is right on random input and negative input." `inputs` are examples
    of the component `owner` and kinds, `wrong` and `asked` places in them.

    The inputs are told apart by what is special about them, by the value of a setting, or by the examples: the way with
    the fewest groups of which each is all wrong or all right. Where there is none, it is said on which examples
    something is wrong, and then how often each kind is wrong.
    """
    ways = _Ways(inputs, wrong, asked, owner)
    if ways.tells_apart:
        return ways.told(say)
    bad, good = ways.bad, ways.good
    if not good:
        return ways.told(say)
    there = _Ways(inputs, wrong, [i for i in asked if inputs[i][0] in bad], owner)
    if setting := setting_of(bad, [*bad, *good], owner):
        return f"{say.wrong} with {setting} alone. {there.told(say.at('There'))}"
    if len(bad) > 1 and (setting := setting_of(good, [*bad, *good], owner)):
        return f"{say.others} with {setting}. {there.told(say.at('Elsewhere'))}"
    if len(bad) <= len(good):
        return f"{say.wrong} on {_listed(bad)} alone. {there.told(say.at('There'))}"
    return f"{say.others} on {_listed(good)}. {there.told(say.at('Elsewhere'))}"


class _Ways:
    """Ways to tell some of the inputs apart, as groups with a name of which each input is wrong or not.

    `bad` are the examples that have wrong inputs, and `good` the others.
    """

    def __init__(
        self, inputs: Sequence[tuple[str, str]], wrong: Collection[int], asked: Sequence[int], owner: Any
    ) -> None:
        kinds = {i: _SIZES.sub(", other sizes", inputs[i][1]) for i in asked}
        examples = {i: inputs[i][0] for i in asked}
        self.bad = [*dict.fromkeys(examples[i] for i in asked if i in wrong)]
        self.good = [each for each in dict.fromkeys(examples.values()) if each not in self.bad]
        wholes = {i: _whole(kind) for i, kind in kinds.items()}
        names = [*_by_part(kinds), wholes, *_by_setting(examples, self.bad, self.good, owner), examples]
        self._groups = [_groups(way, wrong) for way in names]
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
    is_long = len("".join([*bad, *good])) > LONG
    if good and is_pure and (len("".join(good)) < len("".join(bad)) if is_long else len(good) < len(bad)):
        return f"{say.wrong} on {say.every} but {_listed(good)}."
    if good and (len(good) > LISTED or (is_long and is_pure)):
        return f"{say.wrong} on {_listed(bad)} alone."
    return f"{say.wrong} on {_listed(bad)}.{f' {say.others} on {_listed(good)}.' if good else ''}"


def _by_setting(
    examples: Mapping[int, str], bad: Sequence[str], good: Sequence[str], owner: Any
) -> Iterator[dict[int, str]]:
    """The setting that all wrong examples have, and no other one, and the setting that all right ones have. A single
    wrong example is told as it is.
    """
    for one in (bad, good) if len(bad) > 1 else ():
        if setting := setting_of(one, [*bad, *good], owner):
            yield {i: f"inputs {'with' if example in one else 'without'} {setting}" for i, example in examples.items()}


def _whole(kind: str) -> str:
    """A kind of several parts as one of a list: "random input (a batch of 1)"."""
    first, _, rest = kind.partition(", ")
    return f"{first} ({rest})" if rest else first


def _by_part(kinds: dict[int, str]) -> Iterator[dict[int, str]]:
    """The first part of each kind, the second one where each kind has it, ..."""
    parts = {i: kind.split(", ") for i, kind in kinds.items()}
    for place in range(min(map(len, parts.values()))):
        yield {i: part[place] for i, part in parts.items()}


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
