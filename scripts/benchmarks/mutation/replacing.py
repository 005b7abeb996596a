"""A class with one method or one gradient replaced: how every mistake is made, in the benchmarks and in the tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nn_manual.arrays import Array
from nn_manual.defaults import defines

#: A gradient's formula: of the layer, what it saved, and grad_output; or of the loss, and what it saved.
Formula = Callable[..., Array]

#: The gradients that a method returns. All others are parameters' and are written to `self.grad`.
RETURNED = {"grad_input": "backward", "grad_prediction": "backward", "grad_target": "backward_target"}


def replace_method(owner: type[Any], method: str, replacement: Callable[..., Any]) -> type[Any]:
    """A subclass of `owner`, of the same name, whose `method` is `replacement`."""
    return type(owner.__name__, (owner,), {method: replacement})


def replace_gradient(owner: type[Any], tensor: str, formula: Formula) -> type[Any]:
    """A subclass of `owner`, of the same name, in which `formula` gives the gradient `tensor`: "grad_input" or "grad_"
    and a parameter of a layer, "grad_prediction" or "grad_target" of a loss. The other gradients stay right, except
    those that are computed from this one.

    A layer that has no such parameter (a Linear without bias) stays right, too.
    """
    method, parameter = method_of(owner, tensor), tensor.removeprefix("grad_")
    right = getattr(owner, method)

    def replaced(self: Any, *arguments: Any) -> Any:
        if tensor not in RETURNED and parameter not in self.parameter_shapes():
            return right(self, *arguments)
        gradient = formula(self, *arguments)  # first: a mistake may add to what the last step left in self.grad
        result = right(self, *arguments)
        if tensor in RETURNED:
            return gradient
        getattr(self.grad, parameter)[...] = gradient
        return result

    return replace_method(owner, method, replaced)


def replace_saved(owner: type[Any], formula: Formula) -> type[Any]:
    """A subclass of `owner`, of the same name, whose forward saves what `formula` computes from the layer and the
    input.
    """
    right = owner.forward

    def replaced(self: Any, input: Array) -> tuple[Array, Any]:
        return right(self, input)[0], formula(self, input)

    return replace_method(owner, "forward", replaced)


def change_gradient(owner: type[Any], tensor: str, change: Callable[[Array], Array]) -> type[Any]:
    """A subclass of `owner`, of the same name, in which `change` makes a gradient from a copy of the right one."""
    right = getattr(owner, method_of(owner, tensor))

    def changed(self: Any, *arguments: Any) -> Array:
        result = right(self, *arguments)
        gradient = result if tensor in RETURNED else getattr(self.grad, tensor.removeprefix("grad_"))
        return change(gradient.copy())

    return replace_gradient(owner, tensor, changed)


def method_of(owner: type[Any], tensor: str) -> str:
    """The name of the method that computes a gradient."""
    if tensor in RETURNED:
        return RETURNED[tensor]
    # Layer's own backward_parameters calls backward.
    return "backward" if not defines(owner, "backward_parameters") else "backward_parameters"
