"""Central differences of a function in torch's graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.ops.numerical import numerical_gradient

Function = Callable[..., torch.Tensor]


def by_differences(function: Callable[..., Any], parameters: Mapping[str, torch.Tensor]) -> Function:
    """A function of float64 arrays, its operands the input and `parameters`, as one of tensors whose gradients are
    central differences.
    """

    def apply(input: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = _CentralDifferences.apply(  # type: ignore[no-untyped-call]  # torch has no annotations
            function, input, *parameters.values()
        )
        return output

    return apply


class _CentralDifferences(torch.autograd.Function):
    """A function of float64 arrays in torch's graph. Its operands are copied: torch anchors tensors in place."""

    @staticmethod
    def forward(context: Any, function: Callable[..., Any], *operands: torch.Tensor) -> torch.Tensor:
        context.function, context.operands = function, [_array(operand) for operand in operands]
        output = np.array(function(*context.operands))
        return torch.from_numpy(output).to(operands[0].dtype if operands[0].is_floating_point() else torch.float64)

    @staticmethod
    def backward(context: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        operands = context.operands
        needed = [i for i, needs in enumerate(context.needs_input_grad[1:]) if needs]

        def of_needed(*values: Array) -> Any:
            replaced = dict(zip(needed, values, strict=True))
            return context.function(*(replaced.get(i, operand) for i, operand in enumerate(operands)))

        grads = numerical_gradient(of_needed, *(operands[i] for i in needed), grad_answer=grad_output.double().numpy())
        by_operand = dict(zip(needed, grads if len(needed) > 1 else (grads,), strict=True))
        return None, *(
            torch.from_numpy(by_operand[i]).to(grad_output.dtype) if i in by_operand else None
            for i in range(len(operands))
        )


def _array(tensor: torch.Tensor) -> Array:
    array: Array = tensor.detach().numpy().copy()
    return array.astype(np.float64) if array.dtype.kind == "f" else array
