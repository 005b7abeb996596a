"""Negative log-likelihoods of numbers: of a Gaussian and a Poisson distribution; and a divergence of distributions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nn_manual.arrays import Array, Domain, Shape, size_of
from nn_manual.losses.absolute_error import OfDifference
from nn_manual.losses.base import Loss
from nn_manual.losses.elementwise import ElementwiseLoss, check_values


@dataclass(eq=False)
class GaussianNLLLoss(OfDifference):
    """Negative log-likelihood of a Gaussian distribution whose mean is the prediction; equal shapes, N elements.

        constant        = log(var) / 2                                              where full = False
        constant        = log(var) / 2 + log(2 * pi) / 2                            where full = True
        loss            = mean((prediction - target)**2 / var / 2 + constant)       where reduction = mean
        loss            = sum((prediction - target)**2 / var / 2 + constant)        where reduction = sum
        grad_prediction = (prediction - target) / var / N                           where reduction = mean
        grad_prediction = (prediction - target) / var                               where reduction = sum
        grad_target     = -grad_prediction

    The variance, `var`, is fixed: torch.nn.GaussianNLLLoss takes it beside the prediction. `full` adds what depends on
    nothing.

    Derivation: the density of the target t is exp(-(t - p)**2 / (2 var)) / sqrt(2 pi var). The derivative of its
    negative logarithm with respect to p is (p - t) / var.
    Raises ValueError for a variance that is not positive.
    """

    var: float = 1.0
    full: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.var < math.inf:
            raise ValueError(f"var must be positive and finite, not {self.var}")

    @classmethod
    def examples(cls, num_outputs: int = 5) -> list[Loss]:  # noqa: ARG003 - it takes any number
        """Both reductions, another variance, and the whole likelihood."""
        return [cls("mean"), cls("sum", 0.3, full=True)]

    def term(self, prediction: Array, target: Array) -> tuple[Array, Array]:
        """The surprise; saves the difference."""
        difference = prediction - target
        return difference * difference / self.var / 2 + self.constant(), difference

    def constant(self) -> float:
        """What depends on neither prediction nor target."""
        return math.log(self.var) / 2 + (math.log(2 * math.pi) / 2 if self.full else 0)

    def derivative(self, saved: Array) -> Array:
        """The difference in units of the variance."""
        difference = saved
        return difference / self.var

    def reference(self, prediction: Any, target: Any) -> Any:
        """torch's formula, of a variance that is the same for all."""
        terms = ((prediction - target) ** 2 / self.var + math.log(self.var)) / 2
        if self.full:
            terms = terms + 0.5 * math.log(2 * math.pi)
        return terms.mean() if self.reduction == "mean" else terms.sum()


@dataclass(eq=False)
class PoissonNLLLoss(ElementwiseLoss):
    """Negative log-likelihood of counts with a Poisson distribution; equal shapes, N elements.

        rate            = exp(prediction)                                            where log_input = True
        rate            = prediction                                                 where log_input = False
        surprise        = rate - target * prediction                                 where log_input = True
        surprise        = rate - target * log(prediction + eps)                      where log_input = False
        count           = maximum(target, 1)
        stirling        = count * log(count) - count + log(2 * pi * count) / 2
        rest            = where(target > 1, stirling, 0)
        term            = surprise                                                   where full = False
        term            = surprise + rest                                            where full = True
        derivative      = rate - target                                              where log_input = True
        derivative      = (prediction - target + eps) / (prediction + eps)           where log_input = False
        loss            = mean(term)                                                 where reduction = mean
        loss            = sum(term)                                                  where reduction = sum
        grad_prediction = derivative / N                                             where reduction = mean
        grad_prediction = derivative                                                 where reduction = sum

    The prediction is the logarithm of the rate, or with log_input false the rate itself. `full` adds Stirling's
    approximation of log(target!), on which no gradient depends.

    Derivation: the probability of the count t is r**t exp(-r) / t!, and its negative logarithm r - t log(r) + log(t!).
    With r = exp(p), the first two terms are exp(p) - t p. With r = p, their derivative is
    1 - t / (p + eps) = (p + eps - t) / (p + eps), which keeps its digits where t is near p.
    Raises ValueError for an eps that is not positive.
    """

    log_input: bool = True
    full: bool = False
    eps: float = 1e-8

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.eps < math.inf:
            raise ValueError(f"eps must be positive and finite, not {self.eps}")

    @property
    def domain(self) -> Domain:  # type: ignore[override]  # it depends on a setting
        """Rates; or their logarithms, as long as float32 holds the rate."""
        return (-math.inf, 80.0) if self.log_input else "positive"

    @classmethod
    def examples(cls, num_outputs: int = 5) -> list[Loss]:  # noqa: ARG003 - it takes any number
        """Both reductions, both kinds of predictions, and the whole likelihood."""
        return [cls("mean"), cls("sum", full=True), cls("mean", log_input=False, eps=1e-3)]

    def term(self, prediction: Array, target: Array) -> tuple[Array, tuple[Array, Array]]:
        """The surprise; saves the rate and the target."""
        rate = np.exp(prediction) if self.log_input else prediction
        with np.errstate(invalid="ignore"):  # the logarithm of what is no rate
            log_rate = prediction if self.log_input else np.log(prediction + self.eps)
        term = rate - target * log_rate
        if self.full:
            count = np.maximum(target, 1)
            stirling = count * np.log(count) - count + np.log(2 * math.pi * count) / 2
            term = term + np.where(target > 1, stirling, 0)
        return term, (rate, target)

    def derivative(self, saved: tuple[Array, Array]) -> Array:
        """What is expected beyond the count."""
        rate, target = saved
        difference = rate - target
        return difference if self.log_input else (difference + self.eps) / (rate + self.eps)

    def as_target(self, values: Array) -> Array:
        """The size of each number."""
        return np.abs(values)

    def check_target(self, prediction: Array, target: Array) -> None:
        """Raise ValueError if the shapes differ and for a negative target, and TypeError if the dtypes differ."""
        super().check_target(prediction, target)
        check_values(self, target, lambda values: values >= 0, "a count, 0 or more")


