"""Real data that scikit-learn's wheel carries: nothing to download."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_manual.data.base import Dataset, Examples, Split
from nn_manual.data.split import check_validation_fraction, split_examples

# scikit-learn is imported where it is used: that takes longer than `nn-manual --help` may take.


@dataclass
class _Bundled(Dataset):
    """A small set whose split is drawn by the seed, and whose columns are standardised by the training part."""

    validation_fraction: float = 0.2

    def __post_init__(self) -> None:
        check_validation_fraction(self.validation_fraction)

    @abstractmethod
    def examples(self) -> Examples:
        """All examples as scikit-learn has them: float64 inputs; int64 classes or float64 (examples, 1)."""

    def load(self, seed: int, dtype: np.dtype[Any]) -> Split:
        """Split by `seed`; the inputs, and the targets of a regression, standardised by the training part."""
        return split_examples(
            self.examples(), self.num_classes, self.validation_fraction, seed, dtype, standardize=True
        )


@dataclass
class Digits(_Bundled):
    """1797 handwritten digits of 8 x 8 pixels: input (64,), standardised, 10 classes.

    The test part of "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository.
    """

    example_shape = (64,)
    num_classes = 10

    def examples(self) -> Examples:
        """Pixels from 0 to 16, and the digit."""
        from sklearn.datasets import load_digits

        return Examples(*load_digits(return_X_y=True))


@dataclass
class Iris(_Bundled):
    """150 irises: input (4,), length and width of sepal and petal, standardised; 3 species.

    R. A. Fisher, "The use of multiple measurements in taxonomic problems", 1936.
    """

    example_shape = (4,)
    num_classes = 3

    def examples(self) -> Examples:
        """Centimetres, and the species."""
        from sklearn.datasets import load_iris

        return Examples(*load_iris(return_X_y=True))


@dataclass
class Diabetes(_Bundled):
    """442 patients: input (10,), age, sex, body mass index, blood pressure and six blood serum values; target (1,),
    the progression of the disease a year later. The target is standardised, too: predicting its mean has an MSE of 1.

    Efron, Hastie, Johnstone and Tibshirani, "Least Angle Regression", 2004.
    """

    example_shape = (10,)

    def examples(self) -> Examples:
        """The columns as scikit-learn scales them, and the progression, from 25 to 346."""
        from sklearn.datasets import load_diabetes

        input, target = load_diabetes(return_X_y=True)
        return Examples(input, target.reshape(-1, 1))
