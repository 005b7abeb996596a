"""Activations: a missing factor, another formula than forward's, and mistakes at a kink."""

import math
from typing import Any

import torch
from torch.autograd import Function
from torch.nn import functional

from benchmarks.functions.subject import Subject, normal


def rows(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D)]


def two_rows(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), normal(generator, N, D)]


def swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return functional.silu(gate) * up


class SwiGLU(Function):
    """silu(gate) up; silu'(x) = s + x s (1 - s), where s = sigmoid(x)."""

    @staticmethod
    def forward(context: Any, gate: Any, up: Any) -> Any:
        context.save_for_backward(gate, up)
        return gate * gate.sigmoid() * up

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        gate, up = context.saved_tensors
        sigmoid = gate.sigmoid()
        slope = sigmoid * (1 + gate * (1 - sigmoid))
        return grad_output * up * slope, grad_output * gate * sigmoid


class SwiGLUWithoutGate(SwiGLU):
    """sigmoid in the place of silu'."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        gate, up = context.saved_tensors
        return grad_output * up * gate.sigmoid(), grad_output * gate * gate.sigmoid()


class SwiGLUOneDerivative(SwiGLU):
    """Computes both gradients only if the first input wants one."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        if not context.needs_input_grad[0]:
            return None, None
        return SwiGLU.backward(context, grad_output)


def gelu(x: torch.Tensor) -> torch.Tensor:
    return functional.gelu(x, approximate="tanh")


class GELU(Function):
    """0.5 x (1 + tanh(c (x + 0.044715 x^3)))."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x)
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        scale = math.sqrt(2 / math.pi)
        tanh = torch.tanh(scale * (x + 0.044715 * x * x * x))
        inner = scale * (1 + 3 * 0.044715 * x * x)
        return grad_output * (0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * inner)


class GELUExactBackward(GELU):
    """The derivative of the exact GELU, with the forward of the approximation."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        density = torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        return grad_output * (0.5 * (1 + torch.erf(x / math.sqrt(2))) + x * density)


class Mish(Function):
    """x tanh(softplus(x))."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x)
        return x * torch.tanh(functional.softplus(x))

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        tanh = torch.tanh(functional.softplus(x))
        return grad_output * (tanh + x * x.sigmoid() * (1 - tanh * tanh))


class MishNumerator(Mish):
    """The closed form with exp, whose numerator has 4x instead of 4 (x + 1)."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        numerator = 4 * x + 4 * torch.exp(2 * x) + torch.exp(3 * x) + torch.exp(x) * (4 * x + 6)
        denominator = 2 * torch.exp(x) + torch.exp(2 * x) + 2
        return grad_output * torch.exp(x) * numerator / (denominator * denominator)


class ReLU(Function):
    """max(x, 0); the gradient at 0 is 0."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x > 0)
        return x.clamp(min=0)

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (positive,) = context.saved_tensors
        return grad_output * positive


class ReLUAtZero(ReLU):
    """Lets the gradient through at 0: there all slopes from 0 to 1 are right."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x >= 0)
        return x.clamp(min=0)


class ReLUTwiceAtZero(ReLU):
    """Lets the gradient through twice at 0, as a mask of both signs does."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward((x >= 0).to(x) + (x == 0).to(x))
        return x.clamp(min=0)


class Exp(Function):
    """grad_x = grad_output y."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        y = x.exp()
        context.save_for_backward(y)
        return y

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (y,) = context.saved_tensors
        return grad_output * y


class ExpInPlace(Exp):
    """Writes over its input, and says so."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        x.exp_()
        context.mark_dirty(x)
        context.save_for_backward(x)
        return x


class ExpOverInput(Exp):
    """Writes over its input, and says nothing."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        y = torch.exp(x, out=x.detach())
        context.save_for_backward(y)
        return y.clone()


class ExpDetached(Exp):
    """Keeps y on the context, detached: the gradient is right, but the gradient of the gradient silently lacks a term.
    """

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.y = x.exp()
        return context.y.clone()

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        return grad_output * context.y.detach()


SIZES = {"N": 4, "D": 6}
RIGHT = [
    Subject(SwiGLU, swiglu, two_rows, SIZES),
    Subject(GELU, gelu, rows, SIZES),
    Subject(Mish, functional.mish, rows, SIZES),
    Subject(ReLU, torch.relu, rows, SIZES),
    Subject(Exp, torch.exp, rows, SIZES),
    Subject(ExpInPlace, torch.exp, rows, SIZES),
    Subject(ReLUAtZero, torch.relu, rows, SIZES),
]
WRONG = [
    Subject(SwiGLUWithoutGate, swiglu, two_rows, SIZES, "silu' is missing a term", ("grad_gate",)),
    Subject(SwiGLUOneDerivative, swiglu, two_rows, SIZES, "up alone gets no gradient", ("grad_up",)),
    Subject(GELUExactBackward, gelu, rows, SIZES, "another GELU's derivative", ("grad_input", "grad_x")),
    Subject(MishNumerator, functional.mish, rows, SIZES, "4x for 4 (x + 1)", ("grad_input", "grad_x")),
    Subject(ReLUTwiceAtZero, torch.relu, rows, SIZES, "2 at 0", ("grad_input", "grad_x")),
    Subject(ExpOverInput, torch.exp, rows, SIZES, "writes over its input", ("input",)),
    Subject(ExpDetached, torch.exp, rows, SIZES, "not twice differentiable, unsaid", ("twice", "double", "second")),
]
