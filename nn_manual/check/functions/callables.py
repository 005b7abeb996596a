"""Anyone's function on arrays or tensors: how it is called, run and differentiated."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch.autograd.function import BackwardCFunction

from nn_manual.arrays import Array
from nn_manual.check.comparison import CannotCompare

Function: TypeAlias = Callable[..., Any]
#: Differentiable by autograd, or a pair (forward, backward).
Checked: TypeAlias = Function | tuple[Function, Function]
#: Takes the gradient of each differentiable output, by its position, to those of the floating inputs.
Backward: TypeAlias = Callable[[dict[int, torch.Tensor]], list[Any]]


class Forward(NamedTuple):
    """What a forward returned, what it saved for its backward, as far as that can be seen, and the backward."""

    outputs: list[Any]
    saved: Any
    backward: Backward


def run_function(function: Checked, inputs: Sequence[Any]) -> Forward:
    """Run the forward of a function or pair of them."""
    if not isinstance(function, tuple):
        return by_autograd(function, inputs)
    forward, backward = function
    returned = forward(*(input.detach() if isinstance(input, torch.Tensor) else input for input in inputs))
    if not (isinstance(returned, tuple) and len(returned) == 2):
        raise CannotCompare(f"{label_of_function(function)}: forward must return (output, saved)")
    outputs, saved = returned
    as_inputs = as_tensor if any(isinstance(input, torch.Tensor) for input in inputs) else _array
    return Forward(
        _several(outputs), saved, lambda grad_outputs: _several(backward(saved, *map(as_inputs, grad_outputs.values())))
    )


def by_autograd(function: Function, inputs: Sequence[Any]) -> Forward:
    """Run a function on tensors; its backward is autograd's way back."""
    leaves = [as_tensor(input).detach() if is_array(input) else input for input in inputs]
    leaves = [leaf.requires_grad_() if floats(leaf) else leaf for leaf in leaves]
    apply = function.apply if isinstance(function, type) and issubclass(function, torch.autograd.Function) else function
    outputs = _several(apply(*leaves))

    def backward(grad_outputs: dict[int, torch.Tensor]) -> list[Any]:
        for i in grad_outputs:
            if not outputs[i].requires_grad:
                raise CannotCompare(
                    f"{label_of_function(function)}: output {i} carries no gradient that autograd could follow"
                )
        floating = [leaf for leaf in leaves if floats(leaf)]
        carrying = [outputs[i] for i in grad_outputs]
        return list(
            torch.autograd.grad(carrying, floating, list(grad_outputs.values()), retain_graph=True, allow_unused=True)
        )

    return Forward(outputs, _saved_in_graph(outputs), backward)


def _saved_in_graph(outputs: Sequence[Any]) -> dict[Any, Any]:
    """What the autograd.Functions behind some outputs saved: their tensors by number, what they set on their contexts
    by name.
    """
    tensors: list[Any] = []
    attributes: dict[str, Any] = {}
    seen = set()
    nodes = [output.grad_fn for output in outputs if isinstance(output, torch.Tensor)]
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        nodes += [following for following, _ in node.next_functions]
        if isinstance(node, BackwardCFunction):
            tensors += node.saved_tensors
            attributes |= vars(node)
    return {**dict(enumerate(tensors)), **attributes}


@contextmanager
def naming(label: str, doing: str) -> Iterator[None]:
    """A context in which everything that the function raises becomes CannotCompare, with its label."""
    try:
        yield
    except CannotCompare:
        raise
    except Exception as error:  # anyone's function may raise anything
        raise CannotCompare(f"{label}: {doing} raised {type(error).__name__}: {error}") from error


def names_of_inputs(reference: Function, inputs: Sequence[Any]) -> list[str]:
    """What the reference calls its inputs; numbers for what it does not name, as a built-in function doesn't."""
    try:
        parameters = inspect.signature(reference).parameters.values()
        names = [p.name for p in parameters if p.kind <= p.POSITIONAL_OR_KEYWORD]
    except ValueError:
        names = []
    return [*names[: len(inputs)], *(f"input_{i}" for i in range(len(names), len(inputs)))]


def label_of_function(function: Any) -> str:
    """What a function, or a pair of them, is called in a report."""
    if isinstance(function, tuple):
        return " and ".join(label_of_function(each) for each in function)
    owner = getattr(function, "__self__", None)
    named = owner if isinstance(owner, type) else function  # the apply of an autograd.Function is its class's
    return str(getattr(named, "__name__", type(named).__name__))


def is_array(thing: Any) -> bool:
    """Whether it is a numpy array or a torch tensor."""
    return isinstance(thing, np.ndarray | torch.Tensor)


def dtype_name(array: Any) -> str:
    """The name of an array's or a tensor's dtype: "float32"."""
    return str(array.dtype).removeprefix("torch.")


def floats(thing: Any) -> bool:
    """Whether it is an array or tensor of real floating numbers: one to differentiate for."""
    return is_array(thing) and "float" in dtype_name(thing)


def as_tensor(array: Any) -> torch.Tensor:
    """The array or number as a tensor; memory that torch can use is shared."""
    if isinstance(array, torch.Tensor):
        return array
    array = np.asarray(array, order="C")
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _array(tensor: torch.Tensor) -> Array:
    array: Array = tensor.detach().cpu().numpy()
    return array


def _several(returned: Any) -> list[Any]:
    """What was returned, one or several, as a list; arrays and numbers as tensors, everything else as it is."""
    several = returned if isinstance(returned, tuple | list) else (returned,)
    numbers = np.ndarray | np.generic | int | float | complex
    return [as_tensor(each) if isinstance(each, numbers) else each for each in several]
