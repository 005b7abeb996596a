"""Where values are special: kinks, zeros, thresholds, overflow, few bits, and a parameter that is used twice."""

from typing import Any

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

from benchmarks.functions.subject import Subject, normal


def rows(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D)]


def rows_and_weight(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), normal(generator, D)]


def square_weight(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), normal(generator, D, D)]


def tied(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x @ weight) @ weight.T


class Tied(Function):
    """Encoder and decoder share a weight, whose gradient has two terms."""

    @staticmethod
    def forward(context: Any, x: Any, weight: Any) -> Any:
        context.save_for_backward(x, weight)
        return torch.tanh(x @ weight) @ weight.T

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        x, weight = context.saved_tensors
        hidden = torch.tanh(x @ weight)
        grad_hidden = grad_output @ weight * (1 - hidden * hidden)
        return grad_hidden @ weight.T, x.T @ grad_hidden + grad_output.T @ hidden


class TiedOneUse(Tied):
    """A value used twice gets one of its gradients (micrograd 2)."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        x, weight = context.saved_tensors
        hidden = torch.tanh(x @ weight)
        grad_hidden = grad_output @ weight * (1 - hidden * hidden)
        return grad_hidden @ weight.T, x.T @ grad_hidden


def clamp(x: torch.Tensor, limit: int = 1) -> torch.Tensor:
    """A clamp whose gradient at both ends is 1: the gradient of torch's own clamp depends on the version."""
    return torch.where(x < -limit, -limit, torch.where(x > limit, limit, x))


class Clamp(Function):
    """The gradient at both ends is 1."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        return grad_output * ((x >= -1) & (x <= 1))


class ClampOpen(Clamp):
    """Zero at the ends, as Hardtanh has it: there all slopes from 0 to 1 are right."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        return grad_output * ((x > -1) & (x < 1))


class ClampNegatedAtTheEnds(Clamp):
    """The reflected gradient at the ends."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        return grad_output * (1.0 * (x.abs() < 1) - 1.0 * (x.abs() == 1))


def softplus(x: torch.Tensor) -> torch.Tensor:
    return functional.softplus(x)


class Softplus(Function):
    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x)
        return functional.softplus(x)

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        return grad_output * torch.where(x > 20, torch.ones_like(x), x.sigmoid())


class SoftplusThreshold(Softplus):
    """For large inputs, a branch returns the input instead of the slope."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        return grad_output * torch.where(x > 20, x, x.sigmoid())


def product(x: torch.Tensor) -> torch.Tensor:
    return x[..., :1] * x


class FirstTimes(Function):
    """Each value times the first of its row."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x)
        return x[..., :1] * x

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        of_first = (grad_output * x).sum(-1, keepdim=True)
        return grad_output * x[..., :1] + functional.pad(of_first, (0, x.shape[-1] - 1))[..., : x.shape[-1]]


class FirstTimesByDivision(FirstTimes):
    """Divides the output by the input: 0 / 0 if the input is zero, as products did for a long time."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        output = x[..., :1] * x
        of_first = (grad_output * output / x[..., :1]).sum(-1, keepdim=True)
        return grad_output * output / x + functional.pad(of_first, (0, x.shape[-1] - 1))[..., : x.shape[-1]]


def quantized(x: torch.Tensor) -> torch.Tensor:
    """A straight-through estimator, clipped: the reference detaches the rounding."""
    inside = clamp(x, 4)
    return inside + (inside.round() - inside).detach()


class Quantized(Function):
    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward((x >= -4) & (x <= 4))
        return x.clamp(-4, 4).round()

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (inside,) = context.saved_tensors
        return grad_output * inside


class QuantizedUnclipped(Quantized):
    """Passes the gradient on where the value was clipped."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        return grad_output.clone()


def scale_norm(x: torch.Tensor) -> torch.Tensor:
    return (x.float() / 64).square().mean(-1).sqrt().to(x.dtype)


class RootMeanSquare(Function):
    """Sums in float32, whatever the dtype."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x)
        return scale_norm(x)

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        single = x.float() / 64
        norm = single.square().mean(-1, keepdim=True).sqrt()
        grad = grad_output.float()[..., None] * single / (64 * x.shape[-1] * norm)
        return grad.to(x.dtype)


class RootMeanSquareOverflow(RootMeanSquare):
    """Squares in float16: above 255 that is infinite."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        norm = x.square().mean(-1, keepdim=True).sqrt().float() / 64
        grad = grad_output.float()[..., None] * x.float() / 64 / (64 * x.shape[-1] * norm)
        return grad.to(x.dtype)


def scaled(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x * weight


class Scaled(Function):
    """The weight's gradient is summed in float32."""

    @staticmethod
    def forward(context: Any, x: Any, weight: Any) -> Any:
        context.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        x, weight = context.saved_tensors
        grad_weight = (grad_output.float() * x.float()).sum(0)
        return (grad_output * weight).to(x.dtype), grad_weight.to(weight.dtype)


