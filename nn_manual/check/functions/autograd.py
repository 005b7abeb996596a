"""Our layers inside torch's models."""

from __future__ import annotations

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

    Raises ValueError for a layer whose parameters have no memory yet: the Sequential that it is in gives it to them.
    The module raises RuntimeError if its parameters were moved to other memory, by `.to(...)` for one.
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
        for name, parameter in self.named_parameters():
            if parameter.data_ptr() != _parameters(self.layer)[name].ctypes.data:
                raise RuntimeError(f"parameter {name} no longer shares the memory of {type(self.layer).__name__}'s")
        output: torch.Tensor = _Function.apply(self.layer, input, *self.parameters())  # type: ignore[no-untyped-call] # torch has none
        return output


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
