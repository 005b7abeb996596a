"""The usual figures of a classification and of a regression, as scikit-learn computes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nn_manual.arrays import Array
from nn_manual.messages.text import counted
from nn_manual.plotting.predictions import MAXIMUM_TARGETS
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

    @property
    def of_all(self) -> tuple[float, float, float]:
        """The three over all targets: R2 = mean(r2), MAE = mean(mae), RMSE = sqrt(mean(rmse**2))."""
        return float(self.r2.mean()), float(self.mae.mean()), float(np.sqrt(np.mean(self.rmse**2)))

    def lines(self, names: Sequence[str]) -> list[str]:
        """A table with a line for each target, of many for the first ones, and a line for all of them."""
        rows = []
        for r2, mae, rmse in [*zip(*(figures[:MAXIMUM_TARGETS] for figures in self), strict=True), self.of_all]:
            shown = f"{r2:.3f}" if abs(r2) < LARGE_R2 else f"{r2:.3g}"
            rows.append(f"{shown:>10}{mae:14.5g}{rmse:14.5g}")
        return _table("target", f"{'R2':>10}{'MAE':>14}{'RMSE':>14}", names, rows, f"all {len(names):,} targets")


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
        """A table with a line for each label, of many for the first ones, and a line for their mean."""
        scores = "{:10.3f}{:11.3f}{:9.3f}{:9.3f}"
        first = zip(*(column[:MAXIMUM_TARGETS] for column in self), strict=True)
        rows = [f"{scores.format(*figures)}{count:12,}" for *figures, count in first]
        rows.append(scores.format(*(column.mean() for column in self[:-1])))
        heading = f"{'accuracy':>10}{'precision':>11}{'recall':>9}{'F1':>9}{'examples':>12}"
        return _table("label", heading, names, rows, "mean")


def roc_auc(score: Array, is_second: Array) -> float | None:
    """The area under the ROC curve of two classes: how often an example of the second class has a larger score than one
    of the first. None where one class alone occurs.
    """
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(is_second, score)) if len(np.unique(is_second)) == 2 else None


def _table(noun: str, heading: str, names: Sequence[str], rows: Sequence[str], last: str) -> list[str]:
    """The lines of a table of targets or labels. `rows` has what stands behind the first names, and then what stands
    behind `last`, the name of the line for all of them: a single one needs no such line.
    """
    labels = _labels(noun, [*names[:MAXIMUM_TARGETS], *([last] if len(names) > 1 else [])])
    lines = [label + row for label, row in zip(labels, [heading, *rows], strict=False)]
    if len(names) > MAXIMUM_TARGETS:
        lines.insert(-1, f"... and {counted(len(names) - MAXIMUM_TARGETS, f'more {noun}')}")
    return lines


def _labels(heading: str, names: Sequence[str]) -> list[str]:
    """The first column of a table, its heading first."""
    texts = [heading, *shorten(names, MAXIMUM_NAME)]
    width = max(map(len, texts))
    return [text.ljust(width) for text in texts]
