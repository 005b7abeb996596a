"""Normalization: the terms of the mean and of the projection, eps, and the sums of weight and bias."""

from typing import Any

import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

from benchmarks.functions.subject import Subject, normal


def rows(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D)]


def weighted_rows(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), normal(generator, D)]


def affine_rows(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), normal(generator, D), normal(generator, D)]


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return functional.layer_norm(x, x.shape[-1:], weight, bias)


class LayerNorm(Function):
    """grad_x = (g - mean(g) - h mean(g h)) / deviation, where g = grad_output weight and h is x normalized."""

    @staticmethod
    def forward(context: Any, x: Any, weight: Any, bias: Any) -> Any:
        rstd = (x.var(-1, correction=0, keepdim=True) + 1e-5).rsqrt()
        normalized = (x - x.mean(-1, keepdim=True)) * rstd
        context.save_for_backward(normalized, rstd, weight)
        return normalized * weight + bias

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        normalized, rstd, weight = context.saved_tensors
        grad = grad_output * weight
        projection = normalized * (grad * normalized).mean(-1, keepdim=True)
        grad_x = (grad - grad.mean(-1, keepdim=True) - projection) * rstd
        return grad_x, (grad_output * normalized).sum(0), grad_output.sum(0)


class LayerNormWithoutProjection(LayerNorm):
    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        normalized, rstd, weight = context.saved_tensors
        grad = grad_output * weight
        grad_x = (grad - grad.mean(-1, keepdim=True)) * rstd
        return grad_x, (grad_output * normalized).sum(0), grad_output.sum(0)


class LayerNormFirstRowsWeight(LayerNorm):
    """A kernel in two stages: the second stage forgets all partial sums but that of the first block of 16 rows."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        normalized, _, _ = context.saved_tensors
        grad_x = LayerNorm.backward(context, grad_output)[0]
        return grad_x, (grad_output * normalized)[:16].sum(0), grad_output[:16].sum(0)


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * weight


class RMSNorm(Function):
    """grad_x = r (g - h mean(g h)), with r = 1 / sqrt(mean(x^2) + eps)."""

    @staticmethod
    def forward(context: Any, x: Any, weight: Any) -> Any:
        root = (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
        context.save_for_backward(x, root, weight)
        return x * root * weight

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        x, root, weight = context.saved_tensors
        grad = grad_output * weight
        normalized = x * root
        grad_x = root * (grad - normalized * (grad * normalized).mean(-1, keepdim=True))
        return grad_x, (grad_output * normalized).sum(0)


class RMSNormEpsOutside(RMSNorm):
    """Recomputes the root in backward, with eps outside of it."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        x, _, weight = context.saved_tensors
        root = 1 / (x.square().mean(-1, keepdim=True).sqrt() + 1e-6)
        grad = grad_output * weight
        normalized = x * root
        grad_x = root * (grad - normalized * (grad * normalized).mean(-1, keepdim=True))
        return grad_x, (grad_output * normalized).sum(0)


class RMSNormOverwritesGradient(RMSNorm):
    """Writes grad_x into grad_output's memory, as Liger's kernels do: everything else that uses that gradient reads a
    wrong one.
    """

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        grad_x, grad_weight = RMSNorm.backward(context, grad_output)
        return grad_output.copy_(grad_x), grad_weight


class BatchNorm(Function):
    """The same closed form over the batch."""

    @staticmethod
    def forward(context: Any, x: Any, weight: Any) -> Any:
        rstd = (x.var(0, correction=0, keepdim=True) + 1e-5).rsqrt()
        normalized = (x - x.mean(0, keepdim=True)) * rstd
        context.save_for_backward(normalized, rstd, weight)
        return normalized * weight

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        normalized, rstd, weight = context.saved_tensors
        grad = grad_output * weight
        grad_x = rstd * (grad - grad.mean(0) - normalized * (grad * normalized).mean(0))
        return grad_x, (grad_output * normalized).sum(0)


class BatchNormUnbiased(BatchNorm):
    """Divides by N - 1 in backward's variance, by N in forward's."""

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        normalized, rstd, weight = context.saved_tensors
        grad = grad_output * weight
        variance = (grad * normalized).sum(0) / (len(grad) - 1)
        return rstd * (grad - grad.mean(0) - normalized * variance), (grad_output * normalized).sum(0)


def batch_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return (x - x.mean(0)) * (x.var(0, correction=0) + 1e-5).rsqrt() * weight


def unit(x: torch.Tensor) -> torch.Tensor:
    return x / (x.square().sum(-1, keepdim=True) + 1e-12).sqrt()


class Unit(Function):
    """grad_x = (g - y (g . y)) / norm."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        norm = (x.square().sum(-1, keepdim=True) + 1e-12).sqrt()
        context.save_for_backward(x / norm, norm)
        return x / norm

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        y, norm = context.saved_tensors
        return (grad_output - y * (grad_output * y).sum(-1, keepdim=True)) / norm


class UnitWithoutProjection(Unit):
    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: Any) -> Any:
        _, norm = context.saved_tensors
        return grad_output / norm


SIZES = {"N": 6, "D": 5}
RIGHT = [
    Subject(LayerNorm, layer_norm, affine_rows, SIZES),
    Subject(RMSNorm, rms_norm, weighted_rows, SIZES),
    Subject(BatchNorm, batch_norm, weighted_rows, SIZES),
    Subject(Unit, unit, rows, SIZES),
]
WRONG = [
    Subject(LayerNormWithoutProjection, layer_norm, affine_rows, SIZES, "h mean(g h) is missing", ("grad_x",)),
    Subject(LayerNormFirstRowsWeight, layer_norm, affine_rows, SIZES, "sums 16 rows only", ("grad_weight", "N=")),
    Subject(RMSNormEpsOutside, rms_norm, weighted_rows, SIZES, "eps outside of the root", ("grad_x", "grad_weight")),
    Subject(RMSNormOverwritesGradient, rms_norm, weighted_rows, SIZES, "overwrites grad_output", ("grad_output",)),
    Subject(BatchNormUnbiased, batch_norm, weighted_rows, SIZES, "N - 1 for N", ("grad_x",)),
    Subject(UnitWithoutProjection, unit, rows, SIZES, "y (g . y) is missing", ("grad_x",)),
]
