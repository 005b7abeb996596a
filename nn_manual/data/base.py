"""The contract that every data set keeps: fields from YAML, and a training and a validation part to load."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.data.transform import Transform


class Examples(NamedTuple):
    """Inputs (examples, ...), floats or int64 indices, and their targets: int64 class indices, one for each example
    (examples,) or several, such as one for each time, (examples, ...), or values (examples, outputs). Sequences of
    different lengths are Padded.
    """

    input: Any  # Array or Padded: with the union, all code that knows which it is would have to say so
    target: Array


class Split(NamedTuple):
    """A loaded data set. `num_classes` is None for regression; `validation` has length 0 if nothing is held out.
    `transform` says what was done to the numbers of both parts.
    """

    train: Examples
    validation: Examples
    num_classes: int | None
    transform: Transform = Transform()


class Dataset(ABC):
    """A data set named in a config. Concrete data sets are dataclasses whose fields are the YAML keys.

    Raises ValueError, whose message begins with the field's name, for a field out of range.
    """

    #: Whether a target is the next character of a text: a run then also reports its loss in bits per character.
    predicts_characters = False

    @property
    def example_shape(self) -> Shape | None:
        """The shape of one input if it is known before loading: so a config can be checked without the data."""
        return None

    @property
    def num_classes(self) -> int | None:
        """The number of classes if it is known before loading."""
        return None

    @classmethod
    def examples(cls) -> list[Dataset]:
        """Data sets of this class, for `nn-manual check FILE.py`."""
        return [cls()]

    @property
    def source(self) -> Dataset:
        """The data set that reads or generates the numbers: this one, unless it takes those of another one."""
        return self

    def with_source(self, source: Dataset) -> Dataset:
        """The same with another `source`."""
        return source

    @abstractmethod
    def load(self, seed: int, dtype: np.dtype[Any], transform: Transform | None = None) -> Split:
        """Read or generate the examples and split them; `seed` determines both.

        The training part determines what is done to the numbers, unless `transform` is given: the transform of the
        data that a model was trained on. Then its means, stds and classes are taken, and its columns are read. Raises
        ValueError for examples that it doesn't fit.

        Inputs, and the targets of a regression, are C-contiguous arrays of `dtype`. Classes, and inputs that are
        indices, are int64, and may be views that overlap. Raises DataError for files that can't be read or hold wrong
        numbers.
        """
