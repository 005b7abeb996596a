"""A forward and a backward that were written by hand, on arrays: a pair of functions, or a class.

What a user gives becomes one `Handwritten`, whose backward gets what forward saved first. Everything after that knows
this form alone.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.functions.arguments import Arguments, as_tensor
from nn_manual.functions.callables import Forward, Function, as_copy, by_autograd, floats, is_array, label_of_function
from nn_manual.functions.exceptions import going_on
from nn_manual.functions.outputs import named_outputs
from nn_manual.functions.signatures import gradients_called, names_of, parameters_of
from nn_manual.messages.text import counted


class OfObject(NamedTuple):
    """What runs an object's forward several times. `run_again` does so for the object that forward has saved, on other
    inputs. `after` returns a forward whose object has run before, on inputs that a function makes of the same ones.
    """

    run_again: Function
    after: Callable[[Callable[[Any], Any]], Function]


@dataclass(frozen=True)
class Handwritten:
    """`forward(*inputs)` returns `(outputs, saved)`, or each output and at last what it saved.
    `backward(saved, *grad_outputs)` returns the gradients: one, or a list or tuple of one for each floating input, or
    for each input, or a dict by name. `names` are those that forward gives its inputs.
    """

    forward: Function
    backward: Function
    label: str
    names: tuple[str, ...] = ()
    #: The backward for the other order of its arguments, where it may be meant.
    other_backward: Function | None = None
    #: Where forward saves an object, which has its gradients in attributes.
    of_object: OfObject | None = None

    def __call__(self, *positional: Any, **keywords: Any) -> Any:
        """What forward returns without what it saves."""
        return self._halves(self.forward(*positional, **keywords))[0]

    @property
    def __name__(self) -> str:  # by which a report calls a function
        return self.label

    @property
    def __signature__(self) -> inspect.Signature:  # in which a report finds the names of the inputs
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(name, kind) for name in self.names])

    def run(self, arguments: Arguments, leaves: Sequence[Any]) -> Forward:
        """Run forward on copies of these leaves. The backward computes every gradient."""
        given = [_copied(leaf) for leaf in leaves]
        with going_on(self.forward):
            returned, saved = self._halves(arguments.call(self.forward, given))
        outputs = named_outputs(returned)
        as_inputs = as_tensor if any(isinstance(leaf, torch.Tensor) for leaf in leaves) else _array

        def way_back(grad_outputs: dict[str, torch.Tensor]) -> list[Any]:
            with going_on(self.forward):
                several = [as_inputs(grad_outputs[name]) for name in outputs.tensors if name in grad_outputs]
                return self._in_order(self.backward(saved, *several), arguments)

        return Forward(outputs, saved, way_back, given)

    def _halves(self, returned: Any) -> tuple[Any, Any]:
        if not (isinstance(returned, tuple) and len(returned) > 1):
            kind = f"a tuple of {len(returned)}" if isinstance(returned, tuple) else type(returned).__name__
            found = "None" if returned is None else kind
            raise CannotCompare(f"{self.label}: forward returned {found}: it must return (output, saved)")
        *outputs, saved = returned
        return outputs[0] if len(outputs) == 1 else tuple(outputs), saved

    def _in_order(self, returned: Any, arguments: Arguments) -> list[Any]:
        """The gradients of the floating inputs, as tensors."""
        floating = [i for i, leaf in enumerate(arguments.leaves) if floats(leaf)]
        if isinstance(returned, Mapping):
            several = self._by_name(returned, arguments, floating)
        elif isinstance(returned, tuple | list):
            several = list(returned)
            if len(several) == len(arguments.leaves) != len(floating):
                several = [several[i] for i in floating]
        else:
            several = [returned]
        names = [arguments.names[i] for i in floating if arguments.names[i] not in arguments.frozen]
        if len(several) != len(names):
            wanted = ", ".join(f"grad_{name}" for name in names)
            words = f"backward returned {counted(len(several), 'gradient')} instead of {len(names)}: {wanted}"
            if len(several) < len(names):
                words += f"; an input without one is held fixed{self._without(floating[len(several) :], arguments)}"
            raise CannotCompare(f"{self.label}: {words}")
        return [self._as_tensor(name, each) for name, each in zip(names, several, strict=True)]

    def _without(self, fixed: Sequence[int], arguments: Arguments) -> str:
        """How a function of the other inputs holds these fixed; empty where that can't be said in short."""
        others = [name for i, name in enumerate(self.names) if i not in fixed]
        if not (arguments.are_flat and len(self.names) == len(arguments.leaves) and others):
            return ""
        return f": check lambda {', '.join(others)}: {label_of_function(self.forward)}({', '.join(self.names)})"

    def _as_tensor(self, name: str, grad: Any) -> Any:
        if grad is None or isinstance(grad, torch.Tensor):
            return grad
        kind = type(grad).__name__
        if isinstance(grad, np.ndarray | np.generic | float | int):
            try:
                return as_tensor(grad)
            except TypeError:  # torch has no such dtype
                kind = f"an array of {np.asarray(grad).dtype}"
        raise CannotCompare(f"{self.label}: grad_{name} is {kind}, not an array of numbers")

    def _by_name(self, grads: Mapping[Any, Any], arguments: Arguments, floating: Sequence[int]) -> list[Any]:
        # Else inputs may stand in another order than forward's, or be several leaves.
        own = self.names if arguments.are_flat else ()
        try:
            return gradients_called(grads, [[*own[i : i + 1], arguments.names[i]] for i in floating])
        except LookupError as problem:
            raise CannotCompare(f"{self.label}: {problem}") from None


