"""Mistakes around the formula: missing gradients, second backwards, blocks, dtypes, randomness, structures."""

from typing import Any

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from benchmarks.functions.subject import Subject, normal


def rows(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D)]


def two_rows(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), normal(generator, N, D)]


def single_rows(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D).float()]


def rows_and_mask(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), torch.rand(N, D, generator=generator) < 0.7]


def split(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.sin(), x.cos()


class SineCosine(Function):
    """Two outputs. An output that nobody used has the gradient None."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.set_materialize_grads(False)
        context.save_for_backward(x)
        return x.sin(), x.cos()

    @staticmethod
    def backward(context: Any, grad_sine: Any, grad_cosine: Any) -> Any:
        (x,) = context.saved_tensors
        grad = torch.zeros_like(x)
        if grad_sine is not None:
            grad = grad + grad_sine * x.cos()
        if grad_cosine is not None:
            grad = grad - grad_cosine * x.sin()
        return grad


class SineCosineNeedsBoth(SineCosine):
    @staticmethod
    def backward(context: Any, grad_sine: Any, grad_cosine: Any) -> Any:
        (x,) = context.saved_tensors
        return grad_sine * x.cos() - grad_cosine * x.sin()


class SquareOnce(Function):
    """Deletes what it kept, to save memory: a second backward finds nothing."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.kept = x.detach()
        return x * x

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        grad = 2 * context.kept * grad_output
        del context.kept
        return grad


class SquareInBuffer(Function):
    """Reuses its buffer for the gradient, in place: the second backward differs."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.buffer = 2 * x.detach()
        return x * x

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        return context.buffer.mul_(grad_output)


class Square(Function):
    """grad_x = 2 x grad_output, differentiable again."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        return 2 * x * grad_output


class SquareSaysOnce(Square):
    """Not differentiable again, and says so."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        return 2 * x * grad_output


class SquareSingle(Square):
    """Takes only float32."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        if x.dtype != torch.float32:
            raise TypeError(f"float32 expected, not {x.dtype}")
        return Square.forward(context, x)


class SquareBlocked(Square):
    """Blocks of 128 columns; the last, incomplete block is left at zero if there is a complete one."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        grad = torch.zeros_like(x)
        width = x.shape[-1]
        stop = width if width < 128 else width // 128 * 128
        grad[..., :stop] = 2 * x[..., :stop] * grad_output[..., :stop]
        return grad


def square(x: torch.Tensor) -> torch.Tensor:
    return x * x


def largest(x: torch.Tensor) -> torch.Tensor:
    """The square of each row over the largest of the batch, which isn't a constant."""
    return x / (1 + x.square().sum())


class Shrink(Function):
    """x / (1 + sum(x^2))."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        scale = 1 / (1 + x.square().sum())
        context.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        x, scale = context.saved_tensors
        return scale * grad_output - 2 * scale * scale * x * (grad_output * x).sum()


def masked(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return x * mask / 0.7


class MaskedDropout(Function):
    """Random by design, so it takes its mask."""

    @staticmethod
    def forward(context: Any, x: Any, mask: Any) -> Any:
        context.save_for_backward(mask)
        return x * mask / 0.7

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (mask,) = context.saved_tensors
        return grad_output * mask / 0.7, None


class NoisyDropout(MaskedDropout):
    """Draws the mask of the backward pass anew now and then, as a kernel with a race does."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        (mask,) = context.saved_tensors
        jitter = 1 + 1e-9 * torch.rand_like(grad_output)
        return grad_output * mask / 0.7 * jitter, None


def topmost(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.max(-1)


class Topmost(Function):
    """The largest of each row and its place; the place has no gradient."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        value, place = x.max(-1)
        context.save_for_backward(place)
        context.mark_non_differentiable(place)
        context.shape = x.shape
        return value, place

    @staticmethod
    def backward(context: Any, grad_value: Any, grad_place: Any) -> Any:
        (place,) = context.saved_tensors
        return grad_value.new_zeros(context.shape).scatter(-1, place[..., None], grad_value[..., None])


class Product(Function):
    @staticmethod
    def forward(context: Any, left: Any, right: Any) -> Any:
        context.save_for_backward(left, right)
        return left * right

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        left, right = context.saved_tensors
        return grad_output * right, grad_output * left


class ProductLowSum(Product):
    """Rounds the gradients to eight bits on the way, whatever the dtype."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        left, right = context.saved_tensors
        return (grad_output * right).to(torch.bfloat16).to(left.dtype), grad_output * left


SIZES = {"N": 4, "D": 6}
RIGHT = [
    Subject(SineCosine, split, rows, SIZES),
    Subject(Square, square, rows, SIZES),
    Subject(SquareSaysOnce, square, rows, SIZES),
    Subject(SquareSingle, square, single_rows, SIZES),
    Subject(Shrink, largest, rows, SIZES),
    Subject(MaskedDropout, masked, rows_and_mask, SIZES),
    Subject(Topmost, topmost, rows, SIZES),
    Subject(Product, torch.mul, two_rows, SIZES),
]
WRONG = [
    Subject(SineCosineNeedsBoth, split, rows, SIZES, "needs both gradients", ("absent", "used")),
    Subject(SquareOnce, square, rows, SIZES, "forgets what it kept", ("retain_graph", "again")),
    Subject(SquareInBuffer, square, rows, SIZES, "writes into what it kept", ("writes saved",)),
    Subject(SquareBlocked, square, rows, SIZES, "the last block is zero", ("129", "D=")),
    Subject(NoisyDropout, masked, rows_and_mask, SIZES, "random in its last digits", ("random", "determin", "grad_x")),
    Subject(ProductLowSum, torch.mul, two_rows, SIZES, "eight bits", ("grad_left", "grad_input", "grad_0")),
]
