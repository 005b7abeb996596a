"""The smallest relative error that the check always catches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.mutation.replacing import change_gradient
from benchmarks.mutation.subjects import SEED
from nn_manual.arrays import Array
from nn_manual.check.catalogue.cases import CaseResult, layer_cases, loss_cases
from nn_manual.defaults import defines
from nn_manual.layers import Layer
from nn_manual.losses import Loss

#: The errors tried, from large to small, down to the tolerance of the check.
ERRORS = {"float32": (1e-2, 1e-4, 2e-5, 1e-5), "float64": (1e-2, 1e-10, 2e-12, 1e-12)}


class Smallest(NamedTuple):
    """For one tensor of one class: the smallest of ERRORS that is always caught, together with all larger ones;
    infinite if none is. `num_errors` were made. `num_alone` of them say nothing: there the gradient is only rounding,
    as after batch normalization of equal numbers, and twice the gradient is not caught, either.
    """

    owner: str
    tensor: str
    dtype: str
    error: float
    num_errors: int
    num_alone: int


#: Where a tensor is made wrong: everywhere by one factor, or only in the row or the element with the largest magnitude.
PLACES: dict[str, Callable[[Array], Any]] = {
    "everywhere": lambda right: slice(None),  # noqa: ARG005 - whatever its values
    "one row": lambda right: int(np.argmax(np.abs(right).max(axis=tuple(range(1, right.ndim))))),
    "one element": lambda right: np.unravel_index(np.argmax(np.abs(right)), right.shape),
}


class Fault:
    """Makes a tensor wrong by a relative `error` at a `place`; `made` says whether that was possible since `made` was
    set to None.
    """

    def __init__(self, place: str, error: float) -> None:
        self.place, self.error = place, error
        self.made: bool | None = None

    def __call__(self, right: Array) -> Array:
        """A wrong copy. Zeros stay as they are."""
        wrong = right.copy()
        wrong[PLACES[self.place](right)] *= 1 + self.error
        if self.made is None:
            self.made = not np.array_equal(wrong, right)
        return wrong


def smallest(owner: type[Layer] | type[Loss], tensor: str, dtype: str) -> Smallest:
    """Make `tensor` ("grad_weight", ...) of every example of a class wrong by smaller and smaller errors, for every
    kind of input of the catalogue with every kind of upstream gradient, until one is not caught.
    """
    caught, num_errors, num_alone = float("inf"), 0, 0
    doubled: list[CaseResult] = []  # each case with twice the gradient, where one of them was needed
    for error in ERRORS[dtype]:
        for place in PLACES:
            fault = Fault(place, error)
            for number, case in enumerate(_cases(change_gradient(owner, tensor, fault), dtype)):
                num_errors += bool(fault.made)
                if fault.made and case.failure is None:
                    doubled = doubled or list(_cases(change_gradient(owner, tensor, Fault("everywhere", 1.0)), dtype))
                    if doubled[number].failure is not None:
                        return Smallest(owner.__name__, tensor, dtype, caught, num_errors, num_alone)
                    num_alone += 1
                fault.made = None
        caught = error
    return Smallest(owner.__name__, tensor, dtype, caught, num_errors, num_alone)


def tensors(owner: type[Layer] | type[Loss]) -> list[str]:
    """The names of all gradients that a class computes."""
    if issubclass(owner, Layer):
        parameters = {f"grad_{name}": None for layer, _ in owner.examples() for name in layer.parameter_shapes()}
        return [*parameters, "grad_input"]
    return ["grad_prediction", *(["grad_target"] if defines(owner, "backward_target") else [])]


def _cases(owner: type[Any], dtype: str) -> Iterator[CaseResult]:
    for example in owner.examples():
        if issubclass(owner, Layer):
            layer, input_shape = example
            yield from layer_cases(layer, input_shape, dtype, SEED)
        else:
            yield from loss_cases(example, dtype, SEED)
