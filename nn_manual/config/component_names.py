"""The names that a config can use, and the hint that ends an error about any other."""

from __future__ import annotations

from nn_manual.layers import Layer
from nn_manual.messages.text import advice, quoted
from nn_manual.model import Sequential
from nn_manual.registry import KINDS, components

#: The name that stands for copies of layers, in the place of a layer.
REPEAT = "Repeat"


def named(kind: type) -> dict[str, type]:
    """The components of this kind that a config can name, by name. The layers include Sequential, which has layers."""
    return components(kind) | ({"Sequential": Sequential} if kind is Layer else {})


def is_component(value: object) -> bool:
    """Whether it is the name of a component of any kind."""
    return isinstance(value, str) and any(value in named(kind) for kind in KINDS)


def beside(kind: type, name: str, other: str, path: str, *, by_override: bool) -> str:
    """The error about the key `other`, which stands beside the component `name` in one mapping. A file has it in the
    wrong column; an override, whose path begins with `path`, leaves out the name.
    """
    label, known = KINDS[kind].label, named(kind)
    if not by_override:
        return f"{label}: {quoted(other)} stands beside {quoted(name)}; keyword arguments are indented under the name"
    if other in known:
        return f"the {label} is {name}: to replace it, write '{path}={{{other}: {{KEY: VALUE, ...}}}}'"
    if other in getattr(known.get(name), "__dataclass_fields__", ()):
        return f"{other} is a key of {name}: write {path}.{name}.{other}"
    return unknown(kind, other)


def unknown(kind: type, name: str) -> str:
    """The error about a name that is no component's of this kind."""
    label = KINDS[kind].label
    if name.rpartition(".")[0].strip(".") and name.rpartition(".")[2][:1].isupper():  # a class of a module
        hint = "; a class of your own is module:Class"
    else:
        hint = advice(name, [*named(kind), *([REPEAT] if kind is Layer else [])])
    return f"unknown {label} {quoted(name)}{hint}"
