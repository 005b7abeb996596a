"""Anyone's function on arrays or tensors: how it is called, run and differentiated."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.comparison import CannotCompare

Function: TypeAlias = Callable[..., Any]
#: Takes the gradient of each differentiable output, by its position, to those of the floating inputs.
Backward: TypeAlias = Callable[[dict[int, torch.Tensor]], Sequence[torch.Tensor | None]]


def run_function(
    function: Function | tuple[Function, Function], inputs: Sequence[Any]
) -> tuple[list[torch.Tensor], Backward]:
    """The outputs of a function or pair of them, and its backward."""
    if not isinstance(function, tuple):
        return by_autograd(function, inputs)
    forward, backward = function
    returned = forward(*inputs)
    if not (isinstance(returned, tuple) and len(returned) == 2):
        raise CannotCompare(f"{label_of_function(function)}: forward must return (output, saved)")
    outputs, saved = returned
    as_inputs = as_tensor if any(isinstance(input, torch.Tensor) for input in inputs) else _array
    return _tensors(outputs), lambda grad_outputs: _tensors(backward(saved, *map(as_inputs, grad_outputs.values())))


def by_autograd(function: Function, inputs: Sequence[Any]) -> tuple[list[torch.Tensor], Backward]:
    """The outputs of a function on tensors, and autograd's way back."""
    leaves = [as_tensor(input).detach() if is_array(input) else input for input in inputs]
    leaves = [leaf.requires_grad_() if floats(leaf) else leaf for leaf in leaves]
    apply = function.apply if isinstance(function, type) and issubclass(function, torch.autograd.Function) else function
    outputs = _tensors(apply(*leaves))

    def backward(grad_outputs: dict[int, torch.Tensor]) -> Sequence[torch.Tensor | None]:
        for i in grad_outputs:
            if not outputs[i].requires_grad:
                raise CannotCompare(
                    f"{label_of_function(function)}: output {i} carries no gradient that autograd could follow"
                )
        floating = [leaf for leaf in leaves if floats(leaf)]
        carrying = [outputs[i] for i in grad_outputs]
        return torch.autograd.grad(
            carrying, floating, list(grad_outputs.values()), retain_graph=True, allow_unused=True
        )

    return outputs, backward


@contextmanager
def naming(label: str, doing: str) -> Iterator[None]:
    """A context in which whatever the function raises becomes CannotCompare, with its label."""
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


def floats(thing: Any) -> bool:
    """Whether it is an array or tensor of floating numbers: one to differentiate for."""
    return is_array(thing) and as_tensor(thing).is_floating_point()


def as_tensor(array: Any) -> torch.Tensor:
    """The array as a tensor; memory that torch can use is shared."""
    return array if isinstance(array, torch.Tensor) else torch.from_numpy(np.asarray(array, order="C"))


def _array(tensor: torch.Tensor) -> Array:
    array: Array = tensor.detach().cpu().numpy()
    return array


def _tensors(returned: Any) -> list[Any]:
    """One output or several, as a list of tensors; None, a gradient that is not there, stays."""
    several = returned if isinstance(returned, tuple | list) else (returned,)
    return [None if each is None else as_tensor(each) for each in several]


def arrays_by_name(names: Sequence[str], things: Sequence[Any]) -> Iterator[tuple[str, Array]]:
    """The arrays and tensors among `things` by name; the memory of those on the CPU is not copied."""
    for name, thing in zip(names, things, strict=True):
        if is_array(thing):
            yield name, thing if isinstance(thing, np.ndarray) else _array(thing)
