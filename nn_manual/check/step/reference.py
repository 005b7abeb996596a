"""The anchored reference: torch's autograd over the whole model, at our activations.

A torch model that runs freely drifts away by rounding until one ReLU whose input is near zero flips, and then the
gradients differ by percents. Anchored, torch runs each layer on *our* output of the layer before. Each output is
compared before ours takes its place, which proves forward; autograd then differentiates the true composition, at our
activations, which gives every gradient that backward must reproduce.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.comparison import CannotCompare, as_tensor
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.recording import Recording
from nn_manual.check.twin.model import Twin

Move = Callable[[torch.Tensor], torch.Tensor]


class Reference(NamedTuple):
    """torch's values for one step.

    `outputs`: of each layer, from our input to it. `parameters`: their gradients by name, not clipped.
    `boundaries`: the gradients at the inputs of the layers from `plan.first_grad_input` on, and last at the prediction.
    `target`: the target's gradient, if asked for.
    """

    outputs: list[torch.Tensor]
    loss: torch.Tensor
    parameters: dict[str, torch.Tensor]
    boundaries: tuple[torch.Tensor, ...]
    target: torch.Tensor | None


def differentiate(
    twin: Twin,
    recorded: Recording,
    plan: Plan,
    dtype: np.dtype[Any],
    move: Move | None = None,
    move_grad: Move | None = None,
) -> Reference:
    """Run torch forward on the recorded input, anchored at the recorded activations, and backward, all in `dtype`.

    What the loss doesn't depend on has gradient zero. Input, target and activations go through `move`, if given,
    and the gradients on the way back through `move_grad`. Raises CannotCompare for a layer's reference that raises.
    """
    move = move or _stay
    input = move(_tensor(recorded.layers[0].input, dtype)).requires_grad_(plan.input_grad)
    target = move(_tensor(recorded.loss.target, dtype)).requires_grad_(plan.target_grad)
    outputs, nodes = [], []
    node = input
    for function, calls in zip(twin.functions, recorded.layers, strict=True):
        try:
            node = function(node)
        except Exception as error:  # a user's own reference may raise anything
            raise CannotCompare(f"{calls.label}: its reference raised {type(error).__name__}: {error}") from error
        ours = move(_tensor(calls.output, dtype))
        # Both replace the value and keep the graph; `outputs` keeps torch's value.
        if hasattr(node.grad_fn, "_saved_result"):
            # torch's backward will read its output where it lies, as our backward reads ours. Both must read the same:
            # of a saturated tanh, 1 - output**2 hangs on the last bit.
            outputs.append(node.detach().clone())
            node.data.copy_(ours)
        else:
            outputs.append(node.detach())
            node.data = ours
        nodes.append(node)
        if move_grad is not None and node.requires_grad:
            node.register_hook(move_grad)  # type: ignore[no-untyped-call]  # torch's own lack of annotations
    loss = twin.loss_function(node, target)
    boundaries = [input, *nodes] if plan.input_grad else nodes[plan.first :]
    wanted = [*twin.parameters.values(), *boundaries, *([target] if plan.target_grad else [])]
    grads = torch.autograd.grad(loss, wanted, allow_unused=True, materialize_grads=True)
    num_parameters = len(twin.parameters)
    return Reference(
        outputs,
        loss.detach(),
        dict(zip(twin.parameters, grads[:num_parameters], strict=True)),
        grads[num_parameters : num_parameters + len(boundaries)],
        grads[-1] if plan.target_grad else None,
    )


def _stay(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _tensor(array: Array | None, dtype: np.dtype[Any]) -> torch.Tensor:
    """`as_tensor`, floating ones in `dtype`."""
    assert array is not None  # check_structure has seen it
    if array.dtype.kind == "f":
        array = array.astype(dtype, copy=False)
    return as_tensor(array)
