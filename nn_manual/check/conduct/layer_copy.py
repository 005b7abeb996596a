"""A copy of a recorded layer, whose methods can be run again without moving the model's arrays."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from nn_manual.arrays import Array, flat
from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.check.conduct.unchanged import Unchanged
from nn_manual.check.step.calls import LayerCalls
from nn_manual.check.step.places import place_of_error
from nn_manual.errors import raise_if_nobodys_fault, words_of
from nn_manual.layers.base import Layer
from nn_manual.layers.composite import descendants
from nn_manual.layers.with_lengths import LENGTHS
from nn_manual.losses import Loss
from nn_manual.model.memory import bind, give_buffers

_NONE = SimpleNamespace()
_KINDS = ("param", "grad", "buffer", "noise")

#: The kind of arrays that each of these methods is meant to write into.
_WRITES = {
    "backward": "grad",
    "backward_parameters": "grad",
    "update_buffers": "buffer",
    "draw_noise": "noise",
}


Owner = TypeVar("Owner", Layer, Loss)


def copied(owner: Owner, label: str) -> Owner:
    """A copy of a layer or a loss, to run its methods again. Raises CannotCompare for one that can't be copied."""
    try:
        return copy.deepcopy(owner)
    except BaseException as error:  # it may hold anything
        raise_if_nobodys_fault(error)
        raise CannotCompare(f"{label} can't be copied, which the check needs: {words_of(error)}") from error


class LayerCopy:
    """A copy of the layer of `calls`, with memory of its own. Two results count as the same if they differ by no more
    than `tolerance`, as a fraction of the largest number.

    `kept` has what no method may write into, `buffers` what only update_buffers may write into. Raises CannotCompare
    for a layer that can't be copied.
    """

    def __init__(self, calls: LayerCalls, tolerance: float) -> None:
        self.calls, self._tolerance = calls, tolerance
        self.layer = copied(calls.layer, calls.label)
        if calls.item.children:  # its children's views were copied one by one
            bind(self.layer, *(flat(vars(views)) for views in (self.layer.param, self.layer.grad)))
            give_buffers(self.layer, vars(self.layer.buffer))
        self._owned = self.arrays(*_KINDS)
        self.kept = Unchanged(calls.label, self.arrays("param", "noise"))
        self.buffers = Unchanged(calls.label, self.arrays("buffer"))

    def arrays(self, *kinds: str) -> dict[str, Array]:
        """What the layer holds of these kinds, "param", "grad", "buffer" and "noise", by names as "param.weight"."""
        return {
            f"{kind}.{name}": array for kind in kinds for name, array in vars(getattr(self.layer, kind, _NONE)).items()
        }

    def run(self, method: str, *arguments: Any) -> Any:
        """What a method returns. Raises CannotCompare where it raises."""
        try:
            return getattr(self.layer, method)(*arguments)
        except BaseException as error:  # a layer that ran once may raise anything the second time
            raise_if_nobodys_fault(error)
            text = f"{self.calls.label}: on a copy of the layer, {method} raised {words_of(error)}"
            raise CannotCompare(text + place_of_error(self.layer, error)) from error

    @contextmanager
    def noise_of_nobody(self, *, but_lengths: bool = False) -> Iterator[None]:
        """The context in which `noise` holds NaN, and lengths are all 1: it is that of another forward, whichever that
        was. Only evaluation has its own lengths.
        """
        layers = [self.layer, *(inner for _, inner in descendants(self.layer))]
        own = [(inner, inner.noise) for inner in layers if hasattr(inner, "noise")]
        for inner, noise in own:
            nothing = {
                name: np.ones_like(array) if name == LENGTHS else np.full_like(array, np.nan)
                for name, array in vars(noise).items()
                if not (but_lengths and name == LENGTHS)
            }
            inner.noise = SimpleNamespace(**vars(noise) | nothing)
        try:
            yield
        finally:
            for inner, noise in own:
                inner.noise = noise

    def check_written(self, method: str, *kept: Unchanged) -> None:
        """Raise CannotCompare where a method replaced an array of the layer, or wrote into one that it may only read,
        those of `kept` among them.
        """
        now = self.arrays(*_KINDS)
        for what, array in self._owned.items():
            if now.get(what) is not array:
                raise self.replaced(method, what)
        self.check_kept(method, f"{method} wrote into", self.kept, *kept)
        if method != "update_buffers":
            self.check_kept(method, f"{method} wrote into", self.buffers)

    def replaced(self, method: str, what: str) -> CannotCompare:
        """That a method replaced an array of the layer, as an error to raise."""
        writes = what.partition(".")[0] == _WRITES.get(method)
        rule = f"write into it, {what}[...] = ..." if writes else "it may only be read"
        return self.calls.fault(method, f"{method} replaced {what}: {rule}")

    def check_kept(self, method: str, deed: str, *kept: Unchanged) -> None:
        """Raise CannotCompare where an array has changed: one of `kept`, or where none are given, one of the layer's
        own.
        """
        for each in kept or (self.kept, self.buffers):
            if changed := each.changed():
                raise self.calls.fault(method, f"{deed} {changed}")

    def different(self, first: Mapping[str, Array], again: Mapping[str, Array]) -> str:
        """The name of the first array that differs, or nothing."""
        return next((name for name, array in first.items() if not self.same(array, again[name])), "")

    def same(self, array: Array, again: Array) -> bool:
        """Whether they are equal up to rounding: a threaded sum may add up in another order."""
        allowed = self._tolerance * np.abs(array[np.isfinite(array)]).max(initial=0)
        same_shape = np.shape(array) == np.shape(again)
        return same_shape and np.allclose(array, again, rtol=0, atol=allowed, equal_nan=True)
