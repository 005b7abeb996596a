"""Clipping: a bound on the norm of the whole gradient, or on each of its numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nn_manual.arrays import Array, blocks
from nn_manual.plain_settings import check_type


@np.errstate(over="ignore")  # an infinite norm is part of the formula
def clip_grad_norm(grad: Array, max_norm: float) -> np.float64:
    """Scale `grad` in place so that its norm is at most `max_norm`; return the norm that it had.

        norm = sqrt(sum(grad**2))
        grad = grad * min(1, max_norm / (norm + 1e-6))

    The 1e-6 is the one of torch.nn.utils.clip_grad_norm_. Squares are added in grad's dtype within a block, and in
    float64 across blocks. If squares overflow, the norm is infinite and the gradient becomes 0, as in torch.
    """
    squares = (np.dot(grad[block], grad[block]).astype(np.float64) for block in blocks(grad.size))
    norm: np.float64 = np.sqrt(sum(squares, start=np.float64(0)))
    scale = np.minimum(1, max_norm / (norm + 1e-6))
    grad *= scale.astype(grad.dtype)
    return norm


@np.errstate(over="ignore")  # a bound that the dtype can't hold is infinite
def clip_grad_value(grad: Array, clip_value: float) -> None:
    """Move each number of `grad` that is further from 0 than `clip_value` to that distance, in place, as
    torch.nn.utils.clip_grad_value_ does.

        grad = min(max(grad, -clip_value), clip_value)

    A number that isn't a number stays so; an infinite one is clipped like every other.
    """
    np.clip(grad, -clip_value, clip_value, out=grad)


@dataclass(frozen=True)
class Clipping(ABC):
    """What a step does to the whole gradient before the optimizer moves the parameters along it."""

    #: The norm, or the number, that is kept.
    bound: float

    #: The key of a config, and the setting of a Trainer, that asks for it.
    key: ClassVar[str]
    #: The lines that `unroll` shows above it.
    formulas: ClassVar[tuple[str, ...]]

    @abstractmethod
    def clip(self, grad: Array) -> None:
        """Clip a flat gradient in place."""


class NormClipping(Clipping):
    """Clips by the norm of all parameters' gradient together."""

    key = "clip_grad_norm"
    formulas = ("norm = sqrt(sum(grad**2))", "grad = grad * min(1, max_norm / (norm + 1e-6))")

    def clip(self, grad: Array) -> None:
        """See clip_grad_norm."""
        clip_grad_norm(grad, self.bound)


class ValueClipping(Clipping):
    """Clips each number by itself."""

    key = "clip_grad_value"
    formulas = ("grad = min(max(grad, -clip_value), clip_value)",)

    def clip(self, grad: Array) -> None:
        """See clip_grad_value."""
        clip_grad_value(grad, self.bound)


#: Why only one of the two may be given.
BOTH = "one of clip_grad_norm and clip_grad_value must go: what a step does would depend on which comes first"


def clipping_of(clip_grad_norm: float | None, clip_grad_value: float | None) -> Clipping | None:
    """What these settings ask for. Raises TypeError for a bound that is no number, and ValueError for one that
    isn't above 0, and where both are given.
    """
    norm, value = clip_grad_norm, clip_grad_value
    for name, bound in {"clip_grad_norm": norm, "clip_grad_value": value}.items():
        if bound is None:
            continue
        check_type(float, **{name: bound})
        if not bound > 0:
            raise ValueError(f"{name} must be above 0, not {bound}")
    if norm is not None and value is not None:
        raise ValueError(BOTH)
    if norm is not None:
        return NormClipping(norm)
    return None if value is None else ValueClipping(value)
