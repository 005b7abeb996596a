"""Anyone's function on tensors: how it is called, run and differentiated by autograd."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch.autograd.function import BackwardCFunction

from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.functions.arguments import Arguments, as_tensor, attribute_of
from nn_manual.functions.exceptions import going_on
from nn_manual.functions.outputs import BUFFER, Outputs, named_outputs
from nn_manual.functions.signatures import names_of
from nn_manual.messages.text import one_line

Function: TypeAlias = Callable[..., Any]
#: From the gradients of the differentiable outputs, by name, to those of the floating inputs that want one.
Backward: TypeAlias = Callable[[dict[str, torch.Tensor]], list[Any]]

#: In torch's message about torch.utils.checkpoint(use_reentrant=True), which has gradients by .backward() alone.
REENTRANT = "use_reentrant=True"


class Forward(NamedTuple):
    """One run of a forward: what it returned, by name; what it saved for its backward, as far as that can be seen; its
    backward; and the inputs that it was given.
    """

    returned: Outputs
    saved: Any
    backward: Backward
    given: list[Any]

    @property
    def outputs(self) -> dict[str, torch.Tensor]:
        """The tensors that it returned."""
        return self.returned.tensors


def by_autograd(function: Function, arguments: Arguments, leaves: Sequence[Any], wanted: Sequence[bool]) -> Forward:
    """Run a function on tensors; its backward is autograd's. It gets copies of the leaves: it may work in place."""
    tensors = [as_tensor(leaf).detach() if is_array(leaf) else leaf for leaf in leaves]
    tensors = [leaf.requires_grad_(want) if want else leaf for leaf, want in zip(tensors, wanted, strict=True)]
    given = [_Copied.apply(leaf) if is_array(leaf) else leaf for leaf in tensors]  # type: ignore[no-untyped-call] # torch has none
    with going_on(function):
        returned, buffers = arguments.call_and_buffers(applied(function), given)
        found = named_outputs(returned)
    outputs = found.tensors
    outputs |= {f"{BUFFER}{name}": buffer.detach() for name, buffer in buffers.items()}

    def backward(grad_outputs: dict[str, torch.Tensor]) -> list[Any]:
        for name in grad_outputs:
            if not outputs[name].requires_grad:
                raise CannotCompare(
                    f"{label_of_function(function)}: {name} carries no gradient that autograd could follow"
                )
        floating = [leaf for leaf, want in zip(tensors, wanted, strict=True) if want]
        carrying = [outputs[name] for name in grad_outputs]
        grads = list(grad_outputs.values())
        with going_on(function):
            return gradients_of(carrying, floating, grads)

    return Forward(found, _saved_in_graph(outputs.values()), backward, given)


def gradients_of(outputs: list[torch.Tensor], leaves: list[torch.Tensor], grads: list[torch.Tensor]) -> list[Any]:
    """The gradients of some leaves by autograd; None for a leaf on which no output depends."""
    try:
        found = torch.autograd.grad(outputs, leaves, grads, retain_graph=True, allow_unused=True)
        # Zeros may have no memory, and NumPy doesn't take those.
        return [grad.clone() if grad is not None and grad._is_zerotensor() else grad for grad in found]
    except RuntimeError as error:
        if REENTRANT not in str(error):
            raise
    torch.autograd.backward(outputs, grads, retain_graph=True)
    accumulated = [leaf.grad for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    return accumulated


class _Copied(torch.autograd.Function):
    """A copy with the strides and the offset of the original, even if that is expanded; it is no view of anything."""

    @staticmethod
    def forward(context: Any, tensor: torch.Tensor) -> torch.Tensor:
        context.set_materialize_grads(False)  # an absent gradient stays None
        return as_copy(tensor)

    @staticmethod
    def backward(_: Any, grad_output: torch.Tensor | None) -> torch.Tensor | None:
        return grad_output


def as_copy(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of the tensor and of all the memory that it is a part of."""
    storage = tensor.untyped_storage().clone()  # type: ignore[no-untyped-call] # torch has none
    return tensor.new_empty(0).set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())


def _saved_in_graph(outputs: Iterable[Any]) -> dict[Any, Any]:
    """What the autograd.Functions in the graph of some outputs saved: their tensors by number, and the attributes of
    their contexts by name, with the number of the Function where several have one of this name.
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
            attributes |= {
                f"{name} of Function {len(seen)}" if name in attributes else name: value
                for name, value in vars(node).items()
            }
    return {**dict(enumerate(tensors)), **attributes}


def applied(function: Any) -> Function:
    """The function to call: for a subclass of torch.autograd.Function, its apply."""
    is_class = isinstance(function, type) and issubclass(function, torch.autograd.Function)
    called: Function = function.apply if is_class else function
    return called


def is_mere_class(function: Any) -> bool:
    """Whether it is a class whose instances are the functions, such as a module's; not an autograd.Function."""
    return isinstance(function, type) and not issubclass(function, torch.autograd.Function)


def class_of_forward(function: Any) -> str | None:
    """The name of the autograd.Function whose forward this is; None for a function without a context."""
    names = names_of(function)
    owner, _, name = str(attribute_of(function, "__qualname__", "")).rpartition(".")
    is_forward = name == "forward" and isinstance(function, FunctionType) and names[:1] in (("ctx",), ("context",))
    return owner.rpartition(".")[2] if is_forward else None


def label_of_function(function: Any) -> str:
    """What a function is called in a report."""
    owner = attribute_of(function, "__self__", None)
    named = owner if isinstance(owner, type) else function  # an autograd.Function's apply belongs to its class
    own = attribute_of(named, "_qualname", type(named).__name__)  # a custom operator of torch: "mine::scale"
    return one_line(str(attribute_of(named, "__name__", own)))


def is_array(thing: Any) -> bool:
    """Whether it is a torch tensor, or a numpy array of numbers or truth values; torch has no others."""
    return isinstance(thing, torch.Tensor) or (isinstance(thing, np.ndarray) and thing.dtype.kind in "biufc")


def dtype_name(array: Any) -> str:
    """The name of an array's or a tensor's dtype: "float32"."""
    return str(array.dtype).removeprefix("torch.")


def floats(thing: Any) -> bool:
    """Whether it is an array or tensor of real floating numbers: it can have a gradient."""
    if isinstance(thing, torch.Tensor):
        return thing.is_floating_point()
    return isinstance(thing, np.ndarray) and thing.dtype.kind == "f"
