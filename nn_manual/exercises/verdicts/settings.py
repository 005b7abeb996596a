"""The settings of examples, read from how they are written, and the setting that tells some examples from others."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

_QUOTES = re.compile(r"['\"]")
#: One number in brackets, [2] or (2,), means what the number means.
_ONE = re.compile(r"[\[(]([^,()\[\]]+),?[\])]")
_NAMED = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.DOTALL)


def setting_of(examples: Collection[str], every: Collection[str], owner: Any = None) -> str:
    """The setting that exactly these of all examples have, "stride=2" or "a given stride"; empty where there is none,
    or where another setting tells the same examples from the others. One example is told as it is, and by no setting.

    `owner` has the names of settings that are given by their places, and the values of those that aren't given.
    """
    if not 1 < len(examples) < len(every):
        return ""
    parameters = _parameters(owner)
    settings = {example: _settings(example, parameters) for example in every}
    telling = []
    for name in dict.fromkeys(name for own in settings.values() for name in own):
        default = parameters[name].value if name in parameters else ""
        values = {example: own.get(name, default) for example, own in settings.items()}
        inside = {values[example] for example in examples}
        outside = {value for example, value in values.items() if example not in examples}
        if inside.isdisjoint(outside) and 1 in (len(inside), len(outside)):
            telling.append(_words(name, inside, outside, default))
    return telling[0] if len(telling) == 1 else ""


def _words(name: str, inside: set[str], outside: set[str], default: str) -> str:
    """A setting that tells examples from others; empty where no short words say it."""
    if name.isdecimal() or inside == {default}:
        return ""
    if len(inside) == 1:
        return f"{name}={''.join(inside)}"
    return f"a given {name}" if outside == {default} else ""


class _Parameter(NamedTuple):
    """The value that a setting has where it isn't given, and whether it may be given by its place."""

    value: str
    has_place: bool


def _parameters(owner: Any) -> dict[str, _Parameter]:
    try:
        parameters = inspect.signature(owner).parameters.values()
    except (TypeError, ValueError):  # no component is known
        return {}
    placed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    defaults = {each.name: "" if each.default is each.empty else _value(str(each.default)) for each in parameters}
    return {each.name: _Parameter(defaults[each.name], each.kind in placed) for each in parameters}


def _settings(example: str, parameters: Mapping[str, _Parameter]) -> dict[str, str]:
    """What stands in the brackets of an example, MaxPool1d(2, stride=1), or behind the shapes of an operation."""
    is_call = re.match(r"\w+\(", example)
    inner = example.partition("(")[2].removesuffix(")") if is_call else example
    names = [name for name, parameter in parameters.items() if parameter.has_place] if is_call else []
    settings = {}
    for place, part in enumerate(_parts(inner)):
        named = _NAMED.fullmatch(part)
        name = named["name"] if named else names[place] if place < len(names) else str(place)
        settings[name] = _value(named["value"] if named else part)
    return settings


def _parts(text: str) -> Iterator[str]:
    """What stands between the commas that are in no brackets."""
    depth, part = 0, ""
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            yield part.strip()
            part = ""
        else:
            part += letter
    if part.strip():
        yield part.strip()


def _value(text: str) -> str:
    bare = _QUOTES.sub("", text)
    one = _ONE.fullmatch(bare)
    return one[1] if one else bare
