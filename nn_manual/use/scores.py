"""The usual figures of a classification and of a regression, as scikit-learn computes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nn_manual.arrays import Array
from nn_manual.plotting.short_names import shorten

#: Characters of a name at the start of a line: the line then has at most 79.
MAXIMUM_NAME = 39
#: An R2 at least this far from 0 is written with an exponent: else it would fill its column.
LARGE_R2 = 1e4


class ClassScores(NamedTuple):
    """Precision, recall and F1 of each class that occurs or is predicted, and how many targets it has: an example may
    have several.

        precision = right / predicted        recall = right / targets        F1 = 2 / (1 / precision + 1 / recall)

    A quotient by 0 is 0. `mean` has the three of all these classes, each counting the same, and `weighted_mean` each
    counting by its targets.
    """

    classes: tuple[int, ...]
    precision: Array
    recall: Array
    f1: Array
    num_targets: Array
    mean: tuple[float, ...]
    weighted_mean: tuple[float, ...]

    @classmethod
    def of(cls, confusion: Array) -> ClassScores:
        """From the counts by class and predicted class, (classes, classes)."""
        from sklearn.metrics import precision_recall_fscore_support

        occurring = np.flatnonzero(confusion.sum(axis=0) + confusion.sum(axis=1))
        actual, predicted = np.nonzero(confusion)
        counts = confusion[actual, predicted]

        def scores(average: str | None) -> tuple[Array, ...]:
            figures: tuple[Array, ...] = precision_recall_fscore_support(
                actual, predicted, labels=occurring, average=average, sample_weight=counts, zero_division=0
            )
            return figures

        precision, recall, f1, _ = scores(None)
        means = (tuple(map(float, scores(average)[:3])) for average in ("macro", "weighted"))
        return cls(tuple(occurring.tolist()), precision, recall, f1, confusion[occurring].sum(axis=1), *means)

    def lines(self, names: Sequence[str]) -> list[str]:
        """A table with a line for each class and for the means. `names` are those of all classes, by their index."""
        labels = _labels("class", [*(names[index] for index in self.classes), "mean", "weighted mean"])
        rows = [*zip(self.precision, self.recall, self.f1, strict=True), self.mean, self.weighted_mean]
        counts = [*self.num_targets.tolist(), *[self.num_targets.sum()] * 2]
        lines = [f"{labels[0]}{'precision':>10}{'recall':>9}{'F1':>9}{'targets':>12}"]
        for label, (precision, recall, f1), count in zip(labels[1:], rows, counts, strict=True):
            lines.append(f"{label}{precision:10.3f}{recall:9.3f}{f1:9.3f}{count:12,}")
        return lines


class TargetScores(NamedTuple):
    """How far the predictions are off, for each target, in its own units.

        R2 = 1 - sum((prediction - target)**2) / sum((target - mean(target))**2)
        MAE = mean(|prediction - target|)        RMSE = sqrt(mean((prediction - target)**2))

    R2 is NaN for a single example, and for a target that is constant 1 where it is met and 0 otherwise.
    """

    r2: Array
    mae: Array
    rmse: Array

    @classmethod
    def of(cls, prediction: Array, target: Array) -> TargetScores:
        """From two arrays (examples, targets)."""
        from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

        each = {"multioutput": "raw_values"}
        r2 = r2_score(target, prediction, **each) if len(target) > 1 else np.full(target.shape[1], np.nan)
        # The mean of equal numbers may differ from them in the last bit, and R2 would divide by its square.
        is_constant = np.ptp(target, axis=0) == 0
        r2 = np.where(is_constant & (len(target) > 1), (prediction == target).all(axis=0), r2)
        mae, rmse = (score(target, prediction, **each) for score in (mean_absolute_error, root_mean_squared_error))
        return cls(r2, mae, rmse)

    def lines(self, names: Sequence[str]) -> list[str]:
        """A table with a line for each target."""
        labels = _labels("target", names)
        lines = [f"{labels[0]}{'R2':>10}{'MAE':>14}{'RMSE':>14}"]
        for label, r2, mae, rmse in zip(labels[1:], *self, strict=True):
            shown = f"{r2:.3f}" if abs(r2) < LARGE_R2 else f"{r2:.3g}"
            lines.append(f"{label}{shown:>10}{mae:14.5g}{rmse:14.5g}")
        return lines


class LabelScores(NamedTuple):
    """Accuracy, precision, recall and F1 of each label that an example may have beside others, and how many have it.

        accuracy  = right / all examples                  precision = right yes / predicted yes
        recall    = right yes / examples with the label   F1        = 2 / (1 / precision + 1 / recall)

    An example is predicted to have a label whose probability is above a half. A quotient by 0 is 0.
    """

    accuracy: Array
    precision: Array
    recall: Array
    f1: Array
    num_examples: Array

    @classmethod
    def of(cls, probability: Array, target: Array) -> LabelScores:
        """From two arrays (examples, labels): the second has 0 and 1."""
        predicted, actual = probability > 0.5, target == 1
        num_right, num_either = (predicted & actual).sum(axis=0), predicted.sum(axis=0) + actual.sum(axis=0)
        precision, recall = (num_right / np.maximum(which.sum(axis=0), 1) for which in (predicted, actual))
        f1 = 2 * num_right / np.maximum(num_either, 1)
        return cls((predicted == actual).mean(axis=0), precision, recall, f1, actual.sum(axis=0))

    def lines(self, names: Sequence[str]) -> list[str]:
        """A table with a line for each label."""
        labels = _labels("label", names)
        lines = [f"{labels[0]}{'accuracy':>10}{'precision':>11}{'recall':>9}{'F1':>9}{'examples':>12}"]
        for label, accuracy, precision, recall, f1, count in zip(labels[1:], *self, strict=True):
            lines.append(f"{label}{accuracy:10.3f}{precision:11.3f}{recall:9.3f}{f1:9.3f}{count:12,}")
        return lines


def roc_auc(score: Array, is_second: Array) -> float | None:
    """The area under the ROC curve of two classes: how often an example of the second class has a larger score than one
    of the first. None where one class alone occurs.
    """
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(is_second, score)) if len(np.unique(is_second)) == 2 else None


def _labels(heading: str, names: Sequence[str]) -> list[str]:
    """The first column of a table, its heading first."""
    texts = [heading, *shorten(names, MAXIMUM_NAME)]
    width = max(map(len, texts))
    return [text.ljust(width) for text in texts]
