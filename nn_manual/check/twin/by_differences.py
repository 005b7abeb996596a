"""The gradients of a layer by differences of its values, beside ours."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.tolerances import NEGLIGIBLE
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.ops.differences import EPSILON, SAFETY, slopes_of


class OperandDifferences(NamedTuple):
    """The gradient of one operand: it lies in value +- (jump / 2 + error), as in `Slope`.

    `terms` is how large the terms may be that add up to it: the values of the function over those of the operand, or
    the largest gradient of any operand, once for each example.
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

        def judge(i: int, found: OperandDifferences) -> Array:
            if move is not None:
                terms = torch.full(found.value.shape, found.terms, dtype=self._dtype)
                moved: Array = found.value + (move(terms) - terms).numpy()
                return moved
            array = ours[names[i]]
            assert array is not None  # backward was asked for it, as torch is
            finding = judge_by(found, array, tolerance)
            findings[names[i]] = finding
            allowed = tolerance * np.abs(finding.reference).max(initial=0)
            return array if i == input and np.abs(array - finding.reference).max() <= allowed else finding.reference

        def apply(input: torch.Tensor, /, **noise: torch.Tensor) -> torch.Tensor:
            function = functools.partial(self._function, **{name: _array(drawn) for name, drawn in noise.items()})
            output: torch.Tensor = _Function.apply(  # type: ignore[no-untyped-call]  # torch has no annotations
                function, judge, self._dtype, *self._parameters, input
            )
            return output

        return apply


def differences(
    function: Callable[..., Array], operands: list[Array], positions: list[int], grad_output: Array
) -> dict[int, OperandDifferences]:
    """The gradients of sum(grad_output * function(*operands)) with respect to the operands at these positions."""

    def gradient(position: int) -> Array:
        def along(moved: Array) -> Array:
            return function(*operands[:position], moved, *operands[position + 1 :])

        slopes = slopes_of(along, operands[position], grad_output)
        return np.array(list(slopes)).T.reshape(3, *operands[position].shape)

    gradients = {position: gradient(position) for position in positions}
    largest = max((float(np.abs(value).max()) for value, _, _ in gradients.values()), default=0.0)
    num_examples = len(grad_output)  # a parameter's gradient is a sum over them
    values = float(np.abs(grad_output * function(*operands)).sum())
    found = {}
    for position, (value, error, jump) in gradients.items():
        scale = float(np.abs(operands[position]).max()) or 1.0
        terms = max(largest * num_examples, values / scale)
        found[position] = OperandDifferences(value, error + SAFETY * EPSILON * terms, jump, terms)
    return found


def judge_by(found: OperandDifferences, ours: Array, tolerance: float) -> Finding:
    """What differences say about `ours`, which may be off by `tolerance` of their largest magnitude.

    At a kink every slope between those left and right is right. Where the error is beyond the tolerance, nothing that
    lies within it can be called wrong, but nothing is proven either. A sum that cancels is zero: the judge decides
    whether ours is off by rounding, as it does for any other zero.
    """
    largest = float((np.abs(found.value) + found.jump / 2).max())
    if largest <= min(found.error.max(), NEGLIGIBLE * found.terms):
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


class _Function(torch.autograd.Function):
    """A function of float64 arrays in torch's graph. Its operands are copied: torch anchors tensors in place."""

    @staticmethod
    def forward(
        context: Any,
        function: Callable[..., Array],
        judge: Callable[[int, OperandDifferences], Array],
        dtype: torch.dtype,
        *operands: torch.Tensor,
    ) -> torch.Tensor:
        context.function, context.judge, context.dtype = function, judge, dtype
        context.operands = [_array(operand) for operand in operands]
        with np.errstate(all="ignore"):  # ours has warned already; values drawn at random may lie anywhere
            output = np.array(function(*context.operands))
        return torch.from_numpy(output).to(context.dtype)

    @staticmethod
    def backward(context: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        needed = [i for i, needs in enumerate(context.needs_input_grad[3:]) if needs]
        found = differences(_quietly(context.function), context.operands, needed, grad_output.double().numpy())
        # Ours may be a view that torch can't take: reversed, or broadcast and read-only.
        grads = {i: torch.from_numpy(np.array(context.judge(i, found[i]))).to(grad_output.dtype) for i in needed}
        return None, None, None, *(grads.get(i) for i in range(len(context.operands)))


def _quietly(function: Callable[..., Array]) -> Callable[..., Array]:
    """The function, NaN where it raises, without warnings: a step may leave where it is defined."""

    def quiet(*operands: Array) -> Array:
        try:
            with np.errstate(all="ignore"):
                return function(*operands)
        except BaseException as error:  # a user's own forward may raise anything; it ran at the operands themselves
            raise_if_nobodys_fault(error)
            return np.array(np.nan)

    return quiet


def _array(tensor: torch.Tensor) -> Array:
    array: Array = tensor.detach().numpy().copy()
    return array.astype(np.float64) if array.dtype.kind == "f" else array
