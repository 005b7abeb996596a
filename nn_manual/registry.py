"""The names that a config can use, taken from the public modules: adding a component touches one place."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Collection
from dataclasses import is_dataclass
from types import ModuleType

from nn_manual import data, initializers, layers, losses, optim
from nn_manual.model import Sequential

#: Each kind of component: its name in messages, and the module whose concrete dataclasses can be named in a config.
KINDS: dict[type, tuple[str, ModuleType]] = {
    data.Dataset: ("data set", data),
    layers.Layer: ("layer", layers),
    initializers.Initializer: ("initializer", initializers),
    losses.Loss: ("loss", losses),
    optim.SGD: ("optimizer", optim),
    optim.Scheduler: ("lr_scheduler", optim),
}


def registry(kind: type) -> dict[str, type]:
    """The components of a kind, by name."""
    _, module = KINDS[kind]
    found = {
        name: thing
        for name, thing in vars(module).items()
        if isinstance(thing, type) and issubclass(thing, kind) and is_dataclass(thing)
        if not inspect.isabstract(thing)
    }
    return found | {"Sequential": Sequential} if kind is layers.Layer else found


def nearest(name: str, known: Collection[str]) -> str:
    """The hint that ends an error about an unknown name: the nearest one, or all where none is near."""
    by_lowercase = {candidate.lower(): candidate for candidate in known}
    match = difflib.get_close_matches(name.lower(), by_lowercase, n=1)
    if match:
        return f"; did you mean {by_lowercase[match[0]]!r}?"
    return f"; known: {', '.join(known)}" if known else "; it has none"
