"""A loss that gives a single layer any upstream gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nn_manual.arrays import Array
from nn_manual.losses import Loss


@dataclass(eq=False)
class UpstreamLoss(Loss):
    """The inner product of prediction and target, which gives a layer any upstream gradient: the target.

    loss            = sum(prediction * target)
    grad_prediction = target
    grad_target     = prediction
    """

    reduction = "sum"

    def forward(self, prediction: Array, target: Array) -> tuple[Any, tuple[Array, Array]]:
        """The scalar product; saves both."""
        return (prediction * target).sum(), (prediction, target)

    def backward(self, saved: tuple[Array, Array]) -> Array:
        """grad_prediction, a copy: a layer must not get the target itself."""
        return saved[1].copy()

    def backward_target(self, saved: tuple[Array, Array]) -> Array:
        """grad_target."""
        return saved[0].copy()

    def reference(self, prediction: Any, target: Any) -> Any:
        """The definition, on torch tensors."""
        return (prediction * target).sum()
