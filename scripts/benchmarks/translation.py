"""Layers, losses and optimizers of ours in another library: no setting is lost on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Translation(Generic[T]):
    """Makes the other library's version of an object of ours.

    `heeded` are the settings that `make` heeds. Each other one must have its default, or the value in `needed`: with
    any other value, the version would compute something else.
    """

    def __init__(self, make: Callable[[Any], T], *heeded: str, **needed: object) -> None:
        self._make, self._heeded, self._needed = make, heeded, needed

    def __call__(self, ours: Any) -> T:
        """The version. Raises NotImplementedError for a setting that isn't translated."""
        for field in fields(ours) if is_dataclass(ours) else ():
            needed = self._needed.get(field.name, field.default)
            if field.name not in self._heeded and getattr(ours, field.name) != needed:
                raise not_translated(ours, field.name)
        return self._make(ours)


def not_translated(ours: Any, name: str) -> NotImplementedError:
    """The error about a setting."""
    return NotImplementedError(f"{type(ours).__name__} with {name}={getattr(ours, name)!r} isn't translated here")
