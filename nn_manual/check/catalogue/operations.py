"""Every operation of `nn_manual.ops`, derived three ways: numerically, by hand, and by torch's autograd."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from nn_manual import ops
from nn_manual.arrays import DTYPES, Array
from nn_manual.check.catalogue.operation_cases import CASES, OperationCase
from nn_manual.check.compare.comparison import relative
from nn_manual.check.compare.tolerances import OPERATION_DIFFERENCES, SUM_OF_PRODUCTS
from nn_manual.check.judge.diagnosis import describe_difference


def _along(
    reduction: Callable[..., Any], input: torch.Tensor, axis: int | None = None, keepdims: bool = False
) -> torch.Tensor:
    """torch.max or torch.min, which along an axis return values and indices: the values."""
    result: torch.Tensor = reduction(input) if axis is None else reduction(input, axis, keepdims).values
    return result.reshape((1,) * input.ndim) if axis is None and keepdims else result


def _clip(input: torch.Tensor, min: float = -math.inf, max: float = math.inf) -> torch.Tensor:
    """torch's clamp, with a gradient of 1 at the limits: that of clamp itself depends on torch's version."""
    return torch.where(input < min, min, torch.where(input > max, max, input))


#: What torch calls the same operation, where name, options or the gradient at a kink are not ours.
REFERENCES: dict[str, Callable[..., torch.Tensor]] = {
    "power": torch.pow,
    "clip": _clip,
    "diagonal": lambda input, offset=0, axis1=0, axis2=1: torch.diagonal(input, offset, axis1, axis2),
    "transpose": lambda input, axes=None: input.permute(axes or tuple(reversed(range(input.ndim)))),
    "broadcast_to": lambda input, shape: input.expand(shape),
    "concatenate": lambda *inputs, axis=0: torch.cat(inputs, axis),
    "index": lambda input, key: input[key],
    "max": lambda input, axis=None, keepdims=False: _along(torch.max, input, axis, keepdims),
    "min": lambda input, axis=None, keepdims=False: _along(torch.min, input, axis, keepdims),
    "logsumexp": lambda input, axis=None, keepdims=False: torch.logsumexp(
        input, tuple(range(input.ndim)) if axis is None else axis, keepdims
    ),
    "softmax": lambda input, axis=-1: torch.softmax(input, axis),
}


def torch_reference(operation: ops.Operation) -> Callable[..., torch.Tensor]:
    """The same operation in torch, taking our options."""
    reference: Callable[..., torch.Tensor] = REFERENCES.get(operation.__name__) or getattr(torch, operation.__name__)
    return reference


def torch_gradients(
    operation: ops.Operation, operands: Sequence[Array], options: dict[str, Any], grad_answer: Array
) -> list[Array]:
    """The gradient for each operand by torch's autograd."""
    tensors = [torch.tensor(operand, requires_grad=True) for operand in operands]
    answer = torch_reference(operation)(*tensors, **options)
    gradients = torch.autograd.grad(answer, tensors, torch.tensor(grad_answer))
    return [gradient.numpy() for gradient in gradients]


@dataclass(frozen=True)
class Derivative:
    """One gradient, derived three ways: arrays of the operand's shape, the numerical one in float64."""

    operation: ops.Operation
    operand: str
    numerical: Array
    ours: Array
    reference: Array

    @property
    def dtype(self) -> str:
        """The name of the operand's dtype."""
        return str(self.reference.dtype)

    @property
    def complaint(self) -> str:
        """What differs beyond the tolerance, and how; empty where nothing does."""
        tolerance = SUM_OF_PRODUCTS[self.dtype]
        numerical_tolerance = tolerance if self.operation.analytic else max(tolerance, OPERATION_DIFFERENCES)
        if not _error(self.ours, self.reference) <= tolerance:
            return f"torch disagrees: {describe_difference(self.ours, self.reference)}"
        if not _error(self.ours, self.numerical) <= numerical_tolerance:
            return f"numbers disagree: {describe_difference(self.ours, self.numerical.astype(self.dtype))}"
        return ""

    def __str__(self) -> str:
        """A row of the table, with the three values where ours and torch's differ most (or the largest, where nothing
        differs) and max|ours - torch| over max|torch|; a complaint in a line of its own.
        """
        same_shape = self.ours.shape == self.reference.shape
        ours = self.ours if same_shape else np.full_like(self.reference, np.nan)  # no entry of it belongs anywhere
        difference = ours - self.reference
        worst = np.argmax(np.abs(difference if difference.any() else self.reference))
        row = (
            f"{self.operation.__name__:<12} {self.operand:<9} {self.reference.shape!s:<9} "
            f"{self.numerical.flat[worst]:>10.3e} {ours.flat[worst]:>12.3e} {self.reference.flat[worst]:>10.3e} "
            f"{_error(self.ours, self.reference):>7.1e} {'FAIL' if self.complaint else 'ok'}"
        )
        return f"{row}\n{textwrap.fill(self.complaint, 80, initial_indent='    ', subsequent_indent='    ')}".rstrip()


def _error(ours: Array, reference: Array) -> float:
    """max|ours - reference| / max|reference|; infinite where the shapes differ."""
    if ours.shape != reference.shape:
        return float("inf")
    return float(relative(np.abs(ours - reference).max(), np.abs(reference).max()))


@dataclass(frozen=True)
class OperationsReport:
    """All derivatives; `str()` is the table, 80 columns wide, `passed` whether none differs."""

    derivatives: tuple[Derivative, ...]

    @property
    def passed(self) -> bool:
        """Whether every gradient agrees with torch's and with the numerical one."""
        return not any(derivative.complaint for derivative in self.derivatives)

    def __str__(self) -> str:
        lines = []
        for dtype in DTYPES:
            header = ("numerical", "hand-derived", "torch", "error")
            lines.append("{:<32} {:>10} {:>12} {:>10} {:>7}".format(dtype, *header))
            lines.extend(str(derivative) for derivative in self.derivatives if derivative.dtype == dtype)
            lines.append("")
        num_failed = sum(bool(derivative.complaint) for derivative in self.derivatives)
        lines.append(f"{len(self.derivatives)} gradients of operations compared, {num_failed} differ")
        return "\n".join(lines)


def check_operations(cases: Sequence[OperationCase] = CASES, seed: int = 0) -> OperationsReport:
    """Derive every case three ways in each dtype, with normal operands and upstream gradients from `seed`."""
    generator = np.random.default_rng(seed)
    return OperationsReport(
        tuple(derivative for dtype in DTYPES for case in cases for derivative in _derive(case, dtype, generator))
    )


def _derive(case: OperationCase, dtype: str, generator: np.random.Generator) -> Iterator[Derivative]:
    """Each gradient of a case."""
    draw = (lambda shape: generator.uniform(0.5, 2, shape)) if case.positive else generator.standard_normal
    operands = [np.asarray(draw(shape), dtype) for shape in case.shapes]
    answer, backward = ops.vjp(case.operation, *operands, **case.options)
    grad_answer = np.asarray(generator.standard_normal(answer.shape), dtype)
    hand_derived = backward(grad_answer)
    numerical = ops.numerical_gradient(case.operation, *operands, grad_answer=grad_answer, **case.options)
    if len(operands) == 1:
        hand_derived, numerical = (hand_derived,), (numerical,)
    references = torch_gradients(case.operation, operands, case.options, grad_answer)
    for name, *gradients in zip(case.operand_names, numerical, hand_derived, references, strict=True):
        yield Derivative(case.operation, name, *gradients)
