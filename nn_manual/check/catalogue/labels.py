"""Components as one would write them."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from nn_manual.layers import Layer
from nn_manual.registry import takes_layers


def label(component: Any) -> str:
    """The component as one would write it: required fields, and the others where they are not the default."""
    if not is_dataclass(component):  # a Sequential
        return repr(component)
    if isinstance(component, Layer) and takes_layers(type(component)):
        return f"{type(component).__name__}({', '.join(map(label, component.children().values()))})"
    arguments = []
    for item in fields(component):
        value = getattr(component, item.name)
        if item.default is MISSING:
            arguments.append(repr(value))
        elif value != item.default:
            arguments.append(f"{item.name}={value}")
    return f"{type(component).__name__}({', '.join(arguments)})"
