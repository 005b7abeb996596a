"""What a config can name: each component with its keys, their types and defaults, and what it is."""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from nn_manual import data, layers, losses, optim
from nn_manual.config.component_names import named
from nn_manual.config.stand_ins import default
from nn_manual.model import initializers
from nn_manual.optim import Optimizer
from nn_manual.registry import KINDS, takes_layers

#: The kinds of components by the names that `nn-manual list` has for them.
KIND_NAMES: dict[str, type] = {
    "layers": layers.Layer,
    "losses": losses.Loss,
    "optimizers": optim.Optimizer,
    "schedules": optim.Scheduler,
    "data": data.Dataset,
    "initializers": initializers.Initializer,
}

#: Columns of a terminal.
WIDTH = 80
_WORDS = {int: "integer", float: "number", bool: "bool", str: "text", Path: "path", Any: "value"}


def listing(kind_name: str) -> str:
    """All components of one of the KIND_NAMES, each with what it is and its keys, no wider than WIDTH."""
    entries = [_entry(name, component) for name, component in sorted(named(KIND_NAMES[kind_name]).items())]
    return "\n".join([kind_name, *entries])


@functools.cache
def keys(component: type) -> tuple[tuple[str, str, str | None], ...]:
    """Name, type and default, in words, of each key that a component takes in a config; None where it has no default.
    """
    if not is_dataclass(component) or takes_layers(component):
        return ()
    hints = get_type_hints(component)
    given = ["model"] if issubclass(component, Optimizer) else []  # a config doesn't give it
    known = [field for field in fields(component) if field.init and field.name not in given]
    values = {field.name: default(field) for field in known}
    words = {name: None if value is MISSING else _plain(value) for name, value in values.items()}
    return tuple((name, _type(hints[name]), value) for name, value in words.items())


def first_sentence(component: type) -> str:
    """The first sentence of a component's docstring."""
    return sentences(component)[0]


@functools.cache
def sentences(component: type) -> tuple[str, ...]:
    """The sentences of a component's docstring, each on one line."""
    paragraphs = (inspect.getdoc(component) or "").split("\n\n")
    lines = [" ".join(text.split()) for text in paragraphs]
    return tuple(found for line in lines for found in re.split(r"(?<=[a-z)\]`\d]\.)\s", line))


def _entry(name: str, component: type) -> str:
    lines = [f"  {name}" + (": [layer, ...]" if takes_layers(component) else "")]
    indent = " " * 6
    lines += textwrap.wrap(first_sentence(component), WIDTH, initial_indent=indent, subsequent_indent=indent)
    entries = keys(component)
    width = max((len(key) for key, _, _ in entries), default=0)
    for key, kind, value in entries:
        text = f"{indent}  {key:{width}}  {kind}" + ("" if value is None else f" = {value}")
        lines += textwrap.wrap(text, WIDTH, subsequent_indent=" " * (len(indent) + width + 4))
    return "\n".join(lines)


def _type(hint: Any) -> str:
    """A field's type as a person writing YAML thinks of it."""
    origin, members = get_origin(hint), get_args(hint)
    if hint in _WORDS:
        return _WORDS[hint]
    if origin is Literal:
        return " | ".join(map(str, members))
    if origin in (Union, UnionType):
        return " | ".join("null" if member is type(None) else _type(member) for member in members)
    if origin is tuple:
        return f"[{_type(members[0])}, ...]" if members[-1] is ... else f"[{', '.join(map(_type, members))}]"
    if origin is list:
        return f"[{_type(members[0])}, ...]"
    if origin is partial:  # an optimizer, which is made later
        return _type(members[0])
    if origin is dict:
        return "{" + f"{_type(members[0])}: {_type(members[1])}, ..." + "}"
    return KINDS[hint].label if hint in KINDS else str(getattr(hint, "__name__", hint))


def _plain(value: Any) -> str:
    """A default as YAML has it."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_plain, value))}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)
