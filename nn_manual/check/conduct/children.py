"""What a composite does to its layers beside running them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from nn_manual.check.conduct.unchanged import Unchanged, arrays_in
from nn_manual.layers.base import Layer
from nn_manual.layers.composite import descendants
from nn_manual.model import Sequential

_METHODS = ("forward", "backward", "backward_parameters")


class ChildrenWatched:
    """Watches the layers inside a composite while the `with` block runs. `kept` has what each of them saved and which
    gradients it wrote, as they were when it returned: the composite must leave them so.
    """

    def __init__(self, name: str, composite: Layer) -> None:
        self.kept = Unchanged(name, {})
        self._layers = {
            f"{name}.{key} ({type(inner).__name__})": inner
            for key, inner in descendants(composite)
            if not isinstance(inner, Sequential)
        }
        self._running: set[str] = set()
        #: What stood on the instances before.
        self._own: list[dict[str, Any]] = []

    def __enter__(self) -> ChildrenWatched:
        for label, inner in self._layers.items():
            methods = {method: partial(self._noted, label, method, getattr(inner, method)) for method in _METHODS}
            self._own.append({name: vars(inner)[name] for name in vars(inner).keys() & methods.keys()})
            vars(inner).update(methods)
        return self

    def __exit__(self, *exception: object) -> None:
        for inner, own in zip(self._layers.values(), self._own, strict=True):
            for method in _METHODS:
                del vars(inner)[method]
            vars(inner).update(own)

    def _noted(self, label: str, name: str, method: Callable[..., Any], *arguments: Any) -> Any:
        if label in self._running:  # a method that calls another one, and has not finished
            return method(*arguments)
        self._running.add(label)
        try:
            result = method(*arguments)
        finally:
            self._running.remove(label)
        inner = self._layers[label]
        if name == "forward":
            self.kept.add({f"what {label} saved{place}": array for place, array in arrays_in(result[1])})
        elif not inner.children():
            self.kept.add({f"grad.{key} of {label}": array for key, array in vars(inner.grad).items()})
        return result
