"""Gradients of gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from nn_manual.check.comparison import CannotCompare
from nn_manual.check.functions.arguments import Arguments, Number, as_tensor, named_outputs
from nn_manual.check.functions.battery.trial import Run, Skip, Trial, Wrong, agree
from nn_manual.check.functions.callables import Function, by_autograd, floats
from nn_manual.check.functions.case import Case

#: What torch says of a function whose backward is marked with once_differentiable.
SAYS_ONCE = "marked with @once_differentiable"
ADVICE = "what is not differentiable twice says so: @once_differentiable above backward"


def twice(trial: Trial) -> Iterator[tuple[str, Run]]:
    """The gradient of the gradients, with respect to the inputs and to grad_output; or the function says that it has
    none, by once_differentiable.
    """
    yield "", lambda: _twice(trial)


def _twice(trial: Trial) -> str | None:
    if trial.is_pair:
        raise Skip("a pair is differentiable once")
    case = _of_gradients(trial.case)
    try:
        agree(case)
    except CannotCompare as problem:
        if SAYS_ONCE in str(problem):
            return "differentiable once, and says so"
        raise Wrong(f"{str(problem).partition(': ')[2]}; {ADVICE}") from problem
    except Wrong as wrong:
        raise Wrong(f"second derivatives: {wrong}; {ADVICE}") from wrong
    return None


def _of_gradients(case: Case) -> Case:
    """The case whose function is the gradient of the case's function, a function of the inputs and of grad_output."""
    theirs = by_autograd(case.reference, case.arguments, case.leaves(), case.wants())
    differentiable = {name: output.detach() for name, output in theirs.outputs.items() if output.requires_grad}
    _, grad_outputs = next(case.grad_outputs(differentiable))
    leaves = tuple(as_tensor(leaf) if floats(leaf) else leaf for leaf in case.arguments.leaves)
    leaves += tuple(grad_outputs.values())
    names = (*case.arguments.names, *(f"grad_{name}" for name in grad_outputs))
    arguments = Arguments(names, leaves, tuple(Number(i) for i in range(len(leaves))))
    function, reference = (_Gradient(each, case, tuple(grad_outputs)) for each in (case.function, case.reference))
    return replace(case, function=function, reference=reference, arguments=arguments, watched=False, drawn=True)


class _Gradient:
    """The gradients of a function's floating inputs, as a function that autograd differentiates."""

    def __init__(self, function: Any, case: Case, outputs: tuple[str, ...]) -> None:
        self.function: Function = getattr(function, "apply", function) if isinstance(function, type) else function
        self.case, self.outputs, self.__name__ = case, outputs, case.label

    def __call__(self, *leaves: Any) -> tuple[torch.Tensor, ...]:
        count = len(self.case.arguments.leaves)
        own, grad_outputs = leaves[:count], leaves[count:]
        floating = [leaf for leaf in own if floats(leaf)]
        copies = [leaf.clone() if floats(leaf) else leaf for leaf in own]  # it may work in place
        outputs = named_outputs(self.case.arguments.call(self.function, copies))
        carrying = [outputs[name] for name in self.outputs]
        grads = torch.autograd.grad(carrying, floating, grad_outputs, create_graph=True, allow_unused=True)
        found = [
            torch.zeros_like(leaf) + 0 * leaf.sum() if grad is None else grad
            for leaf, grad in zip(floating, grads, strict=True)
        ]
        return tuple(grad.to_dense() for grad in found)
