"""Our layers inside torch's models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from nn_manual.arrays import Array
from nn_manual.layers.base import Layer


def as_autograd_function(layer: Layer) -> torch.nn.Module:
    """A layer or Sequential as a torch module, whose gradients are the hand-derived ones.

    The module's parameters have torch's names and share the layer's memory: whichever side writes to them, both see
    it, and any torch optimizer trains them. It works on the CPU, in the layer's dtype, and is differentiable once.

    A deep copy of the module, as an exponential moving average of the parameters makes one, and what torch.save wrote
    and torch.load(..., weights_only=False) reads, is a module of its own: with its own layer, `module.layer`, and its
    own memory. load_state_dict copies the values into the memory that is there, except with `assign=True`.

    Raises ValueError for a layer whose parameters have no memory yet: the Sequential that it is in gives it to them.
    The module raises RuntimeError if its parameters were moved to other memory: by `.to(...)`, or by load_state_dict
    with `assign=True`.
    """
    if layer.num_parameters and not hasattr(layer, "param"):
        name = type(layer).__name__
        raise ValueError(f"{name} has no memory for its parameters: pass Sequential(...) with the {name} in it")
    return _Module(layer)


class _Module(torch.nn.Module):
    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.layer = layer
        for name, view in _parameters(layer).items():
            *path, last = name.split(".")
            module: torch.nn.Module = self
            for part in path:
                if part not in dict(module.named_children()):
                    module.add_module(part, torch.nn.Module())
                module = module.get_submodule(part)
            module.register_parameter(last, torch.nn.Parameter(torch.from_numpy(view)))

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        for name in self._names_elsewhere():
            raise RuntimeError(f"parameter {name} no longer shares the memory of {type(self.layer).__name__}'s")
        output: torch.Tensor = _Function.apply(self.layer, input, *self.parameters())  # type: ignore[no-untyped-call] # torch has none
        return output

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Become a copy, or what was saved: the layer and the parameters arrive with separate memory."""
        super().__setstate__(state)  # type: ignore[no-untyped-call] # torch has none
        if any(self._names_elsewhere()):
            self._share_memory()

    def _names_elsewhere(self) -> Iterator[str]:
        """The names of the parameters that don't lie in the layer's memory."""
        views = _parameters(self.layer)
        return (name for name, own in self.named_parameters() if own.data_ptr() != views[name].ctypes.data)

    def _share_memory(self) -> None:
        """Give the layer new memory, with the parameters' values, and let the parameters share it."""
        (dtype,) = {view.dtype for view in _parameters(self.layer).values()}
        self.layer.bind(np.zeros(self.layer.num_parameters, dtype), np.zeros(self.layer.num_parameters, dtype))
        for name, parameter in self.named_parameters():
            shared = torch.from_numpy(_parameters(self.layer)[name])
            parameter.data = shared.copy_(parameter.detach())


class _Function(torch.autograd.Function):
    """Arrays are copied on their way out: torch keeps and accumulates what our layer may overwrite or still need."""

    @staticmethod
    def forward(context: Any, layer: Layer, input: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        output, context.saved = layer.forward(input.detach().numpy())
        context.layer = layer
        context.save_for_backward(input, *parameters)  # what `saved` and backward read must not change in between
        return torch.from_numpy(np.array(output))

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        _ = context.saved_tensors  # raises if one of them was changed in place
        layer: Layer = context.layer
        grad_input = None
        if context.needs_input_grad[1]:
            grad_input = torch.from_numpy(np.array(layer.backward(context.saved, grad_output.numpy())))
        else:
            layer.backward_parameters(context.saved, grad_output.numpy())
        grads = vars(layer.grad).values() if layer.num_parameters else ()
        return None, grad_input, *(torch.from_numpy(grad.copy()) for grad in grads)


def _parameters(layer: Layer) -> dict[str, Array]:
    return vars(layer.param) if layer.num_parameters else {}
