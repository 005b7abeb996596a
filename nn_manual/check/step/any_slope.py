"""An elementwise layer whose slopes at kinks are its own choice: `kinks = "any"`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from nn_manual.arrays import Array
from nn_manual.check.twin.by_differences import Finding

Function = Callable[[torch.Tensor], torch.Tensor]

#: From so many eps beside a kink on, no rounding of a reference leads back to it; and no slope changes by more than the
#: tolerance on the way.
STEPS = 64


def with_any_slope(
    function: Function,
    kinks: npt.NDArray[np.bool_],
    ours: Array | None,
    tolerance: float,
    found: Callable[[Finding], object],
) -> Function:
    """The function, whose gradient at `kinks` is ours, so far as it lies between the function's own on both sides;
    `found` is called with what that means. Ours is None where nobody asked for it. A slope counts as another than the
    function's if it is more than `tolerance` of the largest away.
    """

    def apply(input: torch.Tensor) -> torch.Tensor:
        above: list[torch.Tensor] = []

        def chosen(grad: torch.Tensor) -> torch.Tensor:
            if ours is None:
                return grad
            sides = [grad, *(_gradient(function, input, way * _step(input, kinks), above[-1]) for way in (1, -1))]
            low, high = torch.stack(sides).amin(0), torch.stack(sides).amax(0)
            mine = torch.from_numpy(np.array(ours, grad.numpy().dtype))
            at_kinks = torch.from_numpy(kinks) & ~mine.isnan()
            reference = torch.where(at_kinks, mine.clamp(low, high), grad)
            differs = (reference - grad).abs() > tolerance * float(grad.abs().max())
            found(Finding(reference.numpy().copy(), int(differs.sum()), 0.0))
            return reference

        output = function(_Chosen.apply(input, chosen))  # type: ignore[no-untyped-call] # torch has none
        if output.requires_grad:
            output.register_hook(above.append)  # type: ignore[no-untyped-call] # torch has none
        return output

    return apply


def _step(input: torch.Tensor, kinks: npt.NDArray[np.bool_]) -> torch.Tensor:
    size = STEPS * torch.finfo(input.dtype).eps * input.detach().abs().clamp(min=1)
    return size * torch.from_numpy(kinks)


def _gradient(function: Function, input: torch.Tensor, step: torch.Tensor, above: torch.Tensor) -> torch.Tensor:
    """The function's gradient beside its input, from that of its output."""
    with torch.enable_grad():
        moved = (input.detach() + step).requires_grad_()
        (found,) = torch.autograd.grad(function(moved), moved, above)
    return found


class _Chosen(torch.autograd.Function):
    """Passes on its input; the gradient goes through a function."""

    @staticmethod
    def forward(context: Any, input: torch.Tensor, chosen: Function) -> torch.Tensor:
        context.chosen = chosen
        return input.view_as(input)

    @staticmethod
    def backward(context: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor, None]:
        return context.chosen(grad_output), None
