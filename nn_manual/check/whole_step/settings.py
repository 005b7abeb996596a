"""Settings of layers and loss that changed after torch's versions were made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import NoneType
from typing import Any

from nn_manual.layers.composite import descendants
from nn_manual.losses import Loss
from nn_manual.model import Sequential

#: Of these types repr says everything.
PLAIN = (bool, int, float, str, NoneType, tuple, list)


def settings_as_text(model: Sequential, loss: Loss) -> dict[str, str]:
    """The settings of layers and loss, as text, by names like "1 (BatchNorm1d).eps"."""
    owners: dict[str, Any] = {f"{name} ({type(layer).__name__})": layer for name, layer in descendants(model)}
    owners[type(loss).__name__] = loss
    return {
        f"{owner}.{item.name}": repr(value)
        for owner, part in owners.items()
        if is_dataclass(part)
        for item in fields(part)
        if isinstance(value := getattr(part, item.name, ()), PLAIN)
    }


def changes_since(at_first: Mapping[str, str], model: Sequential, loss: Loss) -> list[str]:
    """A sentence for each setting that is another one now."""
    now = settings_as_text(model, loss)
    return [
        f"{name} was {before} when the check was made, and is {now[name]}: torch's version may still have the former"
        for name, before in at_first.items()
        if now.get(name, before) != before
    ]
