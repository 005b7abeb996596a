"""The row in which one tensor stands in the place of two inputs."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import torch

from nn_manual.check.conduct.unchanged import same_values
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.functions.arguments import Arguments, Number, as_tensor
from nn_manual.functions.battery.trial import Skip, Wrong
from nn_manual.functions.callables import applied, by_autograd, floats
from nn_manual.functions.exceptions import naming, raised_by_the_reference
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.handwritten import Checked

#: At most so many pairs of inputs are tried.
MOST_PAIRS = 10

#: How far two runs may differ, as a fraction of the largest term of a sum: far more than rounding in another order, in
#: 16 bits, too.
ALLOWED = 0.02


def of_one_shape(case: FunctionCase) -> list[tuple[int, int]]:
    """The places of each two floating inputs of one shape and dtype, which one tensor could be; without parameters."""
    arguments = case.arguments
    parameters = set(arguments.parameters.values())
    leaves = dict(enumerate(arguments.leaves))
    places = [i for i, leaf in leaves.items() if i not in parameters and floats(leaf) and as_tensor(leaf).numel()]

    def kind(place: int) -> tuple[Any, ...]:
        return tuple(leaves[place].shape), leaves[place].dtype

    pairs = (both for both in itertools.combinations(places, 2) if kind(both[0]) == kind(both[1]))
    return list(itertools.islice(pairs, MOST_PAIRS))


def one_in_both_places(case: FunctionCase) -> None:
    """f(x, x) must be f(x, y) where y has the values of x, and its gradient must be the sum of both gradients. This
    shows a function that looks at the addresses of its inputs. The function is compared with itself: not every function
    takes inputs of equal values, or is right on them.
    """
    tried = [_same(case, first, second) for first, second in of_one_shape(case)]
    if not any(tried):
        raise Skip("it takes no two inputs of the same values, or works in place on them")


def _same(case: FunctionCase, first: int, second: int) -> bool:
    """Whether that could be tried."""
    names = case.arguments.names
    leaves = list(case.arguments.leaves)
    leaves[second] = as_tensor(leaves[first]).clone()
    case = replace(case, arguments=replace(case.arguments, leaves=tuple(leaves)))
    together = _together(case, case.function, first, second)
    with raised_by_the_reference():
        _run(_together(case, case.reference, first, second))  # a call that the reference refuses isn't tried
    try:
        apart = _run(case)
    except Exception as error:  # anyone's function may raise anything on values that it doesn't take
        raise_if_nobodys_fault(error)
        return False
    if apart is None:
        return False
    words = f"{names[first]} and {names[second]} are one tensor"
    with naming(case.label, f"a run where {words}"):
        found = _run(together)
    if found is None:
        return False
    expected, grad = dict(apart), f"grad_{names[first]}"
    terms = [apart[grad], apart[f"grad_{names[second]}"]]
    expected[grad] = terms[0] + terms[1]
    del expected[f"grad_{names[second]}"], found[f"grad_{names[second]}"]
    for name, tensor in expected.items():
        summed = terms if name == grad else [tensor]
        allowed = ALLOWED * max((float(term.nan_to_num().abs().max()) for term in summed if term.numel()), default=0.0)
        other = found.get(name)
        if other is None or not torch.allclose(other, tensor, rtol=0, atol=allowed, equal_nan=True):
            of = "the sum of both gradients" if name == grad else "the same as"
            raise Wrong(f"where {words}, {name} is not {of} with two equal tensors")
    return True


def _together(case: FunctionCase, function: Checked, first: int, second: int) -> FunctionCase:
    """The case in which the function gets the first of two inputs in both places."""
    called: Any = applied(function)

    def of_first(*leaves: Any) -> Any:
        several = list(leaves)
        several[second] = several[first]
        return case.arguments.call(called, several)

    flat = tuple(Number(i) for i in range(len(case.arguments.leaves)))
    arguments = Arguments(case.arguments.names, case.arguments.leaves, flat, frozen=case.arguments.frozen)
    return replace(case, function=of_first, arguments=arguments)


def _run(case: FunctionCase) -> dict[str, torch.Tensor] | None:
    """The outputs and gradients, by name, with zeros for an absent gradient; None if the function works in place."""
    ran = by_autograd(case.function, case.arguments, case.leaves(), case.wants())
    both = zip(case.leaves(), ran.given, strict=True)
    if any(floats(leaf) and not same_values(as_tensor(leaf).detach(), given.detach()) for leaf, given in both):
        return None
    found = {name: output.detach().to_dense().double().clone() for name, output in ran.outputs.items()}
    carrying = {name: output.detach() for name, output in ran.outputs.items() if output.requires_grad}
    grads = iter(ran.backward(next(case.grad_outputs(carrying))[1]))
    for name, leaf, want in zip(case.arguments.names, case.leaves(), case.wants(), strict=True):
        if want:
            grad = next(grads)
            zero = torch.zeros_like(as_tensor(leaf), dtype=torch.float64)
            found[f"grad_{name}"] = zero if grad is None else grad.to_dense().double()
    return found

