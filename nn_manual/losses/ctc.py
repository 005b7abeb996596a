"""Connectionist temporal classification: labels in their order, of which nobody says at which times they stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.losses.base import Loss, check_reduction
from nn_manual.losses.class_targets import check_labels
from nn_manual.messages.text import counted

#: Stands for minus infinity, of which the difference from itself would be no number. Four of them add up in float32.
NEVER = -1e37


class Saved(NamedTuple):
    """What backward needs: the prediction's shape; the class of each state, (batch, states); 0 for the states that may
    follow the second one before them, and NEVER for the others, with two more behind them; 0 for the states in which a
    path may end, and NEVER for the others; the prediction of each state's class, and alpha less the largest of its time
    and example, (time, batch, states); whether an example has a path, and how much its cost counts.
    """

    shape: Shape
    state: Array
    skip: Array
    end: Array
    at: Array
    alpha: Array
    has_path: Array
    share: Array


@dataclass(eq=False)
class CTCLoss(Loss):
    """Minus the log-probability of labels in their order, prediction (batch, classes, time).

    The prediction is log-probabilities of classes, one of which is blank. The target is class indices, int64 (batch,
    longest): the labels of each example in their order. A blank in the target is no label; those behind the labels fill
    up its row. A path takes one class at each time. It is read without its repeats, and then without its blanks: with -
    for the blank, a a - a b reads a a b. Without a time, prediction (batch, classes) and target (batch,), there is one.

        at              = prediction.reshape(batch, classes, -1)[arange(batch)[:, newaxis], states(target)]
        alpha           = sums_before(at, target)
        beta            = sums_behind(at, target)
        num_labels      = sum(target.reshape(batch, -1) != blank, axis=1)
        cost            = -logsumexp(alpha[:, :, -1] + beta[:, :, -1], axis=1)
        has_path        = isfinite(cost)[:, newaxis, newaxis]
        cost            = where(isinf(cost), 0, cost)                                    where zero_infinity = True
        share           = ones(batch)                                                    where reduction = sum
        share           = 1 / maximum(num_labels, 1) / batch                             where reduction = mean
        loss            = sum(share * cost)
        together        = alpha + beta
        all_paths       = logsumexp(together, axis=1)[:, newaxis]
        posterior       = where(has_path, exp(together - where(has_path, all_paths, 0)), 0)
        is_class        = states(target)[:, newaxis] == arange(classes)[:, newaxis]
        grad_prediction = -(share[:, newaxis, newaxis] * (is_class @ posterior))
        grad_prediction = grad_prediction.reshape(prediction.shape)

    A path goes through states: blank, the first label, blank, the second, ..., blank. From one time to the next it
    stays, or goes on by one state, or by two where that leaves out the blank between two labels that differ. It begins
    in one of the first two states, and ends in the last label or in the blank behind it. `states` are the states'
    classes, (batch, states). alpha, (batch, states, time), is the logarithm of the sum over all paths up to this time
    that are in the state then: at[s, t] plus the logsumexp of alpha[r, t - 1] over the states r that s may follow. beta
    is that of the sum over all that go on from there, without this time: the logsumexp of beta[r, t + 1] + at[r, t + 1]
    over the states r that may follow s.

    A target with more labels and repeats than times has no path: its cost is infinite. It is refused, unless
    `zero_infinity`: then it costs nothing, and has no gradient.

    Derivation: the probability P of a target is the sum over its paths of products, one factor exp(prediction[c, t])
    for each time. So d P / d prediction[c, t] is the sum over the paths that take c at t. Such paths are in a state of
    the class c then. Those in the state s have the sum exp(alpha[s, t] + beta[s, t]): whatever comes before, times
    whatever comes behind. At each time, these sums of all states add up to P. The cost is -log P, and its derivative
    such a sum divided by -P. The posterior is the share of the paths that are in the state.

    torch adds exp(prediction) to this gradient: behind a LogSoftmax the two are the same, since that subtracts from
    each class's gradient its probability times their sum. For other predictions, torch's isn't the derivative of its
    value. In the code, the largest alpha and beta of each time are taken off: what remains keeps its digits.
    """

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False

    has_places = False

    def __post_init__(self) -> None:
        check_reduction(self.reduction)
        if self.blank < 0:
            raise ValueError(f"blank must be at least 0, not {self.blank}")

    @classmethod
    def examples(cls, num_outputs: int = 5) -> list[Loss]:
        """Both reductions, the last class as blank, and targets that may be too long."""
        return [cls(), cls(num_outputs - 1, "sum"), cls(0, "mean", zero_infinity=True), cls(1, "sum", True)]

    def check_target(self, prediction: Array, target: Array) -> None:
        """Raise TypeError for a target of another dtype. Raise ValueError for other shapes, for a blank that isn't one
        of the classes, for a label outside 0 ... classes - 1, and for a target that needs more times than there are,
        unless `zero_infinity`.
        """
        if target.dtype != np.int64:
            raise TypeError(f"CTCLoss takes int64 class indices as target, not {target.dtype}")
        num_dims = prediction.ndim
        if num_dims not in (2, 3) or target.ndim != num_dims - 1 or len(target) != len(prediction):
            raise ValueError(
                "CTCLoss takes a prediction (batch, classes, time), and as target indices (batch, longest), "
                f"not {prediction.shape} and {target.dtype} {target.shape}"
            )
        classes, time = prediction.shape[1], prediction.shape[2] if num_dims == 3 else 1
        if not time:
            raise ValueError(f"CTCLoss takes a prediction of one time at least, not {prediction.shape}")
        if self.blank >= classes:
            known = counted(classes, "class", "classes")
            raise ValueError(f"CTCLoss: blank must be one of the {known}, not {self.blank}")
        check_labels("CTCLoss", target, classes)
        if not self.zero_infinity:
            self._check_lengths(target, time)

    def states(self, target: Array) -> tuple[Array, Array]:
        """The class of each state, (batch, states), and the number of labels of each example."""
        target = target if target.ndim == 2 else target[:, np.newaxis]
        is_blank = target == self.blank
        order = np.argsort(is_blank, axis=1, kind="stable")
        state = np.full_like(target, self.blank, shape=(len(target), 2 * target.shape[1] + 1))
        state[:, 1::2] = np.take_along_axis(target, order, axis=1)
        return state, (~is_blank).sum(axis=1)

    def labels_and_times(self, target: Array) -> tuple[Array, Array]:
        """How many labels each target has, and how many times it needs: one for each label, and one for the blank
        between two equal ones.
        """
        state, num_labels = self.states(target)
        labels = state[:, 1::2]
        num_repeats = ((labels[:, 1:] == labels[:, :-1]) & (labels[:, 1:] != self.blank)).sum(axis=1)
        return num_labels, num_labels + num_repeats

    def _check_lengths(self, target: Array, time: int) -> None:
        """Raise ValueError for the first target that needs more times."""
        num_labels, num_times = self.labels_and_times(target)
        (too_long,) = np.nonzero(num_times > time)
        if too_long.size:
            row = int(too_long[0])
            labels, times = counted(int(num_labels[row]), "label"), counted(int(num_times[row]), "time")
            raise ValueError(
                f"CTCLoss: target {row} needs {times} for its {labels} and the blanks between equal ones, the "
                f"prediction has {time}: with zero_infinity it would not count"
            )

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Saved]:
        """The scalar loss; saves alpha. The mean over nothing is not a number."""
        num_rows = len(prediction)
        state, num_labels = self.states(target)
        num_states = state.shape[1]
        never = prediction.dtype.type(NEVER)
        # Two more states, in which no path is, make slices of what lies one state and two states away.
        skip = np.full_like(prediction, never, shape=(num_rows, num_states + 2))
        skip[:, 2:-2] = np.where(state[:, 2:] != state[:, :-2], 0, never)
        num_behind = 2 * num_labels[:, np.newaxis] - np.arange(num_states)
        end = np.where((num_behind == 0) | (num_behind == 1), prediction.dtype.type(0), never)
        rows = prediction if prediction.ndim == 3 else prediction[:, :, np.newaxis]
        at = np.maximum(np.moveaxis(np.take_along_axis(rows, state[:, :, np.newaxis], axis=1), 2, 0), never)
        alpha = np.full_like(prediction, never, shape=(len(at), num_rows, num_states + 2))
        alpha[0, :, 2:4] = at[0, :, :2]
        total = alpha[0].max(axis=1)
        alpha[0] -= total[:, np.newaxis]
        for time in range(1, len(at)):
            before = alpha[time - 1]
            ways = before[:, 2:], before[:, 1:-1], before[:, :-2] + skip[:, :-2]
            alpha[time, :, 2:] = _logsumexp(*ways) + at[time]
            peak = alpha[time].max(axis=1)
            alpha[time] -= peak[:, np.newaxis]
            total = total + peak
        at_the_end = alpha[-1, :, 2:] + end
        largest = at_the_end.max(axis=1)
        cost = -(total + largest + np.log(np.exp(at_the_end - largest[:, np.newaxis]).sum(axis=1)))
        has_path = ~(largest <= never / 2)  # what isn't a number stays none
        share = np.ones_like(cost)
        if self.reduction == "mean" and num_rows:
            share = share / np.maximum(num_labels, 1).astype(cost.dtype) / num_rows
        saved = Saved(prediction.shape, state, skip, end, at, alpha[:, :, 2:], has_path, share)
        if self.reduction == "mean" and not num_rows:
            return prediction.dtype.type(np.nan), saved
        of_none = prediction.dtype.type(0 if self.zero_infinity else np.inf)
        return (share * np.where(has_path, cost, of_none)).sum(), saved

    def backward(self, saved: Saved) -> Array:
        """grad_prediction."""
        shape, state, skip, end, at, alpha, has_path, share = saved
        num_times, num_rows, _ = at.shape
        beta = np.empty_like(at)
        beta[-1] = end
        after = np.full_like(skip, NEVER)
        for time in range(num_times - 2, -1, -1):
            after[:, :-2] = beta[time + 1] + at[time + 1]
            beta[time] = _logsumexp(after[:, :-2], after[:, 1:-1], after[:, 2:] + skip[:, 2:])
            beta[time] -= beta[time].max(axis=1, keepdims=True)
        together = alpha + beta
        # Without the logarithm of all paths, the shares sum to 1, however small each path is.
        paths = np.exp(together - together.max(axis=2, keepdims=True))
        posterior = paths / paths.sum(axis=2, keepdims=True)
        grad_prediction = np.zeros_like(at, shape=(num_rows * shape[1] * num_times,))
        starts = np.arange(0, num_rows * shape[1] * num_times, shape[1] * num_times)
        places = (state.T * num_times + starts).T + np.arange(num_times)[:, np.newaxis, np.newaxis]
        grads = np.where(has_path, -share, 0)[:, np.newaxis] * posterior
        np.add.at(grad_prediction, places.ravel(), grads.ravel())
        return grad_prediction.reshape(shape)


def _logsumexp(first: Array, second: Array, third: Array) -> Array:
    """log(exp(first) + exp(second) + exp(third)). The largest one is taken off first: so nothing overflows."""
    largest = np.maximum(np.maximum(first, second), third)
    total = np.exp(first - largest) + np.exp(second - largest) + np.exp(third - largest)
    result: Array = largest + np.log(total)
    return result
