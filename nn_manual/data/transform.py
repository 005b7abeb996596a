"""What was done to the numbers of a data set, and what they are called: what a prediction for other examples needs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array


class Standardization(NamedTuple):
    """(array - mean) / std, column by column; `mean` and `std` are float64, of the shape of one example or single."""

    mean: Array
    std: Array

    @classmethod
    def of(cls, train: Array) -> Standardization:
        """By the mean and the std of `train`, column by column.

        std is the population's, divided by n. A column that is constant is divided by 1.
        """
        # Compared by values: the std of a constant column is often not 0 but a rounding error of the mean.
        return cls(train.mean(axis=0), np.where((train == train[0]).all(axis=0), 1.0, train.std(axis=0)))

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
