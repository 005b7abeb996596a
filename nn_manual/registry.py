"""The components of the package: what a config can name, and what catalogue, campaigns and tests go through.

A component is registered by being exported from its room: nobody keeps a second list.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from dataclasses import is_dataclass
from types import ModuleType
from typing import Any, NamedTuple

from nn_manual import data, layers, losses, optim
from nn_manual.model import initializers


class ComponentKind(NamedTuple):
    """A kind of component: its name in messages, and the module that exports its components."""

    label: str
    module: ModuleType


KINDS: dict[type, ComponentKind] = {
    data.Dataset: ComponentKind("data set", data),
    layers.Layer: ComponentKind("layer", layers),
    initializers.Initializer: ComponentKind("initializer", initializers),
    losses.Loss: ComponentKind("loss", losses),
    optim.Optimizer: ComponentKind("optimizer", optim),
    optim.Scheduler: ComponentKind("lr_scheduler", optim),
}


def kind_of(component: type) -> type:
    """Which of the KINDS a class of components is of. Raises StopIteration for another class."""
    return next(kind for kind in KINDS if issubclass(component, kind))


def components(kind: type) -> dict[str, type[Any]]:
    """The package's concrete components of one of the KINDS, by name: `components(Layer)["Tanh"]` is Tanh."""
    return _concrete(KINDS[kind].module, kind)


def defined_in(module: ModuleType, kind: type) -> dict[str, type[Any]]:
    """The concrete classes of a kind that a module, or the modules of a package, define, by name; not those that they
    only import from elsewhere.
    """
    inside = f"{module.__name__}."
    return {name: thing for name, thing in _concrete(module, kind).items() if f"{thing.__module__}.".startswith(inside)}


def _concrete(module: ModuleType, kind: type) -> dict[str, type[Any]]:
    """The public concrete dataclasses of a kind in a module, by name."""
    return {
        name: thing
        for name, thing in vars(module).items()
        if isinstance(thing, type) and issubclass(thing, kind) and not name.startswith("_")
        if is_dataclass(thing) and not inspect.isabstract(thing)
    }


def examples(classes: Mapping[str, type[Any]]) -> list[Any]:
    """The examples of all these classes of layers or losses: `examples(components(Loss))` are the losses to check."""
    return [example for component in classes.values() for example in component.examples()]


@functools.cache
def takes_layers(layer_class: type) -> bool:
    """Whether a class takes layers as positional arguments, as Sequential does: a config gives it a list of layers."""
    kinds = [parameter.kind for parameter in inspect.signature(layer_class).parameters.values()]
    return inspect.Parameter.VAR_POSITIONAL in kinds
