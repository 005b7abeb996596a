"""Methods that a base class has a default for, and the questions whether a class has its own, and whose it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

PACKAGE = __name__.partition(".")[0]


def is_of_package(owner: Any) -> bool:
    """Whether a class, or a function, is the package's, and not a user's own."""
    module: str = owner.__module__
    return module.partition(".")[0] == PACKAGE


def default(method: F) -> F:
    """Decorator of a base class's method that few classes define: `defines` knows it as the default."""
    method.is_default = True  # type: ignore[attr-defined]  # a mark
    return method


def take_from_behind(cls: type, names: Iterable[str]) -> None:
    """Give a class what one of its bases has under these names, where the default of another base stands before it: the
    reference of a mixin that comes after the base class counts. An empty text is a default, too.
    """
    for name in names:
        values = [vars(base)[name] for base in cls.__mro__ if name in vars(base)]
        own = [value for value in values if value != "" and not hasattr(value, "is_default")]
        if own and own[0] is not values[0]:
            setattr(cls, name, own[0])


def defines(component: object, method: str) -> bool:
    """Whether a layer or a loss has a method of its own, where its base class has a `default`; None is no method."""
    own = getattr(component, method, None)
    return own is not None and not hasattr(own, "is_default")
