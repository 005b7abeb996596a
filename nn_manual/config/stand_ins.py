"""What stands in for an argument that is out of range, so that the others can be checked, too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, Field, fields
from functools import lru_cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from nn_manual.config.yaml_tree import Node

type_hints = lru_cache(get_type_hints)  # annotations are texts: to read those of one class takes 0.3 ms


class Unfinished(list[Any]):
    """The layers of the composite `name`, with MISSING in the place of each that couldn't be made."""

    def __init__(self, name: str, layers: Iterable[Any]) -> None:
        super().__init__(layers)
        self.name = name


def has_errors(value: Any) -> bool:
    """Whether `value` is a list of layers in which some layer couldn't be made."""
    return isinstance(value, list) and any(item is MISSING or has_errors(item) for item in value)


def default(field: Field[Any]) -> Any:
    """A field's default, MISSING where it has none."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def stand_ins_of(cls: Any) -> dict[str, Any]:
    """What stands in for each argument of a dataclass."""
    hints = type_hints(cls)
    return {field.name: _stand_in(field, hints[field.name]) for field in fields(cls) if field.init}


def _stand_in(field: Field[Any], hint: Any) -> Any:
    """The default. Where there is none, 1 if the type of the field has numbers, or the first of the values it lists."""
    if default(field) is not MISSING:
        return default(field)
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    listed = [value for member in members if get_origin(member) is Literal for value in get_args(member)]
    return 1 if int in members or float in members else next(iter(listed), MISSING)


def nearest_node(node: Node, path: str) -> Node:
    """The node at a path such as "groups.0.lr", or the last node on this path that exists."""
    for step in path.split("."):
        if isinstance(node.value, dict) and step in node.value:
            node = node.value[step]
        elif isinstance(node.value, list) and step in map(str, range(len(node.value))):
            node = node.value[int(step)]
    return node


def replaced(arguments: dict[str, Any], stand_ins: dict[str, Any], path: str) -> bool:
    """Replace an argument by what stands in for it, or take the value at a path such as "groups.0.lr" out of the
    arguments. Returns whether there was one.
    """
    if path in stand_ins:
        arguments[path] = stand_ins[path]
        return True
    match path.split("."):
        case [name, index, key] if name in arguments:
            return arguments[name][int(index)].pop(key, MISSING) is not MISSING
    return False


def is_of_stand_in(text: str, label: str, found: set[str]) -> bool:
    """Whether an error may be about what stands in for a setting that was `found` to be wrong: it is about the whole
    object `label`, or cites such a setting.
    """
    return bool(found) and (text.startswith(f"{label} ") or any(f"{name}=" in text for name in found))
