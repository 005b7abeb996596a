"""Methods that a base class has a default for, and the question whether a class has its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def default(method: F) -> F:
    """Decorator of a base class's method that few classes define: `defines` knows it as the default."""
    method.is_default = True  # type: ignore[attr-defined]  # a mark
    return method


def defines(component: object, method: str) -> bool:
    """Whether a layer or a loss has a method of its own, where its base class has a `default`; None is no method."""
    own = getattr(component, method, None)
    return own is not None and not hasattr(own, "is_default")
