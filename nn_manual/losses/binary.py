"""Losses of outputs that are yes or no, each by itself: one probability for each element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nn_manual.arrays import Array, Shape, size_of
from nn_manual.losses.base import Loss
from nn_manual.losses.elementwise import ElementwiseLoss, check_values, check_weights
from nn_manual.messages.text import counted

#: torch.nn.BCELoss takes no logarithm below this: a probability of 0 would have an infinite loss.
SMALLEST_LOGARITHM = -100
#: What torch.nn.BCELoss divides by at least, where it takes the derivative: in float64, too, it is a number of float32.
SMALLEST_VARIANCE = float(np.float32(1e-12))


def check_num_outputs(loss: Loss, prediction: Array, **weights: list[float] | None) -> None:
    """Raise ValueError if a setting has neither one number nor one for each output, the prediction's last dimension."""
    num_outputs = prediction.shape[-1] if prediction.ndim else 1
    for name, given in weights.items():
        if given is not None and len(given) not in (1, num_outputs):
            raise ValueError(
                f"{type(loss).__name__}: {name} has {counted(len(given), 'number')}, the prediction "
                f"{counted(num_outputs, 'output')}: it takes one number for each output, or one for all"
            )


@dataclass(eq=False)
class OfProbability(ElementwiseLoss):
    """A loss whose target is the probability that the answer is yes: 1, 0, or between. `weight` has a number for each
    output, or one for all; None means 1 for each.
    """

    weight: list[float] | None = None

    threshold = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        self.weight = check_weights("weight", self.weight)

    def weighted(self, values: Array) -> Array:
        """The values times the weights of their outputs."""
        return values if self.weight is None else values * np.array(self.weight, values.dtype)

    def as_target(self, values: Array) -> Array:
        """Each number, or the nearer end of 0 ... 1."""
        return np.clip(values, 0, 1)

    def check_target(self, prediction: Array, target: Array) -> None:
        """Raise ValueError if the shapes differ, for other numbers of outputs than weights, and for a target outside
        0 ... 1, and TypeError if the dtypes differ.
        """
        super().check_target(prediction, target)
        check_num_outputs(self, prediction, weight=self.weight)
        check_values(self, target, lambda values: (values >= 0) & (values <= 1), "a probability, from 0 to 1")


@dataclass(eq=False)
class BCELoss(OfProbability):
    """Binary cross-entropy of probabilities; prediction and target, both from 0 to 1, have equal shapes, N elements.

        log_yes         = maximum(log(prediction), -100)
        log_no          = maximum(log1p(-prediction), -100)
        term            = weight * (target * -log_yes + (1 - target) * -log_no)
        variance        = maximum(prediction * (1 - prediction), float32(1e-12))
        loss            = mean(term)                                         where reduction = mean
        loss            = sum(term)                                          where reduction = sum
        grad_prediction = weight * (prediction - target) / variance / N      where reduction = mean
        grad_prediction = weight * (prediction - target) / variance          where reduction = sum

    Derivation: d (-t log p - (1 - t) log(1 - p)) / dp = -t / p + (1 - t) / (1 - p) = (p - t) / (p (1 - p)).
    At 0 and 1 it is infinite. Both bounds are torch's, which bounds the loss and its derivative each by itself. A
    prediction that comes from a sigmoid loses its digits near 1: BCEWithLogitsLoss keeps them.
    Raises ValueError for weights that are negative or not finite.
    """

    domain = (0.0, 1.0)

    @classmethod
    def examples(cls, num_outputs: int = 5) -> list[Loss]:
        """Both reductions, and weights."""
        return [cls("mean"), cls("sum", [(1 + number) / 2 for number in range(num_outputs)])]

    def term(self, prediction: Array, target: Array) -> tuple[Array, tuple[Array, Array]]:
        """The surprise; saves prediction and target."""
        with np.errstate(divide="ignore", invalid="ignore"):  # the logarithm of 0, or of what is no probability
            log_yes = np.maximum(np.log(prediction), SMALLEST_LOGARITHM)
            log_no = np.maximum(np.log1p(-prediction), SMALLEST_LOGARITHM)
        return self.weighted(target * -log_yes + (1 - target) * -log_no), (prediction, target)

    def derivative(self, saved: tuple[Array, Array]) -> Array:
        """(prediction - target) / variance, weighted."""
        prediction, target = saved
        variance = np.maximum(prediction * (1 - prediction), SMALLEST_VARIANCE)
        return self.weighted((prediction - target) / variance)


class SavedLogits(NamedTuple):
    """What the gradients of a loss of logits need."""

    prediction: Array
    target: Array
    exponential: Array
    surprise_if_yes: Array


@dataclass(eq=False)
class OfLogits(OfProbability):
    """Binary cross-entropy of logits, whose terms may be put together in more than one way."""

    threshold = 0.0

    def positive(self, values: Array) -> Array:
        """The values times what a yes of their output weighs."""
        return values

    def term(self, prediction: Array, target: Array) -> tuple[Array, SavedLogits]:
        """The surprise; saves what both gradients need."""
        exponential = np.exp(-np.abs(prediction))
        log_sum = np.log1p(exponential)
        surprise_if_yes = np.maximum(-prediction, 0) + log_sum
        surprise_if_no = np.maximum(prediction, 0) + log_sum
        term = self.positive(target * surprise_if_yes) + (1 - target) * surprise_if_no
        return self.weighted(term), SavedLogits(prediction, target, exponential, surprise_if_yes)

    def derivative(self, saved: SavedLogits) -> Array:
        """The probability of a yes where the answer is no, less that of a no where it is yes."""
        prediction, target, exponential, _ = saved
        denominator = 1 + exponential
        yes = np.where(prediction > 0, 1, exponential) / denominator
        no = np.where(prediction > 0, exponential, 1) / denominator
        return self.weighted((1 - target) * yes - self.positive(target * no))

    def backward_target(self, saved: SavedLogits) -> Array:
        """grad_target."""
        surprise_if_yes = saved.surprise_if_yes
        more = self.positive(surprise_if_yes) - surprise_if_yes
        return self.divided(self.weighted(more - saved.prediction))


