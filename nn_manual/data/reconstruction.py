"""Reconstruction: the inputs of another data set as its own targets, for autoencoders and for nets that denoise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.data.base import Dataset, Examples, Split
from nn_manual.data.transform import Transform
from nn_manual.errors import DataError
from nn_manual.streams import Stream, generator


@dataclass
class Reconstruction(Dataset):
    """The inputs of the data set `of` as targets: a model gets them with noise on them, and learns to put them out.

        target = the input of `of`, as `of` standardises it
        input  = target + noise * normal(0, 1)

    The noise is drawn once, with the seed: each epoch sees the same, and so does each evaluation. With a `noise` of 0
    the input is the target, as an autoencoder takes it. Predictions are in the units of `of`.
    """

    of: Dataset
    noise: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.noise < math.inf:
            raise ValueError(f"noise must be finite and at least 0, not {self.noise}")

    @property
    def example_shape(self) -> Shape | None:
        """That of `of`."""
        return self.of.example_shape

    @property
    def source(self) -> Dataset:
        """The data set that reads the numbers."""
        return self.of.source

    def with_source(self, source: Dataset) -> Dataset:
        """The same of another source."""
        return replace(self, of=self.of.with_source(source))

    def load(self, seed: int, dtype: np.dtype[Any], transform: Transform | None = None) -> Split:
        """Load `of`, and draw the noise with `seed`. Raises what `of` does, and DataError for inputs that are indices,
        and for sequences of different lengths.
        """
        known = None if transform is None else transform._replace(target=None)
        train, validation, _, of_input = self.of.load(seed, dtype, known)
        random = generator(seed, Stream.INPUT_NOISE)
        names = of_input.names._replace(target=of_input.names.input, classes=None)
        kept = of_input._replace(target=of_input.input, names=names, has_named_classes=False)
        return Split(self._examples(train.input, random), self._examples(validation.input, random), None, kept)

    def _examples(self, clean: Any, random: np.random.Generator) -> Examples:
        if not isinstance(clean, np.ndarray) or clean.dtype.kind != "f":
            words = "indices" if isinstance(clean, np.ndarray) else "sequences of different lengths"
            raise DataError(f"Reconstruction: the inputs of {type(self.of).__name__} are {words}, and must be numbers")
        if not self.noise:
            return Examples(clean, clean)
        shape: Shape = clean.shape
        noise = random.standard_normal(shape, np.float32)
        noisy: Array = noise.astype(clean.dtype, copy=False)
        noisy *= self.noise
        noisy += clean
        return Examples(noisy, clean)
