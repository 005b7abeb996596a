"""The row of the gradients of gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.functions.arguments import Arguments, Number, as_tensor
from nn_manual.functions.battery.trial import Run, Skip, Trial, Wrong, agree
from nn_manual.functions.callables import REENTRANT, Forward, applied, by_autograd, floats
from nn_manual.functions.close_by import drawn_moves
from nn_manual.functions.exceptions import naming
from nn_manual.functions.function_case import FunctionCase, with_leaves
from nn_manual.functions.function_report import NOT_BY_AUTOGRAD
from nn_manual.functions.handwritten import run_function
from nn_manual.functions.outputs import check_structure, named_outputs

#: The node that torch puts behind the gradients of a function which is marked with once_differentiable. It raises when
#: it runs, but nothing leads from it to the inputs: torch.autograd.grad(..., allow_unused=True) never runs it.
SAYS_ONCE = "torch::autograd::Error"
#: In torch's message about every function that torch.compile has compiled: it is differentiable once, too.
COMPILED_ONCE = "torch.compile with aot_autograd does not currently support double backward"
#: What is said of gradients of which none is connected.
NOT_CONNECTED = "no gradient of its backward is connected to anything"
#: Beside a kink all values are moved by up to this fraction of them, or of 1: rounding doesn't reach so far.
BESIDE = 1e-3
ADVICE = "a function that is not differentiable twice says so by @once_differentiable above backward"


def twice(trial: Trial) -> Iterator[tuple[str, Run]]:
    """The gradient of the gradients, with respect to the inputs and to grad_output. A function that has none says so,
    by once_differentiable or by an error, or returns gradients of which none is connected to anything: torch then
    raises an error for whoever differentiates them. It is wrong where some are connected and others are cut off.
    """
    yield "", lambda: _twice(trial)


def _twice(trial: Trial) -> str | None:
    if trial.is_pair:
        raise Skip(NOT_BY_AUTOGRAD)
    if trial.reference is None:
        raise Skip("differences of a gradient would need a reference")
    if trial.settled:
        raise Skip("the values are wrong")
    own = trial.case
    with naming(own.label, "forward"):
        ours = run_function(own.function, own.arguments, own.leaves(), own.wants())
    theirs = by_autograd(own.reference, own.arguments, own.leaves(), own.wants())
    check_structure(own.label, ours.returned, theirs.returned)
    case = _of_gradients(own, theirs)
    try:
        with naming(case.label, "backward with create_graph=True"):
            grads = run_function(case.function, case.arguments, case.leaves(), case.wants()).outputs.values()
        if SAYS_ONCE in _nodes([grad.grad_fn for grad in grads]):
            return "differentiable once, and says so"
        return _agree_beside_kinks(own, case)
    except CannotCompare as problem:
        if REENTRANT in str(problem):
            raise Skip(f"torch.utils.checkpoint({REENTRANT}) has no gradients of gradients") from problem
        if COMPILED_ONCE in str(problem):
            return "differentiable once, and says so"
        if isinstance(problem.__cause__, RuntimeError) or NOT_CONNECTED in str(problem):
            return f"differentiable once: {str(problem).partition(': ')[2]}"
        raise Wrong(f"{str(problem).partition(': ')[2]}; {ADVICE}") from problem
    except Wrong as wrong:
        raise Wrong(f"second derivatives: {wrong}; {ADVICE}") from wrong


def _agree_beside_kinks(own: FunctionCase, gradients: FunctionCase) -> str | None:
    """Raise Wrong if the second derivatives differ. Where the function has another slope at a kink of the reference,
    and a right one, its second derivatives are other ones there: they are compared close by.
    """
    try:
        return agree(gradients)
    except Wrong:
        if agree(own) is None:
            raise
    generator = np.random.default_rng(0)

    def beside(values: torch.Tensor) -> torch.Tensor:
        move = torch.from_numpy(drawn_moves(generator, values.numel(), 1).reshape(values.shape)).to(values)
        return values + BESIDE * move * values.abs().clamp(min=1)

    agree(with_leaves(gradients, beside))
    return "compared beside a kink of the reference"


def _nodes(nodes: list[Any]) -> set[str]:
    """The names of all nodes that can be reached from these."""
    names, seen = set[str](), set[Any]()
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        names.add(node.name())
        nodes += [following for following, _ in node.next_functions]
    return names


def _of_gradients(case: FunctionCase, theirs: Forward) -> FunctionCase:
    """The case whose function is the gradient of this case's function, as a function of the inputs and grad_output."""
    differentiable = {name: output.detach() for name, output in theirs.outputs.items() if output.requires_grad}
    _, grad_outputs = next(case.grad_outputs(differentiable))
    leaves = tuple(as_tensor(leaf) if floats(leaf) else leaf for leaf in case.arguments.leaves)
    leaves += tuple(grad_outputs.values())
    names = (*case.arguments.names, *(f"grad_{name}" for name in grad_outputs))
    constants = {name for name, grad in zip(case.floating, theirs.backward(grad_outputs), strict=True) if grad is None}
    arguments = Arguments(names, leaves, tuple(Number(i) for i in range(len(leaves))), frozen=case.arguments.frozen)
    function, reference = (_Gradient(each, case, tuple(grad_outputs)) for each in (case.function, case.reference))
    wanted = frozenset(names) - constants
    case = replace(case, function=function, reference=reference, arguments=arguments, wanted=wanted)
    return replace(case, watched=False, drawn=True)


class _Gradient:
    """The gradients of a function's floating inputs, as a function that autograd differentiates."""

    def __init__(self, function: Any, case: FunctionCase, outputs: tuple[str, ...]) -> None:
        self.function = applied(function)
        self.case, self.outputs, self.__name__ = case, outputs, case.label

    def __call__(self, *leaves: Any) -> tuple[torch.Tensor, ...]:
        count = len(self.case.arguments.leaves)
        own, grad_outputs = leaves[:count], leaves[count:]
        floating = [leaf for leaf in own if floats(leaf) and leaf.requires_grad]
        copies = [leaf.clone() if floats(leaf) else leaf for leaf in own]  # it may work in place
        outputs = named_outputs(self.case.arguments.call(self.function, copies)).tensors
        carrying = [outputs[name] for name in self.outputs]
        grads = torch.autograd.grad(carrying, floating, grad_outputs, create_graph=True, allow_unused=True)
        if not any(grad is not None and grad.requires_grad for grad in grads):
            raise CannotCompare(f"{self.case.label}: {NOT_CONNECTED}")
        found = []
        for leaf, grad in zip(floating, grads, strict=True):
            cut_off = grad is None or not grad.requires_grad
            found.append((torch.zeros_like(leaf) if grad is None else grad) + (0 * leaf.sum() if cut_off else 0))
        return tuple(grad.to_dense() for grad in found)
