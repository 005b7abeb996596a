"""The contract that every loss keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Domain
from nn_manual.defaults import default, defines, take_from_behind
from nn_manual.plain_settings import after_settings, take_settings


class LossDefaults:
    """The part of a Loss that few losses override. Each default is right for a loss that doesn't say otherwise.

    `forward` and `backward` are formulas: they assume that the target fits, and never branch on a value.
    `check_target` refuses a target. The trainer and the check call it, once for a data set or for a batch.
    """

    #: "sum" for a loss whose batches add up, or a mean, such as "mean": how the losses of several batches are put
    #: together.
    reduction: str = "mean"
    #: The predictions that the loss takes. The check draws from them.
    domain: Domain = "real"
    #: Whether a class index is the target of the prediction at its place. Only then is there an accuracy.
    has_places: bool = True
    #: For a loss whose targets are 1 for yes and 0 for no: the prediction above which the answer is yes.
    threshold: float | None = None

    def __post_init__(self) -> None:
        """Take the settings: a subclass may raise ValueError for those out of range."""
        take_settings(self)

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "__post_init__" in vars(cls):
            cls.__post_init__ = after_settings(cls.__post_init__)  # type: ignore[method-assign]  # the same, on plain values
        take_from_behind(cls, ("reference", "backward_target", "as_target"))

    @default
    def backward_target(self, saved: Any) -> Array:
        """grad_target, shaped as the target, for a loss whose target has a gradient. By default it has none."""
        raise NotImplementedError

    @default
    def as_target(self, values: Array) -> Array:
        """Targets made of any numbers, in their shape, for a loss whose targets are some numbers only, as
        probabilities: each number is moved to one that the loss takes. By default, a target is any number if the loss
        has `backward_target`, or else the index of a class.
        """
        return values

    def check_target(self, prediction: Array, target: Array) -> None:
        """Raise ValueError or TypeError, which name what is wrong, for a target that doesn't fit the prediction. Only
        the prediction's shape and dtype count.
        """

    def counted(self, target: Array) -> Array:
        """Which elements of the target count, as bools in the target's shape: all, unless the loss ignores some."""
        return np.ones(target.shape, dtype=bool)

    def check_data(self, target: Array, part: str = "data") -> None:
        """Raise ValueError if the target of a whole data set, or of a part of it, has elements, but none that counts.
        In a batch, it is allowed that none counts: the gradient is then 0.
        """
        if target.size and not self.counted(target).any():
            raise ValueError(f"{type(self).__name__} ignores every target of the {part}")

    def check_slices(self, target: Array) -> None:
        """Raise ValueError if the losses of a batch's slices, weighted by their denominators, may not give the loss of
        the batch.
        """

    def denominator(self, target: Array) -> float:
        """What a mean divides by: if batches have the losses l and the denominators d, the loss of all of them together
        is sum(d * l) / sum(d). By default it is the number of examples; a loss with weights has another one.
        """
        return float(len(target)) if target.ndim else 1.0

    def denominators(self, targets: Array) -> list[float]:
        """The `denominator` of each of several batches, stacked: (batches, batch, ...)."""
        return [self.denominator(target) for target in targets]

    def has_value(self, denominator: float) -> bool:
        """Whether the loss of a batch with this denominator is a number: a mean over nothing is not."""
        return denominator > 0 or self.reduction == "sum"


class Loss(LossDefaults, ABC):
    """A scalar function of (prediction, target). Its gradients begin with that of the loss with respect to itself, 1.

    Concrete losses are dataclasses whose fields are keyword arguments of the torch.nn class of the same name. Without a
    field `reduction`, a loss is a mean over its `denominator`, by default the examples; one that returns a sum needs
    reduction = "sum" in its class. What else a loss may say is in LossDefaults.
    """

    @abstractmethod
    def forward(self, prediction: Array, target: Array) -> tuple[Any, Any]:
        """`value, saved`: the scalar loss in the prediction's dtype, and exactly what `backward` needs."""

    @abstractmethod
    def backward(self, saved: Any) -> Array:
        """grad_prediction, shaped as the prediction."""

    @default
    def reference(self, prediction: Any, target: Any) -> Any:
        """The loss's formula on torch tensors, for a loss that torch.nn doesn't have. By default, the reference is
        torch.nn's class of the loss's name.
        """
        raise NotImplementedError

    @classmethod
    def examples(cls, num_outputs: int = 5) -> list[Loss]:  # noqa: ARG003 - most losses take any number
        """Losses of this class with different settings: the catalogue checks them. The prediction has `num_outputs`
        columns: so many classes, if the loss has classes.
        """
        return [cls()]


def takes_numbers(loss: Loss | type[Loss]) -> bool:
    """Whether the targets of a loss are numbers, and not class indices."""
    return defines(loss, "backward_target") or defines(loss, "as_target")


def as_number(loss: Loss, value: Any) -> float:
    """`value`, which the loss's `forward` returned, as a Python number. Raises TypeError if it isn't one number."""
    try:
        return float(value)
    except TypeError:
        found = f"an array of shape {np.shape(value)}" if isinstance(value, np.ndarray) else type(value).__name__
        raise TypeError(f"{type(loss).__name__}.forward must return one number, not {found}") from None


def check_reduction(reduction: str, known: Sequence[str] = ("mean", "sum")) -> None:
    """Raise ValueError unless `reduction` is one of those that are known."""
    if reduction not in known:
        raise ValueError(f"reduction must be {' or '.join(known)}, not {reduction!r}")
