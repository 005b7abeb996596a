"""Memory, caches, lists, modules, keywords, in-place work, empty batches, and branches without gradients."""

from typing import Any

import numpy as np
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

from benchmarks.functions.subject import Subject, normal


def rows(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D)]


def rows_and_weight(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), normal(generator, D)]


def a_list(generator: torch.Generator, N: int, D: int) -> list[Any]:
    return [[normal(generator, N, D), normal(generator, N, D)]]


def keywords(generator: torch.Generator, N: int, D: int) -> dict[str, Any]:
    return {"x": normal(generator, N, D), "scale": 3.0}


def square(x: torch.Tensor) -> torch.Tensor:
    return x * x


class Square(Function):
    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        return 2 * x * grad_output


class SquareReadsInputMemory(Square):
    """Reads as many numbers as x has from the beginning of its memory."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        memory = x.detach().new_empty(0).set_(x.untyped_storage())
        raw = functional.pad(memory, (0, x.numel()))[: x.numel()].reshape(x.shape)
        return 2 * raw * grad_output


class SquareRefusesEmpty(Square):
    """Finds its block size from the largest index; an empty batch has none."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.block = int(torch.arange(x.numel()).max()) + 1
        return Square.forward(context, x)


class SquareSqueezes(Square):
    """A batch of 1 loses its axis on the way, and the gradient is broadcast."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        gradient = (2 * x * grad_output).squeeze(0)
        return gradient.sum(0).expand(x.shape) if gradient.ndim < x.ndim else gradient


class SquareCachedWorkspace(Square):
    """The workspace of the first call is kept, and is too small for larger ones."""

    workspace: Any = None

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        if SquareCachedWorkspace.workspace is None:
            SquareCachedWorkspace.workspace = x.numel()
        grad = 2 * x * grad_output
        grad.reshape(-1)[SquareCachedWorkspace.workspace :] = 0
        return grad


class SquareEvaluates(Square):
    """A faster branch without gradients, which forgets to square."""

    @staticmethod
    def run(x: Any) -> Any:
        return SquareEvaluates.apply(x) if x.requires_grad else x * x.abs()


class SquareInPlace(Function):
    """Keeps a copy of what it overwrites."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x.clone())
        context.mark_dirty(x)
        return x.mul_(x)

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        return 2 * x * grad_output


