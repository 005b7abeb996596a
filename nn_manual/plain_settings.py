"""Settings in Python: values of another type are refused. NumPy's numbers become Python's in layers and losses."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import Field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from nn_manual.errors import raise_if_nobodys_fault

#: The types that a setting can have beside lists of them and certain words, as messages call one value and several.
WORDS: dict[Any, tuple[str, str]] = {
    int: ("an integer", "integers"),
    float: ("a number", "numbers"),
    bool: ("True or False", "True or False"),
    str: ("text", "texts"),
    NoneType: ("None", "None"),
}


def take_settings(component: Any) -> None:
    """Make plain values of the settings that a dataclass's fields hold: NumPy's numbers become Python's, whose products
    with an array keep its dtype, and a tuple or an array where a list stands becomes a list. Raises TypeError, which
    names the setting, for a value of another type than the field's. A type that isn't known takes any value.
    """
    for reason in misfits(component):
        raise TypeError(f"{type(component).__name__}: {reason}")
    owner: Any = type(component)
    for field, types in _fields(owner):
        given = getattr(component, field.name, None)
        value = _plain(given, as_list=_is_list(types))
        if value is not given:
            setattr(component, field.name, value)


def misfits(component: Any) -> Iterator[str]:
    """For each of a dataclass's fields that holds a value of another type, why it doesn't fit: the text begins with the
    field's name. A default fits, whatever it is.
    """
    owner: Any = type(component)
    for field, types in _fields(owner):
        given = getattr(component, field.name, None)
        value = _plain(given, as_list=_is_list(types))
        if value is not field.default and not any(_fits(value, each) for each in types):
            words = " or ".join(word for each in types for word in _words(each))
            yield f"{field.name} must be {words}, not {given!r}"


def check_type(wanted: type, **values: Any) -> None:
    """Raise TypeError, with its name, for a value that isn't of a type in WORDS, or no object of a class."""
    for name, value in values.items():
        if wanted in WORDS:
            fits, words = _fits(_plain(value), wanted), WORDS[wanted][0]
        else:
            article = "an" if wanted.__name__[0] in "AEIO" else "a"
            fits, words = isinstance(value, wanted), f"{article} {wanted.__name__}"
        if not fits:
            given = f"the class {value.__name__}" if isinstance(value, type) else repr(value)
            raise TypeError(f"{name} must be {words}, not {given}")


def after_settings(post_init: Callable[..., None]) -> Callable[..., None]:
    """A class's `__post_init__`, run on plain values."""

    @functools.wraps(post_init)
    def run(component: Any, *arguments: Any) -> None:
        take_settings(component)
        post_init(component, *arguments)

    return run


@functools.lru_cache
def _fields(owner: Any) -> list[tuple[Field[Any], tuple[Any, ...]]]:
    """The fields of a dataclass, each with its types. Annotations are texts: to read them takes 0.3 ms."""
    if not is_dataclass(owner):
        return []
    try:
        hints = get_type_hints(owner)
    except Exception as error:  # an annotation may be any text, and only a config needs it
        raise_if_nobodys_fault(error)
        hints = {}
    return [(field, _types(hints.get(field.name, Any))) for field in fields(owner)]


def _types(hint: Any) -> tuple[Any, ...]:
    """`int` and `None` of `int | None`."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _is_list(types: tuple[Any, ...]) -> bool:
    return any(get_origin(each) is list for each in types)


def _plain(value: Any, *, as_list: bool = False) -> Any:
    """The value itself where it is plain."""
    if isinstance(value, np.generic):
        return value.item()
    if as_list and hasattr(value, "tolist"):  # NumPy's arrays and torch's
        return value.tolist()
    if not isinstance(value, list | tuple):
        return value
    items = [_plain(item) for item in value]
    is_plain = all(own is given for own, given in zip(items, value, strict=True))
    if isinstance(value, tuple) and not as_list:
        return value if is_plain else tuple(items)
    return value if is_plain and isinstance(value, list) else items


def _fits(value: Any, hint: Any) -> bool:
    """Whether the value is of this type. A word that a setting doesn't know is out of range: the class says so."""
    if hint in WORDS:
        allowed = (int, float) if hint is float else hint
        return isinstance(value, allowed) and (hint is bool or not isinstance(value, bool))
    if get_origin(hint) is Literal:
        return any(type(value) is type(word) for word in get_args(hint))
    members = _members(hint)
    if not members:
        return True
    if not isinstance(value, list | tuple) or _length(hint) not in (None, len(value)):
        return False
    return all(any(_fits(item, each) for each in members) for item in value)


def _words(hint: Any) -> list[str]:
    """What a message calls a type that is in WORDS, or made of those."""
    if hint in WORDS:
        return [WORDS[hint][0]]
    if get_origin(hint) is Literal:
        return [repr(word) for word in get_args(hint)]
    members = " or ".join(WORDS[each][1] for each in _members(hint))
    return [f"a list of {members}" if _length(hint) is None else f"{_length(hint)} {members}"]


def _length(hint: Any) -> int | None:
    """How many members a tuple has; None for a list, and for a tuple of any length."""
    members = get_args(hint)
    return len(members) if get_origin(hint) is tuple and Ellipsis not in members else None


def _members(hint: Any) -> tuple[Any, ...]:
    """The types of a list's members, or of a tuple's, where all of them are in WORDS; none for another type."""
    of_each = get_args(hint) if get_origin(hint) in (list, tuple) else ()
    members = dict.fromkeys(kind for member in of_each if member is not Ellipsis for kind in _types(member))
    return tuple(sorted(members, key=lambda kind: kind is NoneType)) if all(each in WORDS for each in members) else ()

