"""Our layers inside torch's models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from nn_manual.arrays import Array
from nn_manual.defaults import defines
from nn_manual.layers.base import Layer, num_parameters
from nn_manual.layers.composite import descendants, has_buffers
from nn_manual.layers.with_lengths import LayerWithLengths
from nn_manual.layers.with_noise import draws, evaluates_otherwise
from nn_manual.model import Sequential
from nn_manual.model.memory import bind, new_buffers


def as_autograd_function(layer: Layer) -> torch.nn.Module:
    """A layer or Sequential as a torch module, whose gradients are the hand-derived ones.

    The module's parameters have torch's names and share the layer's memory: when one side writes to them, the other
    sees it, and any torch optimizer can train them. The module works on the CPU, in the layer's dtype, and is
    differentiable once.

    A deep copy of the module is independent of it: it has its own layer, `module.layer`, and its own memory. An
    exponential moving average of the parameters makes such a copy. So is a module that torch.save wrote and
    torch.load(..., weights_only=False) reads. load_state_dict copies the values into the existing memory, except with
    `assign=True`.

    The layer's buffers are buffers of the module, too. Each forward in training updates them, and draws new random
    numbers if the layer is a Sequential. After module.eval(), the module runs `infer`.

    Raises ValueError for a layer that has no memory yet for its parameters, buffers or random numbers: a Sequential
    gives its layers memory. Raises ValueError for a layer that heeds the lengths of sequences, too: the module gets a
    tensor alone. The module raises RuntimeError if its parameters or buffers were moved to other memory, by
    `.to(...)` or by load_state_dict with `assign=True`. In evaluation, it raises RuntimeError if a gradient is asked
    for and evaluation differs from training: no such gradient was derived by hand.
    """
    inside = [layer, *(inner for _, inner in descendants(layer))]
    for inner in inside:
        if isinstance(inner, LayerWithLengths):
            name = type(inner).__name__
            raise ValueError(f"{name} heeds the lengths of sequences, and the module gets a tensor alone")
    has_noise = any(map(draws, inside))
    with_buffers = has_buffers(layer)
    needs = {"param": num_parameters(layer) > 0, "buffer": with_buffers, "num_steps": has_noise}
    if any(needed and not hasattr(layer, name) for name, needed in needs.items()):
        name = type(layer).__name__
        what = "random numbers" if has_noise else "buffers" if with_buffers else "parameters"
        raise ValueError(f"{name} has no memory for its {what}: pass Sequential(...) with the {name} in it")
    return _Module(layer, evaluates=has_noise or any(map(_evaluates, inside)))


def _evaluates(layer: Layer) -> bool:
    """Whether the layer itself computes something else in evaluation. A composite may run just its children's."""
    return defines(layer, "infer_reference") or (not layer.children() and evaluates_otherwise(layer))


class _Module(torch.nn.Module):
    def __init__(self, layer: Layer, *, evaluates: bool) -> None:
        super().__init__()
        self.layer = layer
        #: Whether evaluation computes something else than training.
        self.evaluates = evaluates
        for name, view in _parameters(layer).items():
            module, last = self._owner(name)
            module.register_parameter(last, torch.nn.Parameter(torch.from_numpy(view)))
        for name, view in _buffers(layer).items():
            module, last = self._owner(name)
            module.register_buffer(last, torch.from_numpy(view))

    def _owner(self, name: str) -> tuple[torch.nn.Module, str]:
        """The submodule that a dotted name leads to, created if it is missing, and the last part of the name."""
        *path, last = name.split(".")
        module: torch.nn.Module = self
        for part in path:
            if part not in dict(module.named_children()):
                module.add_module(part, torch.nn.Module())
            module = module.get_submodule(part)
        return module, last

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        for name in self._names_elsewhere():
            raise RuntimeError(f"parameter {name} no longer shares memory with {type(self.layer).__name__}")
        if self.evaluates and not self.training:
            if torch.is_grad_enabled() and any(t.requires_grad for t in (input, *self.parameters())):
                raise RuntimeError("evaluation differs from training here, and has no gradient: use torch.no_grad()")
            return torch.from_numpy(np.array(self.layer.infer(input.detach().numpy())))
        if self.training and isinstance(self.layer, Sequential):
            self.layer.num_steps += 1
        output: torch.Tensor = _Function.apply(self.layer, self.training, input, *self.parameters())  # type: ignore[no-untyped-call] # torch has none
        return output

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copied or saved module, whose layer and parameters arrive in separate memory."""
        super().__setstate__(state)  # type: ignore[no-untyped-call] # torch has none
        if any(self._names_elsewhere()):
            self._share_memory()

    def _names_elsewhere(self) -> Iterator[str]:
        """The names of the parameters that don't lie in the layer's memory."""
        views = _parameters(self.layer) | _buffers(self.layer)
        own = (*self.named_parameters(), *self.named_buffers())
        return (name for name, tensor in own if tensor.data_ptr() != views[name].ctypes.data)

    def _share_memory(self) -> None:
        """Give the layer new memory, with the parameters' values, and let the parameters share it."""
        views = _parameters(self.layer) | _buffers(self.layer)
        (dtype,) = {view.dtype for view in views.values() if view.dtype.kind == "f"}
        layer = self.layer
        param, grad = np.zeros((2, num_parameters(layer)), dtype)
        if isinstance(layer, Sequential):
            layer.bind(param, grad)
        else:
            bind(layer, param, grad)
        new_buffers(layer, dtype)
        views = _parameters(self.layer) | _buffers(self.layer)
        for name, tensor in (*self.named_parameters(), *self.named_buffers()):
            tensor.data = torch.from_numpy(views[name]).copy_(tensor.detach())


class _Function(torch.autograd.Function):
    """The layer as an autograd.Function. It returns copies, since torch keeps them and adds to them, and our layer may
    overwrite its arrays, or still need them.
    """

    @staticmethod
    def forward(
        context: Any, layer: Layer, moves_buffers: bool, input: torch.Tensor, *parameters: torch.Tensor
    ) -> torch.Tensor:
        output, context.saved = layer.forward(input.detach().numpy())
        if moves_buffers:
            layer.update_buffers(context.saved)
        context.layer = layer
        context.save_for_backward(input, *parameters)  # what `saved` and backward read must not change in between
        return torch.from_numpy(np.array(output))

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        _ = context.saved_tensors  # raises if one of them was changed in place
        layer: Layer = context.layer
        grad_input = None
        if context.needs_input_grad[2]:
            grad_input = torch.from_numpy(np.array(layer.backward(context.saved, grad_output.numpy())))
        else:
            layer.backward_parameters(context.saved, grad_output.numpy())
        grads = vars(layer.grad).values() if num_parameters(layer) else ()
        return None, None, grad_input, *(torch.from_numpy(grad.copy()) for grad in grads)


def _parameters(layer: Layer) -> dict[str, Array]:
    return vars(layer.param) if num_parameters(layer) else {}


def _buffers(layer: Layer) -> dict[str, Array]:
    return vars(layer.buffer) if hasattr(layer, "buffer") else {}