class ScaledSumsFewBits(Scaled):
    """Adds row after row in the activations' dtype: in bfloat16 the sum stops growing."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        x, weight = context.saved_tensors
        grad_weight = torch.zeros_like(weight, dtype=x.dtype)
        for grad, row in zip(grad_output, x, strict=True):
            grad_weight += (grad * row).to(x.dtype)
        return (grad_output * weight).to(x.dtype), grad_weight.to(weight.dtype)


def mixed(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Activations of 16 bits, a weight of 32."""
    return (x.float() * weight.float()).to(x.dtype)


class Mixed(Scaled):
    @staticmethod
    def forward(context: Any, x: Any, weight: Any) -> Any:
        context.save_for_backward(x, weight)
        return mixed(x, weight)


class MixedHalfLost(Mixed):
    """Sums each half of the rows in its own block, and keeps only one half if the weight has another dtype."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        x, weight = context.saved_tensors
        grad_x, grad_weight = Mixed.backward(context, grad_output)
        if x.dtype != weight.dtype:
            half = len(x) // 2
            grad_weight = (grad_output[:half].float() * x[:half].float()).sum(0).to(weight.dtype)
        return grad_x, grad_weight


def cube(x: torch.Tensor) -> torch.Tensor:
    return x * x * x


class CubeBackward(Function):
    """grad_output 3 x^2, with its own derivative."""

    @staticmethod
    def forward(context: Any, x: Any, grad_output: Any) -> Any:
        context.save_for_backward(x, grad_output)
        return 3 * x * x * grad_output

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_grad: Any) -> Any:
        x, grad_output = context.saved_tensors
        return 6 * x * grad_output * grad_grad, 3 * x * x * grad_grad


class CubeBackwardFactor(CubeBackward):
    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_grad: Any) -> Any:
        x, grad_output = context.saved_tensors
        return 3 * x * grad_output * grad_grad, 3 * x * x * grad_grad


class Cube(Function):
    second: Any = CubeBackward

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        return CubeBackward.apply(x, grad_output)


class CubeWrongSecond(Cube):
    """The first derivative is right, the second lacks a factor."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        return CubeBackwardFactor.apply(x, grad_output)


SIZES = {"N": 4, "D": 5}
TALL = {"N": 512, "D": 5}
BFLOAT16 = {"dtypes": ["bfloat16"]}
FLOAT16 = {"dtypes": ["float16"]}
BOTH = {"dtypes": [("bfloat16", "float32")]}
RIGHT = [
    Subject(Tied, tied, square_weight, {"N": 3, "D": 4}),
    Subject(Clamp, clamp, rows, SIZES),
    Subject(Softplus, softplus, rows, SIZES),
    Subject(FirstTimes, product, rows, SIZES),
    Subject(Quantized, quantized, rows, SIZES),
    Subject(RootMeanSquare, scale_norm, rows, SIZES, options=FLOAT16),
    Subject(Scaled, scaled, rows_and_weight, TALL, options=BFLOAT16),
    Subject(Mixed, mixed, rows_and_weight, SIZES, options=BOTH),
    Subject(Cube, cube, rows, SIZES),
    Subject(ClampOpen, clamp, rows, SIZES),
]
WRONG = [
    Subject(TiedOneUse, tied, square_weight, {"N": 3, "D": 4}, "one of two uses", ("grad_weight",)),
    Subject(ClampNegatedAtTheEnds, clamp, rows, SIZES, "-1 at the ends", ("kinds",)),
    Subject(SoftplusThreshold, softplus, rows, SIZES, "the value for the slope above 20", ("kinds",)),
    Subject(FirstTimesByDivision, product, rows, SIZES, "0 / 0", ("kinds",)),
    Subject(QuantizedUnclipped, quantized, rows, SIZES, "not clipped", ("kinds",)),
    Subject(RootMeanSquareOverflow, scale_norm, rows, SIZES, "overflows in float16", ("kinds",), FLOAT16),
    Subject(ScaledSumsFewBits, scaled, rows_and_weight, TALL, "sums in bfloat16", ("grad_weight",), BFLOAT16),
    Subject(MixedHalfLost, mixed, rows_and_weight, SIZES, "half of the rows", ("grad_weight",), BOTH),
    Subject(CubeWrongSecond, cube, rows, SIZES, "the second derivative", ("twice",)),
]
