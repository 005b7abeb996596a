"""Products and attention: mistakes in transposes, sums, scales, masks, and the order in which memory is read."""

import math
from typing import Any

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

from benchmarks.functions.subject import Subject, normal


def linear_inputs(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    """A square weight."""
    return [normal(generator, N, D), normal(generator, D, D), normal(generator, D)]


def query_key_value(generator: torch.Generator, T: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, T, D) for _ in range(3)]


def rows_and_angles(generator: torch.Generator, T: int, D: int) -> list[torch.Tensor]:
    """D counts pairs."""
    return [normal(generator, T, 2 * D), normal(generator, T, D)]


def rows(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D)]


class Linear(Function):
    """x weight^T + bias."""

    @staticmethod
    def forward(context: Any, x: Any, weight: Any, bias: Any) -> Any:
        context.save_for_backward(x, weight)
        return x @ weight.T + bias

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        x, weight = context.saved_tensors
        needs_x, needs_weight, needs_bias = context.needs_input_grad
        return (
            grad_output @ weight if needs_x else None,
            grad_output.T @ x if needs_weight else None,
            grad_output.sum(0) if needs_bias else None,
        )


class LinearTransposedWeight(Linear):
    """x^T grad_output, which has the right shape if the weight is square."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        x, weight = context.saved_tensors
        return grad_output @ weight, x.T @ grad_output, grad_output.sum(0)


class LinearMeanBias(Linear):
    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        x, weight = context.saved_tensors
        return grad_output @ weight, grad_output.T @ x, grad_output.mean(0)


class LinearReadsMemory(Linear):
    """Expects a contiguous gradient, like a kernel that gets a pointer and a shape."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        rows, columns = grad_output.shape
        storage = grad_output.new_empty(0).set_(grad_output.untyped_storage())
        raw = functional.pad(storage, (0, rows * columns))[: rows * columns].reshape(rows, columns)
        return Linear.backward(context, raw)


class LinearSharedState(Linear):
    """Keeps its activations in the class: after two forwards, only those of the second are there."""

    saved: Any = None

    @staticmethod
    def forward(context: Any, x: Any, weight: Any, bias: Any) -> Any:
        LinearSharedState.saved = x.detach(), weight.detach()
        return x @ weight.T + bias

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        x, weight = LinearSharedState.saved
        return grad_output @ weight, grad_output.T @ x, grad_output.sum(0)


def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Causal, one head."""
    score = query @ key.T / math.sqrt(query.shape[-1])
    later = torch.ones_like(score, dtype=torch.bool).triu(1)
    return score.masked_fill(later, -torch.inf).softmax(-1) @ value


class Attention(Function):
    """FlashAttention's backward: P = exp(S - L), dS = P (dP - rowsum(dO O))."""

    @staticmethod
    def forward(context: Any, query: Any, key: Any, value: Any) -> Any:
        scale = 1 / math.sqrt(query.shape[-1])
        score = query @ key.T * scale
        score = score.masked_fill(torch.ones_like(score, dtype=torch.bool).triu(1), -torch.inf)
        probability = score.softmax(-1)
        output = probability @ value
        context.save_for_backward(query, key, value, probability, output)
        context.scale = scale
        return output

    @staticmethod
    def grad_score(context: Any, grad_output: Any) -> Any:
        _, _, value, probability, output = context.saved_tensors
        return probability * (grad_output @ value.T - (grad_output * output).sum(-1, keepdim=True))

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        query, key, _, probability, _ = context.saved_tensors
        grad_score = Attention.grad_score(context, grad_output) * context.scale
        return grad_score @ key, grad_score.T @ query, probability.T @ grad_output


class AttentionKeyUnscaled(Attention):
    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        query, _, _, _, _ = context.saved_tensors
        grad_query, _, grad_value = Attention.backward(context, grad_output)
        return grad_query, Attention.grad_score(context, grad_output).T @ query, grad_value


class AttentionUnmaskedBackward(Attention):
    """Recomputes the probabilities in backward without the mask."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        query, key, value, _, output = context.saved_tensors
        probability = (query @ key.T * context.scale).softmax(-1)
        delta = (grad_output * output).sum(-1, keepdim=True)
        grad_score = probability * (grad_output @ value.T - delta) * context.scale
        return grad_score @ key, grad_score.T @ query, probability.T @ grad_output


def rotate(x: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
    """Rotary embedding: the halves of x as coordinates."""
    first, second = x.chunk(2, -1)
    cosine, sine = angle.cos(), angle.sin()
    return torch.cat([first * cosine - second * sine, first * sine + second * cosine], -1)


class Rotary(Function):
    """The gradient is rotated back. The angles have none."""

    @staticmethod
    def forward(context: Any, x: Any, angle: Any) -> Any:
        context.save_for_backward(angle)
        return rotate(x, angle)

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (angle,) = context.saved_tensors
        return rotate(grad_output, -angle), None


class RotaryForwards(Rotary):
    """Rotates the gradient forwards again."""

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        (angle,) = context.saved_tensors
        return rotate(grad_output, angle), None


def rotate_by_constants(x: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
    """The reference says that the angles are constants: it detaches them."""
    return rotate(x, angle.detach())


def reversed_sums(x: torch.Tensor) -> torch.Tensor:
    return x.cumsum(-1)


class CumulativeSum(Function):
    """The gradient is summed from the end."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        return x.cumsum(-1)

    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        return grad_output.flip(-1).cumsum(-1).flip(-1)


class CumulativeSumForwards(CumulativeSum):
    @staticmethod
    def backward(context: Any, grad_output: Any) -> Any:
        return grad_output.cumsum(-1)


SQUARE = {"N": 3, "D": 4}
TIMES = {"T": 5, "D": 4}
RIGHT = [
    Subject(Linear, functional.linear, linear_inputs, SQUARE),
    Subject(Attention, attention, query_key_value, TIMES),
    Subject(Rotary, rotate_by_constants, rows_and_angles, TIMES),
    Subject(CumulativeSum, reversed_sums, rows, SQUARE),
]
WRONG = [
    Subject(LinearTransposedWeight, functional.linear, linear_inputs, SQUARE, "transposed", ("grad_weight",)),
    Subject(LinearMeanBias, functional.linear, linear_inputs, SQUARE, "mean for sum", ("grad_bias",)),
    Subject(LinearReadsMemory, functional.linear, linear_inputs, SQUARE, "ignores strides", ("expanded", "transposed")),
    Subject(LinearSharedState, functional.linear, linear_inputs, SQUARE, "state in the class", ("two forwards",)),
    Subject(AttentionKeyUnscaled, attention, query_key_value, TIMES, "key's scale", ("grad_key",)),
    Subject(AttentionUnmaskedBackward, attention, query_key_value, TIMES, "mask in forward only", ("grad_",)),
    Subject(RotaryForwards, rotate_by_constants, rows_and_angles, TIMES, "rotates on", ("grad_x",)),
    Subject(CumulativeSumForwards, reversed_sums, rows, SQUARE, "sums from the start", ("grad_x",)),
]
