"""Real data that comes with scikit-learn: nothing to download."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_manual.data.base import Dataset, Examples, Split
from nn_manual.data.held_out import check_validation_fraction
from nn_manual.data.split import split_examples
from nn_manual.data.transform import Names, Transform

# scikit-learn is imported where it is used: its import takes longer than `nn-manual --help` may take.


@dataclass
class _Bundled(Dataset):
    """A small data set. The seed determines its split, and the training part standardises its columns."""

    validation_fraction: float = 0.2

    def __post_init__(self) -> None:
        check_validation_fraction(self.validation_fraction)

    @abstractmethod
    def bunch(self) -> Any:
        """scikit-learn's own form: `data` and `target`, float64 values or int64 classes, and their names."""

    def load(self, seed: int, dtype: np.dtype[Any], transform: Transform | None = None) -> Split:
        """Split by `seed`. The training part standardises the inputs, and the targets of a regression."""
        bunch = self.bunch()
        target, names = bunch.target, Names(input=tuple(bunch.feature_names))
        if self.num_classes is None:
            target = target.reshape(-1, 1)
        else:
            names = names._replace(classes=tuple(map(str, bunch.target_names)))
        return split_examples(
            Examples(bunch.data, target),
            self.num_classes,
            self.validation_fraction,
            seed,
            dtype,
            standardize=True,
            names=names,
            transform=transform,
        )


@dataclass
class Digits(_Bundled):
    """1797 handwritten digits of 8 x 8 pixels: input (64,), standardised, 10 classes.

    The test part of "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository.
    """

    example_shape = (64,)
    num_classes = 10

    def bunch(self) -> Any:
        """Pixels from 0 to 16, and the digit."""
        from sklearn.datasets import load_digits

        return load_digits()


@dataclass
class Iris(_Bundled):
    """150 irises: input (4,), length and width of sepal and petal, standardised; 3 species.

    R. A. Fisher, "The use of multiple measurements in taxonomic problems", 1936.
    """

    example_shape = (4,)
    num_classes = 3

    def bunch(self) -> Any:
        """Centimetres, and the species."""
        from sklearn.datasets import load_iris

        return load_iris()


@dataclass
class Diabetes(_Bundled):
    """442 patients: input (10,), age, sex, body mass index, blood pressure and six blood serum values; target (1,),
    the progression of the disease a year later. The target is standardised, too: if the prediction is its mean, the MSE
    is 1.

    Efron, Hastie, Johnstone and Tibshirani, "Least Angle Regression", 2004.
    """

    example_shape = (10,)

    def bunch(self) -> Any:
        """The columns as scikit-learn scales them, and the progression, from 25 to 346."""
        from sklearn.datasets import load_diabetes

        return load_diabetes()