@dataclass(eq=False)
class KLDivLoss(ElementwiseLoss):
    """Kullback-Leibler divergence of the target from exp(prediction); equal shapes, N elements in `batch` examples.

        probability     = exp(target)                                                       where log_target = True
        probability     = target                                                            where log_target = False
        term            = probability * (target - prediction)                               where log_target = True
        term            = target * log(where(target > 0, target, 1)) - target * prediction  where log_target = False
        loss            = mean(term)                                                        where reduction = mean
        loss            = sum(term)                                                         where reduction = sum
        loss            = sum(term) / batch                                                 where reduction = batchmean
        grad_prediction = -probability / N                                                  where reduction = mean
        grad_prediction = -probability                                                      where reduction = sum
        grad_prediction = -probability / batch                                              where reduction = batchmean

    The prediction is the logarithm of a probability, as LogSoftmax gives it. The target is a probability, or
    with log_target its logarithm. "batchmean" is the divergence itself, averaged over the examples; "mean" divides by
    the number of outcomes, too.

    Derivation: the divergence of q from p is sum_i q[i] log(q[i] / p[i]) = sum_i q[i] (log q[i] - log p[i]), whose
    derivative with respect to log p[i] is -q[i]. The limit of q log q at 0 is 0.
    """

    REDUCTIONS: ClassVar[tuple[str, ...]] = ("mean", "sum", "batchmean")

    log_target: bool = False

    @classmethod
    def examples(cls, num_outputs: int = 5) -> list[Loss]:  # noqa: ARG003 - it takes any number
        """Each reduction, and targets that are logarithms."""
        return [cls("mean"), cls("sum", log_target=True), cls("batchmean")]

    def num_terms(self, shape: Shape) -> int:
        """All of them, or one for each example."""
        if self.reduction == "batchmean":
            return shape[0] if shape else 1
        return size_of(shape) if self.reduction == "mean" else 1

    def term(self, prediction: Array, target: Array) -> tuple[Array, Array]:
        """The divergence; saves the target's probability."""
        if self.log_target:
            probability = np.exp(target)
            return probability * (target - prediction), probability
        logarithm = np.log(np.where(target > 0, target, 1))
        return target * logarithm - target * prediction, target

    def derivative(self, saved: Array) -> Array:
        """Minus the target's probability."""
        probability = saved
        return -probability

    def reference(self, prediction: Any, target: Any) -> Any:
        """torch.nn.KLDivLoss warns of the mean each time that it is asked for it."""
        terms = target.xlogy(target) - target * prediction
        if self.log_target:
            terms = target.exp() * (target - prediction)
        if self.reduction == "mean":
            return terms.mean()
        return terms.sum() / len(terms) if self.reduction == "batchmean" else terms.sum()

    def as_target(self, values: Array) -> Array:
        """Probabilities: each number, or the nearer end of 0 ... 1; or logarithms of some."""
        return -np.abs(values) if self.log_target else np.clip(values, 0, 1)

    def check_target(self, prediction: Array, target: Array) -> None:
        """Raise ValueError if the shapes differ, and for a negative target that is no logarithm, and TypeError if the
        dtypes differ.
        """
        super().check_target(prediction, target)
        if not self.log_target:
            check_values(self, target, lambda values: values >= 0, "a probability, 0 or more")