@dataclass(eq=False)
class BCEWithLogitsLoss(OfLogits):
    """Binary cross-entropy of logits: of the probabilities 1 / (1 + exp(-prediction)); equal shapes, N elements.

        exponential     = exp(-abs(prediction))
        log_sum         = log1p(exponential)
        surprise_if_yes = maximum(-prediction, 0) + log_sum
        surprise_if_no  = maximum(prediction, 0) + log_sum
        yes             = where(prediction > 0, 1, exponential) / (1 + exponential)
        no              = where(prediction > 0, exponential, 1) / (1 + exponential)
        term            = weight * (target * pos_weight * surprise_if_yes + (1 - target) * surprise_if_no)
        loss            = mean(term)                                                       where reduction = mean
        loss            = sum(term)                                                        where reduction = sum
        grad_prediction = weight * ((1 - target) * yes - target * pos_weight * no) / N     where reduction = mean
        grad_prediction = weight * ((1 - target) * yes - target * pos_weight * no)         where reduction = sum
        grad_target     = weight * ((pos_weight - 1) * surprise_if_yes - prediction) / N   where reduction = mean
        grad_target     = weight * ((pos_weight - 1) * surprise_if_yes - prediction)       where reduction = sum

    weight and pos_weight have a number for each output, the last dimension, or one for all, as for masks of images.
    pos_weight is how much more a yes weighs than a no.

    Derivation: yes = 1 / (1 + exp(-x)) and no = 1 - yes = 1 / (1 + exp(x)), so -log(yes) = log(1 + exp(-x)) and
    -log(no) = log(1 + exp(x)). Their derivatives are -exp(-x) / (1 + exp(-x)) = -no and exp(x) / (1 + exp(x)) = yes,
    and their difference is log(exp(-x)) = -x.
    With exp(-|x|) nothing overflows: log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)). A confident answer that is right
    keeps the digits of its small gradient, which yes - target would lose.
    Raises ValueError for weights that are negative or not finite.
    """

    pos_weight: list[float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.pos_weight = check_weights("pos_weight", self.pos_weight)

    @classmethod
    def examples(cls, num_outputs: int = 5) -> list[Loss]:
        """Both reductions, and both kinds of weights."""
        weight = [(1 + number) / 2 for number in range(num_outputs)]
        return [cls("mean"), cls("sum", weight), cls("mean", None, weight[::-1])]

    def positive(self, values: Array) -> Array:
        """The values times what a yes of their output weighs."""
        return values if self.pos_weight is None else values * np.array(self.pos_weight, values.dtype)

    def check_target(self, prediction: Array, target: Array) -> None:
        """As every loss of probabilities, and the same of `pos_weight`."""
        super().check_target(prediction, target)
        check_num_outputs(self, prediction, pos_weight=self.pos_weight)


@dataclass(eq=False)
class MultiLabelSoftMarginLoss(OfLogits):
    """Binary cross-entropy of logits, the mean over the labels of each example; equal shapes (..., labels).

        exponential     = exp(-abs(prediction))
        log_sum         = log1p(exponential)
        surprise_if_yes = maximum(-prediction, 0) + log_sum
        surprise_if_no  = maximum(prediction, 0) + log_sum
        yes             = where(prediction > 0, 1, exponential) / (1 + exponential)
        no              = where(prediction > 0, exponential, 1) / (1 + exponential)
        term            = weight * (target * surprise_if_yes + (1 - target) * surprise_if_no)
        loss            = mean(term)                                               where reduction = mean
        loss            = sum(term) / labels                                       where reduction = sum
        grad_prediction = weight * ((1 - target) * yes - target * no) / N          where reduction = mean
        grad_prediction = weight * ((1 - target) * yes - target * no) / labels     where reduction = sum
        grad_target     = weight * -prediction / N                                 where reduction = mean
        grad_target     = weight * -prediction / labels                            where reduction = sum

    Derivation: as BCEWithLogitsLoss, of which it is the mean where the mean is asked for.
    Raises ValueError for weights that are negative or not finite.
    """

    @classmethod
    def examples(cls, num_outputs: int = 5) -> list[Loss]:
        """Both reductions, and weights."""
        return [cls("mean"), cls("sum", [(1 + number) / 2 for number in range(num_outputs)])]

    def num_terms(self, shape: Shape) -> int:
        """All of them for the mean, and the labels of an example for the sum."""
        return size_of(shape) if self.reduction == "mean" else shape[-1]

    def check_target(self, prediction: Array, target: Array) -> None:
        """As every loss of probabilities; without dimensions, there are no labels."""
        super().check_target(prediction, target)
        if not prediction.ndim:
            raise ValueError("MultiLabelSoftMarginLoss takes predictions (..., labels), not one without dimensions")
