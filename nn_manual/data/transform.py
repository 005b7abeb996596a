"""What was done to the numbers of a data set, and what they are called: what a prediction for other examples needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array


class Standardization(NamedTuple):
    """(array - mean) / std, column by column; `mean` and `std` are float64, of the shape of one example or single."""

    mean: Array
    std: Array

    @classmethod
    def of(cls, train: Iterable[Array]) -> Standardization:
        """By the mean and the std of some examples, column by column; `train` has them in slices, each time it is
        iterated.

        std is the population's, divided by n. A column that is constant is divided by 1, and so is one of
        numbers below 1e-160, whose squares are 0.
        """
        num_examples = sum(len(part) for part in train)
        first = next(part[0] for part in train if len(part)).copy()
        mean = sum(part.sum(axis=0) for part in train) / num_examples
        std = np.sqrt(sum(np.square(part - mean).sum(axis=0) for part in train) / num_examples)
        # Compared by values: the std of a constant column is often not 0 but a rounding error of the mean.
        is_constant = np.logical_and.reduce([(part == first).all(axis=0) for part in train])
        return cls(mean, np.where(is_constant | (std == 0), 1.0, std))

    def apply(self, array: Array) -> Array:
        """(array - mean) / std, in float64."""
        standardized: Array = (array - self.mean) / self.std
        return standardized


class Names(NamedTuple):
    """What the columns of the inputs, those of the targets, and the classes are called, as far as the source says. The
    classes of a text are its characters.
    """

    input: tuple[str, ...] | None = None
    target: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None


class Transform(NamedTuple):
    """What stands between the source's numbers and a Split's. Where `input` or `target` is None, they were taken as
    they are.
    """

    input: Standardization | None = None
    target: Standardization | None = None
    names: Names = Names()

    def as_json(self) -> dict[str, Any]:
        """As it stands in a run's data.json, where floats read back to the same bits:

        {"input": {"mean": [...], "std": [...]}, "target": null,
         "names": {"input": [...], "target": null, "classes": [...]}}
        """
        return {"input": _plain(self.input), "target": _plain(self.target), "names": self.names._asdict()}


def _plain(part: Standardization | None) -> dict[str, Any] | None:
    return None if part is None else {"mean": part.mean.tolist(), "std": part.std.tolist()}
