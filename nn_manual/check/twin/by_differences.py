"""Gradients by differences of values, beside ours: of a layer here, and of any function in functions/own_forward.py."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.compare.tolerances import NEGLIGIBLE
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.ops.differences import EPSILON, SAFETY, Directions, slopes_of, weighted

#: A function of several float64 arrays whose outputs lie behind each other in one vector.
Values: TypeAlias = Callable[[Sequence[Array]], Array]
#: From the operands, the positions of those whose gradients are wanted, and the gradients of the outputs in one vector,
#: to these gradients by position, in any shape.
Gradients: TypeAlias = Callable[[list[Array], list[int], Array], Mapping[int, Array]]


class OperandDifferences(NamedTuple):
    """The slopes along some directions of one operand: they lie in value +- (jump / 2 + error), as in `Slope`.

    `terms` is how large the terms may be that add up to them: the values of the function over those of the operand, or
    the largest slope of the operands that were measured together, once for each example.
    """

    value: Array
    error: Array
    jump: Array
    terms: float


class Finding(NamedTuple):
    """What differences say about a gradient of ours.

    `reference` is what ours is to be compared with. At `num_kinks` positions it is another slope than the mean, between
    those left and right. `error` is that of the differences, as a fraction of the largest magnitude, where it is too
    large to judge ours; otherwise 0.
    """

    reference: Array
    num_kinks: int
    error: float


class ByDifferences:
    """A function of float64 arrays as one of tensors, whose gradients are differences of its values.

    Its operands are `parameters` and the input, and by their names the random numbers that it takes. Its values are
    cast to `dtype`.
    """

    def __init__(self, function: Callable[..., Array], parameters: Iterable[torch.Tensor], dtype: torch.dtype) -> None:
        self._function, self._parameters, self._dtype = function, list(parameters), dtype

    def beside(
        self,
        ours: Mapping[str, Array | None],
        tolerance: float,
        findings: dict[str, Finding],
        move: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> Callable[..., torch.Tensor]:
        """The function of tensors that compares its gradients with `ours`, those of the parameters and then of the
        input, by name, on its way back, up to `tolerance` of their largest magnitude, and fills `findings`.

        Where our grad_input agrees, it travels back to the layers before: so the errors of the differences stay here.
        With `move`, nothing is compared, and the terms of each gradient are moved, as rounding does.
        """
        names = list(ours)
        input = len(names) - 1

        def judged(i: int, found: OperandDifferences) -> Array:
            if move is not None:
                terms = torch.full(found.value.shape, found.terms, dtype=self._dtype)
                moved: Array = found.value + (move(terms) - terms).numpy()
                return moved
            array = ours[names[i]]
            assert array is not None  # backward was asked for it, as torch is
            finding = judge_by(found, array.reshape(-1), tolerance)
            findings[names[i]] = finding = finding._replace(reference=finding.reference.reshape(array.shape))
            allowed = tolerance * np.abs(finding.reference).max(initial=0)
            return array if i == input and np.abs(array - finding.reference).max() <= allowed else finding.reference

        def apply(input: torch.Tensor, /, **noise: torch.Tensor) -> torch.Tensor:
            function = functools.partial(self._function, **{name: as_double(drawn) for name, drawn in noise.items()})
            operands = (*self._parameters, input)
            with np.errstate(all="ignore"):  # ours has warned already; values drawn at random may lie anywhere
                value = np.array(function(*map(as_double, operands)))

            def gradients(arrays: list[Array], wanted: list[int], upstream: Array) -> Mapping[int, Array]:
                ways = {i: Directions.of_each(arrays[i].size) for i in wanted}
                found = differences(lambda moved: function(*moved).reshape(-1), arrays, ways, upstream, len(value))
                return {i: judged(i, each) for i, each in found.items()}

            (output,) = differentiated(gradients, [torch.from_numpy(value).to(self._dtype)], operands)
            return output

        return apply


def differences(
    values: Values, operands: list[Array], directions: Mapping[int, Directions], upstream: Array, num_examples: int = 1
) -> dict[int, OperandDifferences]:
    """The slopes of sum(upstream * values(operands)) along some directions of the operands, by their positions."""
    values = _quietly(values)

    def slopes(position: int) -> Array:
        def along(moved: Array) -> Array:
            return values([*operands[:position], moved, *operands[position + 1 :]])

        found = slopes_of(along, operands[position], upstream, directions[position])
        return np.array(list(found)).reshape(-1, 3).T

    measured = {position: slopes(position) for position in directions}
    largest = max((float(np.abs(value).max(initial=0)) for value, _, _ in measured.values()), default=0.0)
    total = float(np.abs(weighted(upstream, values(operands))).sum())
    found = {}
    for position, (value, error, jump) in measured.items():
        scale = float(np.abs(operands[position]).max(initial=0)) or 1.0
        terms = max(largest * num_examples, total / scale)  # a parameter's gradient is a sum over the examples
        found[position] = OperandDifferences(value, error + SAFETY * EPSILON * terms, jump, terms)
    return found


def judge_by(found: OperandDifferences, ours: Array, tolerance: float) -> Finding:
    """What differences say about `ours`, which may be off by `tolerance` of their largest magnitude.

    At a kink every slope between those left and right is right. Where the error is beyond the tolerance, nothing that
    lies within it can be called wrong, but nothing is proven either. A sum that cancels is zero: the judge decides
    whether ours is off by rounding, as it does for any other zero.
    """
    largest = float((np.abs(found.value) + found.jump / 2).max())
    if largest <= min(found.error.max(), NEGLIGIBLE * found.terms) < np.inf and np.isfinite(found.error).all():
        return Finding(np.zeros(ours.shape), 0, 0.0)
    reference = _nearest(ours, found.value, found.jump / 2)
    widened = _nearest(ours, found.value, found.jump / 2 + found.error)
    # Where the function jumps, the mean slope is huge. The scale must not be, so it comes from `widened`.
    allowed = tolerance * np.abs(widened).max(initial=0)
    num_kinks = int((np.abs(reference - found.value) > allowed).sum())
    unsure = (np.abs(ours - reference) > allowed) & (widened == ours)
    if not unsure.any():
        return Finding(reference, num_kinks, 0.0)
    error = float(found.error[unsure].max())
    return Finding(np.where(unsure, widened, reference), num_kinks, error / largest if largest else np.inf)


def _nearest(ours: Array, value: Array, reach: Array) -> Array:
    """Of value +- reach, the point that is nearest to ours; the value where ours is NaN."""
    ours = np.where(np.isnan(ours), value, ours).astype(np.float64)
    nearest: Array = np.clip(ours, value - reach, value + reach)
    return nearest


def differentiated(
    gradients: Gradients, outputs: list[torch.Tensor], operands: Iterable[torch.Tensor]
) -> tuple[torch.Tensor, ...]:
    """Outputs that were computed already, as a function of these operands that autograd differentiates by `gradients`,
    in float64.
    """
    found: tuple[torch.Tensor, ...] = _Differentiated.apply(gradients, outputs, *operands)  # type: ignore[no-untyped-call] # torch has none
    return found


class _Differentiated(torch.autograd.Function):
    """Its operands are copied: torch anchors tensors in place."""

    @staticmethod
    def forward(
        context: Any, gradients: Gradients, outputs: list[torch.Tensor], *operands: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        context.gradients, context.operands = gradients, [as_double(operand) for operand in operands]
        return tuple(output.detach().clone() for output in outputs)

    @staticmethod
    def backward(context: Any, *grad_outputs: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        wanted = [i for i, needs in enumerate(context.needs_input_grad[2:]) if needs]
        upstream = np.concatenate([grad.double().numpy().reshape(-1) for grad in grad_outputs])
        found = context.gradients(context.operands, wanted, upstream)
        shapes = [operand.shape for operand in context.operands]
        # Ours may be a view that torch can't take: reversed, or broadcast and read-only.
        grads = {i: torch.from_numpy(np.array(found[i]).reshape(shapes[i])).to(grad_outputs[0].dtype) for i in wanted}
        return None, None, *(grads.get(i) for i in range(len(shapes)))


def _quietly(values: Values) -> Values:
    """The values, NaN where the function raises, without warnings: a step may leave where it is defined."""

    def quiet(operands: Sequence[Array]) -> Array:
        try:
            with np.errstate(all="ignore"):
                return values(operands)
        except BaseException as error:  # a user's own forward may raise anything; it ran at the operands themselves
            raise_if_nobodys_fault(error)
            return np.array(np.nan)

    return quiet


def as_double(tensor: torch.Tensor) -> Array:
    """A copy as an array: floating numbers in float64, others as they are."""
    array: Array = tensor.detach().numpy().copy()
    return array.astype(np.float64) if array.dtype.kind == "f" else array
