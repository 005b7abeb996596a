"""The rows of inputs that change in place, as an optimizer changes a weight."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.functions.arguments import Arguments, Number, as_tensor
from nn_manual.functions.battery.one_run import forward_of
from nn_manual.functions.battery.other_inputs import other_floats, other_integers, with_other_integers
from nn_manual.functions.battery.trial import Run, Skip, Trial, Wrong, agree
from nn_manual.functions.callables import applied, dtype_name, floats, gradients_of, is_array, label_of_function
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.handwritten import Handwritten
from nn_manual.functions.outputs import named_outputs
from nn_manual.functions.own_forward import OwnForward

#: In torch's message about a function that works in place on a parameter.
IN_PLACE_ON_A_LEAF = "a leaf Variable that requires grad"


def in_place(trial: Trial) -> Iterator[tuple[str, Run]]:
    """The same tensors with other values: this shows what a function keeps from an earlier run, by an address or for
    good.
    """
    yield "", lambda: _in_place(trial.case, other_floats)
    for i, (name, leaf) in enumerate(zip(trial.case.arguments.names, trial.case.arguments.leaves, strict=True)):
        if is_array(leaf) and not floats(leaf) and other_integers(as_tensor(leaf)) is not None:
            yield name, lambda i=i: _other_integers_in_place(trial.case, i)  # type: ignore[misc] # a default


def _other_integers_in_place(case: FunctionCase, place: int) -> str | None:
    """Then a mask is negated, too: a causal one then masks a row as a whole. Where that row isn't finite in what the
    function returns, and it is in what the reference returns, that gets a note: many masks mustn't do that.
    """
    _in_place(case, lambda case: _other_at(case, place))
    leaves = list(case.arguments.leaves)
    if as_tensor(leaves[place]).dtype != torch.bool:
        return None
    leaves[place] = ~leaves[place]
    negated = replace(case, arguments=replace(case.arguments, leaves=tuple(leaves)), drawn=True)
    try:
        ours, theirs = forward_of(negated).outputs, forward_of(replace(negated, function=case.reference)).outputs
    except Exception as error:  # anyone's function may raise anything on values that it doesn't take
        raise_if_nobodys_fault(error)
        return None
    if any(theirs[name].isfinite().logical_and(~ours[name].isfinite()).any() for name in ours.keys() & theirs.keys()):
        return "where the mask is negated, its output isn't finite in places in which the reference's is"
    _right_on_one_of(iter([negated]))
    return None


def _other_at(case: FunctionCase, place: int) -> Iterator[FunctionCase]:
    """Other integers or truth values in one input; then in all inputs, since they may have to fit each other."""
    for chosen in ([place], range(len(case.arguments.leaves))):
        yield with_other_integers(case, chosen)


def _in_place(case: FunctionCase, others: Callable[[FunctionCase], Iterator[FunctionCase]]) -> None:
    other = _right_on_one_of(others(case))
    on_same_tensors = _on_same_tensors(case)
    try:
        agree(on_same_tensors(case))
        agree(on_same_tensors(other))
    except (Wrong, CannotCompare) as problem:
        if IN_PLACE_ON_A_LEAF in str(problem):
            raise Skip("it works in place, which torch refuses on parameters") from problem
        words = "differs once its inputs have changed in place, as a weight does: it keeps something of an earlier run"
        raise Wrong(f"{words}; {problem}") from problem


def _right_on_one_of(cases: Iterator[FunctionCase]) -> FunctionCase:
    """The first case that the function takes and is right on. A function may be made for values of one kind, such as
    probabilities, and a change may make others of them. So the function is wrong only if it takes some of the cases and
    is right on none.
    """
    problem = None
    for case in cases:
        try:
            agree(case)
        except Wrong as wrong:
            problem = problem or wrong
        except Exception as error:  # anyone's function may raise anything on values that it doesn't take
            raise_if_nobodys_fault(error)
            continue
        else:
            return case
    if problem is None:
        raise Skip("it doesn't take other values")
    words = "differs where its inputs have other values: it is wrong on those, or keeps something of an earlier run"
    raise Wrong(f"{words}; {problem}") from problem


def _on_same_tensors(case: FunctionCase) -> Callable[[FunctionCase], FunctionCase]:
    """A function that changes a case: the function of the new case runs on the same tensors each time, and the inputs
    are written into them.
    """
    function, arguments, label = case.function, case.arguments, label_of_function(case.function)
    handwritten = function if isinstance(function, Handwritten) else None
    tensors: dict[tuple[Any, ...], list[Any]] = {}  # by their dtypes

    def forward(*leaves: Any) -> tuple[Any, Any]:
        dtypes = tuple(dtype_name(leaf) for leaf in leaves if is_array(leaf))
        if dtypes not in tensors:
            pairs = zip(leaves, wanted, strict=True)
            as_array = handwritten is not None
            tensors[dtypes] = [_copied(leaf, is_parameter=want, as_array=as_array) for leaf, want in pairs]
        own = tensors[dtypes]
        for tensor, leaf in zip(own, leaves, strict=True):
            if is_array(leaf):
                as_tensor(tensor).detach().copy_(as_tensor(leaf))
        if handwritten is not None:
            returned: tuple[Any, Any] = arguments.call(handwritten.forward, own)
            return returned
        output = arguments.call(applied(function), own)
        return output, (output, own)

    def backward(saved: Any, *grad_outputs: Any) -> Any:
        if handwritten is not None:
            return handwritten.backward(saved, *grad_outputs)
        output, own = saved
        carrying = [tensor for tensor in named_outputs(output).tensors.values() if tensor.requires_grad]
        parameters = [tensor for tensor, want in zip(own, wanted, strict=True) if want]
        return gradients_of(carrying, parameters, [as_tensor(grad) for grad in grad_outputs])

    def reference(*leaves: Any) -> Any:
        return arguments.call(case.reference, leaves)

    beside = case.reference.on_leaves(arguments) if isinstance(case.reference, OwnForward) else reference
    wanted = [handwritten is None and want for want in case.wants()]
    on_same = Handwritten(forward, backward, label, handwritten.names if handwritten and arguments.are_flat else ())
    flat = tuple(Number(i) for i in range(len(arguments.leaves)))

    def made(case: FunctionCase) -> FunctionCase:
        positional = Arguments(arguments.names, case.arguments.leaves, flat, frozen=arguments.frozen)
        # What a pair overwrites is restored, as in every row. An autograd.Function has the same tensors in all runs.
        watched = case.watched and handwritten is not None
        return replace(case, function=on_same, reference=beside, arguments=positional, watched=watched)

    return made


def _copied(leaf: Any, *, is_parameter: bool, as_array: bool) -> Any:
    """A handwritten function gets arrays where the inputs are arrays, any other function tensors."""
    if not is_array(leaf) or (as_array and not isinstance(leaf, torch.Tensor)):
        return copy.copy(leaf)
    return as_tensor(leaf).detach().clone().requires_grad_(is_parameter)
