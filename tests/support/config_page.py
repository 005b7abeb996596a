"""What docs/configs.md says of the keys, and what the code says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from nn_manual.config import RunConfig
from nn_manual.config.component_names import named
from nn_manual.config.stand_ins import default
from nn_manual.optim import Optimizer, Scheduler
from nn_manual.registry import KINDS, takes_layers

PAGE = (Path(__file__).parents[2] / "docs" / "configs.md").read_text(encoding="utf-8")
WORDS = {int: "integer", float: "number", bool: "bool", str: "text", Path: "path", Any: "value", type(None): "null"}


class Key(NamedTuple):
    """A key: of which component, or of the config or a part of it; its type and its default, in the page's words."""

    owner: str
    name: str
    type: str
    default: str


def keys_of_page(heading: str) -> Iterator[Key]:
    """The rows of the tables in a section. A component stands in a row of its own, before those of its keys; components
    with the same keys may stand there together.
    """
    owners: list[str] = [""]
    for row in re.findall(r"^\|(.*)\|$", section(heading), re.MULTILINE):
        first, kind, value, _ = (cell.strip() for cell in row.split("|"))
        if first.startswith("**"):
            owners = re.findall(r"\*\*(\w+)\*\*", first)
            yield from (Key(owner, "", "", "") for owner in owners)
        elif first.startswith("`"):
            yield from (Key(owner, first.strip("`"), kind, value.strip("`")) for owner in owners)


def section(heading: str) -> str:
    """The text under a heading, up to the next one."""
    (text,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return str(text)


def keys_of_components(kind: type) -> Iterator[Key]:
    """The same of each component of a kind, as the code has it."""
    for name, component in named(kind).items():
        yield Key(name, "", "", "")
        if not takes_layers(component):
            yield from _keys(name, component)


def keys_of_config() -> Iterator[Key]:
    """The same of the config, and of those of its keys that hold keys."""
    yield from _keys("", RunConfig)
    for name, hint in get_type_hints(RunConfig).items():
        for member in (hint, *get_args(hint)):
            if is_dataclass(member) and isinstance(member, type) and member not in KINDS:
                yield Key(name, "", "", "")
                yield from _keys(name, member)


def _keys(owner: str, cls: Any) -> Iterator[Key]:
    hints = get_type_hints(cls)
    for field in fields(cls):
        if field.init and not (issubclass(cls, Optimizer) and field.name == "model"):
            kind, value = type_in_words(hints[field.name]), default(field)
            yield Key(owner, field.name, kind, "needed" if value is MISSING else _plain(value))


def type_in_words(hint: Any) -> str:
    """A field's type as a person who writes YAML thinks of it."""
    origin, members = get_origin(hint), get_args(hint)
    if hint in WORDS:
        return WORDS[hint]
    if origin in (Annotated, partial):
        return type_in_words(members[0])
    if origin is Literal:
        return " or ".join(f"`{member}`" for member in members)
    if origin in (Union, UnionType):
        return " or ".join(map(type_in_words, members))
    if origin is tuple:
        return f"[{', '.join(map(type_in_words, members))}]"
    if origin is list:
        return f"[{type_in_words(members[0])}, ...]"
    if hint is Scheduler:
        return "schedule"
    if hint in KINDS:
        return KINDS[hint].label
    if isinstance(hint, type) and issubclass(hint, tuple(KINDS)):
        return hint.__name__  # of one class
    return "keys"  # of a mapping


def _plain(value: Any) -> str:
    """A default as YAML has it."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_plain, value))}]"
    if is_dataclass(value):
        return f"{{{', '.join(f'{field.name}: {_plain(getattr(value, field.name))}' for field in fields(value))}}}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)
