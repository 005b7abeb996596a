"""Methods that a base class has a default for, and the question whether a class has its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def default(method: F) -> F:
    """Decorator of a base class's method that few classes define: `defines` knows it as the default."""
    method.is_default = True  # type: ignore[attr-defined]  # a mark
    return method


def take_from_behind(cls: type, names: Iterable[str]) -> None:
    """Give a class what one of its bases has under these names, where the default of another base stands before it: the
    reference of a mixin that comes after the base class counts.
    """
    for name in names:
        own = (vars(base)[name] for base in cls.__mro__ if name in vars(base))
        found = next((value for value in own if not hasattr(value, "is_default")), None)
        if found is not None and hasattr(getattr(cls, name), "is_default"):
            setattr(cls, name, found)


def defines(component: object, method: str) -> bool:
    """Whether a layer or a loss has a method of its own, where its base class has a `default`; None is no method."""
    own = getattr(component, method, None)
    return own is not None and not hasattr(own, "is_default")
