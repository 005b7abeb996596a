"""Parameters that are shared: several layers use one, each with a gradient of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape


class Ties:
    """Which of a model's parameters are one, by torch's names.

    `first_of` maps each further name of a shared parameter to its first name, by which the file of the weights knows
    it. All uses of a shared parameter, the one under the first name, too, write their gradients into `use_grads`. By
    the chain rule, the gradient of the shared parameter is their sum, which `add` makes.

    Raises ValueError for names that the model doesn't have, for parameters of different shapes, and for one that is
    tied twice.
    """

    def __init__(self, shapes: Mapping[str, Shape], pairs: Iterable[tuple[str, str]]) -> None:
        self.first_of: dict[str, str] = {}
        for first, other in map(_checked, pairs):
            for name in (first, other):
                if name not in shapes:
                    raise ValueError(f"tied: the model has no parameter {name!r}")
            if shapes[first] != shapes[other]:
                raise ValueError(f"tied: {first!r} has shape {shapes[first]}, {other!r} has {shapes[other]}")
            first = self.first_of.get(first, first)
            if other in self.first_of or other in self.first_of.values() or other == first:
                raise ValueError(f"tied: {other!r} is tied to {self.first_of.get(other, other)!r} already")
            self.first_of[other] = first
        #: Every name of each shared parameter, by its first one.
        self.names: dict[str, list[str]] = {}
        for other, first in self.first_of.items():
            self.names.setdefault(first, [first]).append(other)
        self.use_grads: dict[str, Array] = {}

    def views(
        self, param: Mapping[str, Array], grad: Mapping[str, Array], use_grads: Mapping[str, Array] | None = None
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """The parameters and the gradients as the layers see them, under all names, from those under first names. A
        shared parameter is the same array under each of its names. Its gradients are one array for each name, from
        `use_grads` or new ones.
        """
        self.use_grads = {
            name: np.zeros_like(grad[first]) if use_grads is None else use_grads[name]
            for first in self.names
            for name in self.names[first]
        }
        others = {other: param[first] for other, first in self.first_of.items()}
        return {**param, **others}, {**grad, **self.use_grads}

    def add(self, grad: Mapping[str, Array]) -> None:
        """Write the gradient of each shared parameter: the sum of the gradients of its uses."""
        for first, (*others, last) in self.names.items():
            np.copyto(grad[first], self.use_grads[last])
            for name in others:
                grad[first] += self.use_grads[name]


def _checked(pair: Any) -> tuple[str, str]:
    if not (isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(name, str) for name in pair)):
        raise ValueError(f"tied: {pair!r} must be a pair of two parameters' names")
    return pair[0], pair[1]
