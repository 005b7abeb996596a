"""The anchored reference: torch's autograd over the whole model, at our activations.

A torch model that runs freely drifts away by rounding until one ReLU whose input is near zero flips, and then the
gradients differ by percents. Anchored, torch runs each layer on *our* output of the layer before. Each output is
compared before ours takes its place, which proves forward; autograd then differentiates the true composition, at our
activations, which gives every gradient that backward must reproduce. A layer that is compared with central differences
is anchored on the way back, too: where our grad_input is right, it travels on in place of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.comparison import CannotCompare, as_tensor
from nn_manual.check.step.places import place_of_error
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.recording import LayerCalls, Recording
from nn_manual.check.twin.differences import ByDifferences, Finding
from nn_manual.check.twin.layers import Counterpart, Function
from nn_manual.check.twin.model import Twin

Move = Callable[[torch.Tensor], torch.Tensor]

#: A forward of fewer multiplications than this is faster on one thread: a second one takes longer to start. On one
#: thread the step of the 64-64-10 net takes 0.85 times as long, that of the 784-128-10 net, at 6.5 million, 1.1 times.
FEW_PRODUCTS = 1 << 20


class Reference(NamedTuple):
    """torch's values for one step.

    `outputs`: of each layer, from our input to it. `parameters`: their gradients by name, not clipped.
    `boundaries`: the gradients at the inputs of the layers from `plan.first_grad_input` on, and last at the prediction.
    `target`: the target's gradient, if asked for. `findings`: by name in the plan, what differences say.
    """

    outputs: list[torch.Tensor]
    loss: torch.Tensor
    parameters: dict[str, torch.Tensor]
    boundaries: list[torch.Tensor]
    target: torch.Tensor | None
    findings: dict[str, Finding]


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
    and the gradients on the way back through `move_grad`. Raises CannotCompare for a layer's reference that raises, or
    that isn't a tensor like the layer's output.
    """
    move = move or _stay
    findings: dict[str, Finding] = {}
    input = move(_tensor(recorded.layers[0].input, dtype)).requires_grad_(plan.input_grad)
    target = move(_tensor(recorded.loss.target, dtype)).requires_grad_(plan.target_grad)
    outputs, nodes = [], []
    node = input
    for i, calls in enumerate(recorded.layers):
        function = twin.functions[i]
        if isinstance(function, ByDifferences):
            names = plan.gradient_names(i)
            gradients = dict(zip(names, [*calls.grads.values(), calls.grad_input], strict=True))
            function = function.beside(gradients, plan.differences_tolerance(i), findings, move_grad)
        ours = move(_tensor(calls.output, dtype))
        node = _run(function, node, ours, calls, plan.counterparts[i])
        # Both replace the value and keep the graph; `outputs` keeps torch's value.
        if hasattr(node.grad_fn, "_saved_result"):
            # torch's backward will read its output where it lies, as our backward reads ours. Both must read the same:
            # for a saturated tanh, 1 - output**2 depends on the last bit.
            outputs.append(node.detach().clone())
            node.data.copy_(ours)
        else:
            outputs.append(node.detach())
            node.data = ours
        nodes.append(node)
        if move_grad is not None and node.requires_grad:
            node.register_hook(move_grad)  # type: ignore[no-untyped-call]  # torch's own lack of annotations
    loss = _run_loss(twin, node, target)
    boundaries = [input, *nodes] if plan.input_grad else nodes[plan.first :]
    wanted = [*twin.parameters.values(), *boundaries, *([target] if plan.target_grad else [])]
    try:
        grads = torch.autograd.grad(loss, wanted, allow_unused=True, materialize_grads=True)
    except Exception as error:  # a user's own reference may be one that torch can't differentiate
        raise CannotCompare(f"torch can't differentiate a reference: {_words(error)}") from error
    num_parameters = len(twin.parameters)
    gradients_at_boundaries = list(grads[num_parameters : num_parameters + len(boundaries)])
    for i in range(plan.first_grad_input, len(plan.names)):
        finding = findings.get(f"{plan.names[i]}.grad_input")
        if finding is not None:  # ours travelled on: compare it with what the differences gave
            gradients_at_boundaries[i - plan.first_grad_input] = torch.from_numpy(finding.reference.astype(dtype))
    return Reference(
        outputs,
        loss.detach(),
        dict(zip(twin.parameters, grads[:num_parameters], strict=True)),
        gradients_at_boundaries,
        grads[-1] if plan.target_grad else None,
        findings,
    )


def _run(
    function: Function, input: torch.Tensor, ours: torch.Tensor, calls: LayerCalls, counterpart: Counterpart
) -> torch.Tensor:
    """torch's output of a layer. Raises CannotCompare, naming the layer, where it isn't a tensor like `ours`."""
    label, version = calls.label, input._version
    try:
        output = function(input)
    except Exception as error:  # a user's own reference may raise anything
        words = f"{_words(error)}{place_of_error(calls.layer, error)}{counterpart.advice}"
        raise CannotCompare(f"{label}: {counterpart.name} raised {words}") from error
    if isinstance(output, torch.Tensor) and output.shape == ours.shape and output.dtype == ours.dtype:
        if input._version != version:
            raise CannotCompare(f"{label}: {counterpart.name} writes into its input")
        if input.requires_grad and not output.requires_grad:
            raise CannotCompare(
                f"{label}: {counterpart.name} returned a tensor that autograd can't follow back to the input: "
                "it was detached, or made without torch"
            )
        return output
    raise CannotCompare(
        f"{label}: {counterpart.name} returned {_described(output)}, forward {_described(ours)}{counterpart.advice}"
    )


def _run_loss(twin: Twin, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    try:
        loss = twin.loss_function(prediction, target)
    except Exception as error:  # a user's own reference may raise anything
        raise CannotCompare(f"loss: its reference raised {_words(error)}") from error
    if not isinstance(loss, torch.Tensor) or loss.ndim:
        raise CannotCompare(f"loss: its reference returned {_described(loss)}, it must return a scalar tensor")
    return loss


def _words(error: Exception) -> str:
    """An error's type and the first line of what it says: torch appends advice that concerns others."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _described(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return f"a {str(value.dtype).removeprefix('torch.')} tensor of shape {tuple(value.shape)}"
    return f"{type(value).__name__}, not a torch tensor"


def _stay(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _tensor(array: Array | None, dtype: np.dtype[Any]) -> torch.Tensor:
    """`as_tensor`, floating ones in `dtype`."""
    assert array is not None  # check_structure has seen it
    if array.dtype.kind == "f":
        array = array.astype(dtype, copy=False)
    return as_tensor(array)


@contextmanager
def threads_for(num_products: int) -> Iterator[None]:
    """The context in which torch uses one thread for few products, and for many the threads that it had."""
    num_threads = torch.get_num_threads()
    if num_products >= FEW_PRODUCTS or num_threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(num_threads)