class SquareInPlaceSavesOutput(SquareInPlace):
    """Saves its input after it wrote over it."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        x.mul_(x)
        context.mark_dirty(x)
        context.save_for_backward(x)
        return x


def total(several: list[torch.Tensor]) -> torch.Tensor:
    return several[0] * several[1]


class _Total(Function):
    @staticmethod
    def forward(context: Any, left: Any, right: Any) -> Any:
        context.save_for_backward(left, right)
        return left * right

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        left, right = context.saved_tensors
        return grad_output * right, grad_output * left


def product_of_list(several: list[torch.Tensor]) -> torch.Tensor:
    return _Total.apply(*several)


def product_of_list_first_alone(several: list[torch.Tensor]) -> torch.Tensor:
    """A wrapper that detaches all tensors of its list but the first, to save memory."""
    return _Total.apply(several[0], several[1].detach())


def scaled(x: torch.Tensor, scale: float) -> torch.Tensor:
    return torch.tanh(scale * x)


class _Scaled(Function):
    @staticmethod
    def forward(context: Any, x: Any, scale: float) -> Any:
        context.scale = scale
        context.save_for_backward(x)
        return torch.tanh(scale * x)

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (x,) = context.saved_tensors
        return context.scale * grad_output * (1 - torch.tanh(context.scale * x) ** 2), None


class _ScaledDefault(_Scaled):
    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        return _Scaled.backward(context, grad_output)[0] / context.scale, None


def scaled_by_keyword(x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    return _Scaled.apply(x, scale)


def scaled_by_default(x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    """Backward knows only the default of the keyword."""
    return _ScaledDefault.apply(x, scale)


class Affine(torch.nn.Module):
    """x weight + bias, elementwise."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        self.weight = torch.nn.Parameter(torch.randn(1, generator=generator, dtype=torch.float64))
        self.bias = torch.nn.Parameter(torch.randn(1, generator=generator, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight + self.bias


class _AffineFunction(Function):
    @staticmethod
    def forward(context: Any, x: Any, weight: Any, bias: Any) -> Any:
        context.save_for_backward(x, weight)
        return x * weight + bias

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        x, weight = context.saved_tensors
        return grad_output * weight, (grad_output * x).sum().reshape(1), grad_output.sum().reshape(1)


class FusedAffine(Affine):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _AffineFunction.apply(x, self.weight, self.bias)


class UntrainedAffine(Affine):
    """The kernel gets the parameters' data: neither parameter is ever trained (a layer norm from a course)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _AffineFunction.apply(x, self.weight.data, self.bias)


class DropoutRedrawn(Function):
    """Draws a mask in forward, and another one in backward."""

    @staticmethod
    def forward(context: Any, x: Any, mask: Any) -> Any:
        context.save_for_backward(x)
        return x * mask

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        return grad_output * (torch.rand_like(grad_output) < 0.7), None


def rows_and_mask(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), torch.rand(N, D, generator=generator) < 0.7]


def masked(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return x * mask


def named_halves(x: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"sine": x.sin(), "double": 2 * x}


def pair_forward(x: Any, weight: Any) -> Any:
    return x * weight, (x, weight)


def pair_backward(saved: Any, grad_output: Any) -> Any:
    x, weight = saved
    return grad_output * weight, (grad_output * x).sum(0)


def numpy_rows(generator: torch.Generator, N: int, D: int) -> list[Any]:
    return [np.asarray(each) for each in rows_and_weight(generator, N, D)]


def seeded(x: torch.Tensor, seed: int) -> torch.Tensor:
    """Random by design: it takes its seed."""
    return x * (torch.rand(x.shape, generator=torch.Generator().manual_seed(seed)) < 0.5)


def rows_and_seed(generator: torch.Generator, N: int, D: int) -> list[Any]:
    return [normal(generator, N, D), 5]


def product(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x * weight


def gated(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(x) * weight


def softmax(x: torch.Tensor) -> torch.Tensor:
    return x.softmax(-1)


def softmax_by_hand(x: torch.Tensor) -> torch.Tensor:
    exponential = (x - x.amax(-1, keepdim=True).detach()).exp() if x.numel() else x
    return exponential / exponential.sum(-1, keepdim=True)


SIZES = {"N": 4, "D": 5}
RIGHT = [
    Subject(Square, square, rows, SIZES),
    Subject(SquareInPlace, square, rows, SIZES),
    Subject(product_of_list, total, a_list, SIZES),
    Subject(scaled_by_keyword, scaled, keywords, SIZES),
    Subject(FusedAffine(), Affine(), rows, SIZES),
    Subject(named_halves, named_halves, rows, SIZES),
    Subject((pair_forward, pair_backward), product, numpy_rows, SIZES),
    Subject((pair_forward, pair_backward), product, rows_and_weight, SIZES),
    Subject(seeded, seeded, rows_and_seed, SIZES),
    Subject(softmax_by_hand, softmax, rows, SIZES),
    Subject(gated, gated, rows_and_weight, SIZES),
    Subject(torch.nn.Linear(5, 2, dtype=torch.float64), torch.nn.Linear(5, 2), rows, {"N": 4, "D": 5}),
    Subject(torch.cumsum, torch.cumsum, lambda generator, N, D: [normal(generator, N, D), -1], SIZES),
    Subject(functional.gelu, functional.gelu, rows, SIZES, options={"dtypes": ["float64", "float32", "bfloat16"]}),
    Subject(torch.relu_, torch.relu, rows, SIZES),
    Subject(masked, masked, rows_and_mask, SIZES),
    Subject(torch.sort, torch.sort, rows, SIZES),
]
WRONG = [
    Subject(SquareReadsInputMemory, square, rows, SIZES, "ignores the input's strides", ("inputs",)),
    Subject(SquareRefusesEmpty, square, rows, SIZES, "an empty batch", ("N=0",)),
    Subject(SquareSqueezes, square, rows, SIZES, "a batch of 1", ("N=1",)),
    Subject(SquareCachedWorkspace, square, rows, SIZES, "the first call's workspace", ("sizes",)),
    Subject(SquareEvaluates.run, square, rows, SIZES, "another function without gradients", ("no_grad",)),
    Subject(SquareInPlaceSavesOutput, square, rows, SIZES, "saves what it wrote over", ("grad_x",)),
    Subject(product_of_list_first_alone, total, a_list, SIZES, "the second of a list", ("grad_several[1]",)),
    Subject(scaled_by_default, scaled, keywords, SIZES, "the keyword's default", ("grad_x",)),
    Subject(UntrainedAffine(), Affine(), rows, SIZES, "a parameter of a module", ("grad_weight",)),
    Subject(DropoutRedrawn, masked, rows_and_mask, SIZES, "another mask in backward", ("grad_x",)),
    Subject(_ScaledDefault, scaled, lambda g, N, D: [normal(g, N, D), 3.0], SIZES, "a constant", ("grad_x",)),
]
