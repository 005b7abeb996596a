"""The direction of a step where L2 regularization is part of the gradient, or a step decays the parameters."""

from __future__ import annotations

from collections.abc import Mapping

from nn_manual.arrays import Array
from nn_manual.optim.base import Optimizer


class WithL2(Optimizer):
    """An optimizer whose formulas begin with these lines, and whose coefficients have weight_decay:

        direction = -grad if maximize else grad
        direction = direction + weight_decay * param

    The second is the gradient of weight_decay * sum(param**2) / 2, added.
    """

    weight_decay: float
    maximize: bool

    def direction(self, param: Array, grad: Array, coefficients: Mapping[str, Array]) -> Array:
        """The formulas, on one block."""
        direction = -grad if self.maximize else grad
        if self.weight_decay:
            direction = direction + coefficients["weight_decay"] * param
        return direction


class WithEitherDecay(WithL2):
    """An optimizer whose formulas begin with these lines, and whose coefficients have weight_decay and decay, which is
    1 - lr * weight_decay:

        direction = -grad if maximize else grad
        direction = direction if decoupled_weight_decay else direction + weight_decay * param
        param     = param - lr * weight_decay * param if decoupled_weight_decay else param
    """

    decoupled_weight_decay: bool

    def direction(self, param: Array, grad: Array, coefficients: Mapping[str, Array]) -> Array:
        """The formulas, on one block; `param` is decayed in place."""
        if not self.decoupled_weight_decay:
            return WithL2.direction(self, param, grad, coefficients)
        param *= coefficients["decay"]
        return -grad if self.maximize else grad
