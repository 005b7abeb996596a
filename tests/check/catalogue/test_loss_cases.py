"""A loss that ignores some targets: of a batch in which none counts there is nothing to check."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nn_manual.arrays import DTYPES, Array
from nn_manual.check.catalogue.cases import loss_cases
from nn_manual.check.catalogue.catalogue import Entry, row
from nn_manual.losses import Loss


class Masked(Loss):
    """The mean square over the targets that aren't 0."""

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Any]:
        error = np.where(self.counted(target), prediction - target, 0).astype(prediction.dtype)
        count = prediction.dtype.type(self.denominator(target))
        return (error * error).sum() / count, (error, count)

    def backward(self, saved: Any) -> Array:
        error, count = saved
        gradient: Array = 2 * error / count
        return gradient

    def backward_target(self, saved: Any) -> Array:
        return -self.backward(saved)

    def counted(self, target: Array) -> Array:
        counts: Array = target != 0
        return counts

    def denominator(self, target: Array) -> float:
        return float((target != 0).sum())

    def reference(self, prediction: Any, target: Any) -> Any:
        counts = target != 0
        return (prediction - target).where(counts, 0).square().sum() / counts.sum()


def checked(dtype: str = "float64", **members: Any) -> Entry:
    """The row of the loss with these members."""
    own: Any = type("Own", (Masked,), members)
    return row("Own()", dtype, loss_cases(own(), dtype, seed=0))


@pytest.mark.filterwarnings("ignore:invalid value")  # of a mean over nothing
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_batch_of_which_nothing_counts_is_left_out(dtype: str) -> None:
    found = checked(dtype)
    assert found.failure is None, str(found.failure)
    assert (found.num_cases, found.num_tensors) == (34, 204)  # of 40, 6 have targets of 0 alone


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"counted": lambda _, target: np.zeros(target.shape, bool), "denominator": lambda *_: 0.0},
         "Own() raised NothingCounts: Own counts no target of any case: there is no loss to check"),
        ({"counted": Loss.counted, "forward": lambda _, prediction, target: Masked().forward(prediction, target)},
         "Own counts no target of the batch: there is no loss to check; on random prediction, zero target, a batch of "
         "4: so says its `denominator`, and its `counted` says that some count"),
        ({"backward": lambda self, saved: 1.001 * Masked.backward(self, saved)},
         "wrong first in loss: loss.grad_prediction"),
        ({"denominator": lambda _, target: float(len(target)),
          "forward": lambda _, prediction, target: Masked().forward(prediction, target)},
         "loss (Own): its denominators give the first 2 of 4 examples the weight 0.5 in the mean"),
    ],
)  # fmt: skip - one case a line
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
def test_no_other_batch_is_left_out(members: dict[str, Any], problem: str) -> None:
    assert problem in " ".join(str(checked(**members).failure).split())
