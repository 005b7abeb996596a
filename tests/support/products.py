"""Kernels that multiply and cube, a definition and inputs: what tests of the battery make wrong kernels of."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def inputs(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [torch.randn(N, D, generator=generator, dtype=torch.float64) for _ in range(2)]


def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * y


class Product(Function):
    """x * y."""

    @staticmethod
    def forward(context: Any, x: Any, y: Any) -> Any:
        context.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        x, y = context.saved_tensors
        return grad_output * y, grad_output * x


def raw(tensor: torch.Tensor, first: int) -> torch.Tensor:
    """The numbers in the tensor's memory from `first` on, as if it were contiguous; zeros behind its end."""
    memory = tensor.detach().new_empty(0).set_(tensor.untyped_storage())[first:]
    enough = torch.cat([memory, memory.new_zeros(tensor.numel())])
    return enough[: tensor.numel()].reshape(tensor.shape)


class Blocked(Product):
    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        grads = Product.backward(context, grad_output)
        grads[0][:, 128:] = 0
        return grads


class Cube(Function):
    """x**3, differentiable twice."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(context: Any, grad: Any) -> Any:
        (x,) = context.saved_tensors
        return 3 * x**2 * grad
