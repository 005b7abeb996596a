"""The row of an object whose forward runs several times, as it does in training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import torch

from nn_manual.functions.battery.one_run import TAKES_NO_OTHERS, back_of, first_taken, forward_of, same_bits
from nn_manual.functions.battery.other_inputs import OTHER_FLOATS, Change, changed
from nn_manual.functions.battery.trial import Skip, Wrong, agree
from nn_manual.functions.callables import Function
from nn_manual.functions.exceptions import naming
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.handwritten import Handwritten


def of_one_object(case: FunctionCase) -> str | None:
    """After two forwards on two inputs of the same shape, backward belongs to the second: what an object keeps of the
    first, as `if self.mask is None` does, is no longer right. The output of the first stays what it was. An object
    whose backward then belongs to its last forward alone isn't wrong: most classes for training keep one cache. Nor is
    one whose output depends on the forward before, as the state of a recurrent net may. Both get a note.
    """
    function = case.function
    assert isinstance(function, Handwritten)  # the row is one of objects
    assert function.of_object is not None
    taken = ((each, found) for each in OTHER_FLOATS for found in first_taken(iter([_after(case, function, each)])))
    change, second = next(taken, (None, None))
    if change is None or second is None:
        raise Skip(TAKES_NO_OTHERS)
    with naming(case.label, "a run"):
        if not _same_outputs(forward_of(case).outputs, forward_of(second).outputs):
            return "its output depends on the forward that ran before: backward isn't compared behind another one"
    try:
        agree(second)
    except Wrong as wrong:
        words = "backward is wrong after the object's second forward: it keeps something of the first"
        raise Wrong(f"{words}; {wrong}") from wrong
    return _of_first(case, function.of_object.run_again, change)


def _after(case: FunctionCase, function: Handwritten, change: Change) -> FunctionCase:
    """The case whose object has run forward before, on inputs that are changed."""
    assert function.of_object is not None
    forward = function.of_object.after(partial(changed, of_floats=change))
    return replace(case, function=replace(function, forward=forward))


def _same_outputs(one: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> bool:
    """Whether they are the same within rounding: in other memory, a product may be summed in another order."""
    return one.keys() == other.keys() and all(
        values.shape == other[name].shape and torch.allclose(values.double(), other[name].double(), equal_nan=True)
        for name, values in one.items()
    )


def _of_first(case: FunctionCase, run_again: Function, change: Change) -> str | None:
    """The same object runs backward of its first forward, after a second one."""
    with naming(case.label, "a run"):
        expected = [grad if grad is None else grad.clone() for grad in back_of(case, forward_of(case))]
        ran = forward_of(case)
        outputs = {name: output.clone() for name, output in ran.outputs.items()}
        others = [changed(leaf, change) for leaf in case.leaves()]
        case.arguments.call(lambda *positional, **named: run_again(ran.saved, *positional, **named), others)
        found = back_of(case, ran)
    if not all(same_bits(output, ran.outputs[name]) for name, output in outputs.items()):
        raise Wrong("the object's second forward overwrites the output of its first")
    if all(map(same_bits, expected, found)):
        return None
    return "one cache for all calls: backward belongs to the last forward of its object"