#: What a report names and runs: a function that autograd differentiates, or one of these.
Checked: TypeAlias = Function | Handwritten


def run_function(function: Checked, arguments: Arguments, leaves: Sequence[Any], wanted: Sequence[bool]) -> Forward:
    """Run a function on these leaves, of which the `wanted` ones get a gradient; a handwritten one computes all."""
    if isinstance(function, Handwritten):
        return function.run(arguments, leaves)
    return by_autograd(function, arguments, leaves, wanted)


def handwritten_pair(forward: Function, backward: Function) -> Handwritten:
    """A pair of functions, `backward(saved, *grad_outputs)` or `backward(*grad_outputs, saved)`. A backward of two
    arguments takes the gradients of several outputs as one tuple. Of a scalar loss, backward may take what was saved
    alone: its gradients are then those for an upstream gradient of 1.
    """
    arguments = parameters_of(backward)
    takes_one = len(arguments) == 2 and all(each.kind is not inspect.Parameter.VAR_POSITIONAL for each in arguments)

    def as_taken(grad_outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return (grad_outputs,) if takes_one and len(grad_outputs) > 1 else grad_outputs

    @functools.wraps(backward)
    def saved_first(saved: Any, *grad_outputs: Any) -> Any:
        return backward(saved, *as_taken(grad_outputs))

    def of_loss(saved: Any, grad_output: Any) -> Any:
        if grad_output.shape:
            raise CannotCompare(f"{label}: backward takes no gradient of the output, and the output is no scalar")
        return times(backward(saved), grad_output)

    def saved_last(saved: Any, *grad_outputs: Any) -> Any:
        return backward(*as_taken(grad_outputs), saved)

    label = " and ".join(dict.fromkeys(map(label_of_function, (forward, backward))))
    if len(parameters_of(backward)) == 1 and names_of(backward):
        return Handwritten(forward, of_loss, label, names_of(forward))
    return Handwritten(forward, saved_first if takes_one else backward, label, names_of(forward), saved_last)


def times(grads: Any, factor: Any) -> Any:
    """The gradients, each times a number: for an upstream gradient of 1 they were computed."""
    if isinstance(grads, Mapping):
        return {name: times(grad, factor) for name, grad in grads.items()}
    if isinstance(grads, tuple | list):
        return [times(grad, factor) for grad in grads]
    return grads if grads is None else grads * factor


def _copied(leaf: Any) -> Any:
    """A copy in the same layout: a handwritten forward may write into it."""
    if isinstance(leaf, torch.Tensor):
        return as_copy(leaf.detach())
    return as_copy(as_tensor(leaf)).numpy().view(type(leaf)) if is_array(leaf) else leaf


def _array(tensor: torch.Tensor) -> Array:
    array: Array = tensor.detach().cpu().numpy()
    return array
