"""What a data set is: a description with the YAML's keys that loads into a training and a validation part."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.data.transform import Transform


class Examples(NamedTuple):
    """Inputs (examples, ...), floats or int64 indices, and their targets: int64 class indices (examples,), one for each
    place in time (examples, time), or values (examples, outputs).
    """

    input: Array
    target: Array


class Split(NamedTuple):
    """A loaded data set. `num_classes` is None for regression; `validation` has length 0 where none is held out.
    `transform` is what was done to the numbers of both parts.
    """

    train: Examples
    validation: Examples
    num_classes: int | None
    transform: Transform = Transform()


class Dataset(ABC):
    """A data set named in a config. Concrete ones are dataclasses whose fields are the YAML keys.

    A field out of range is a ValueError whose first word is the field's name.
    """

    #: Whether a target is the next character of a text: a run then reports its loss in bits a character, too.
    predicts_characters = False

    @property
    def example_shape(self) -> Shape | None:
        """The shape of one input where it is known before loading, so a config can be checked without the data."""
        return None

    @property
    def num_classes(self) -> int | None:
        """The number of classes where it is known before loading."""
        return None

    @abstractmethod
    def load(self, seed: int, dtype: np.dtype[Any], transform: Transform | None = None) -> Split:
        """Read or generate the examples and split them, both determined by `seed`.

        What is done to the numbers is found in the training part, unless `transform` is given: that of the data which a
        model was trained on. Then its means, stds and classes are taken, and its columns are the ones to read. Raises
        ValueError for examples that it doesn't fit.

        Inputs, and the targets of a regression, are C-contiguous arrays of `dtype`; classes, and inputs that are
        indices, are int64, and may be views that overlap. Raises DataError.
        """
