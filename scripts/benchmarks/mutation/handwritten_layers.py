"""Wrong backward passes of layers, written by hand: formulas as in `handwritten`, of the layer, what it saved, and
grad_output.
"""

# ruff: noqa: ARG005 - as in handwritten

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from benchmarks.mutation.replacing import Formula
from nn_manual.arrays import Array
from nn_manual.layers import GELU, LayerNorm, Linear, ReLU, Tanh
from nn_manual.layers.fast_forms import rows

#: The gradients of a layer whose forward computes the derivative: formulas of the layer and its input, for what is
#: saved.
SAVED = "saved"


def _gelu(wrong: Callable[[GELU, Array, Array, Array], Array]) -> Formula:
    """A derivative: a formula of the layer, the input x, the probability p and the right derivative."""

    def formula(gelu: GELU, input: Array) -> Array:
        output, derivative = GELU.forward(gelu, input)
        probability = np.where(input == 0, 0.5, output / np.where(input == 0, 1, input)).astype(input.dtype)
        return wrong(gelu, input, probability, derivative)

    return formula


def _derivative(approximate: Literal["none", "tanh"], input: Array) -> Array:
    """That of one form."""
    derivative: Array = GELU(approximate).forward(input)[1]
    return derivative


def _weight(norm: LayerNorm) -> Any:
    return norm.param.weight if norm.elementwise_affine else 1


def _mean(norm: LayerNorm, array: Array) -> Array:
    mean: Array = array.mean(norm.axes, keepdims=True)
    return mean


def _examples(norm: LayerNorm, array: Array) -> Array:
    """The array with its leading dimensions as one."""
    return array.reshape(-1, *norm.shape)


def _std(norm: LayerNorm, saved: tuple[Array, Array]) -> Array:
    """The number by which each example was divided, in as many dimensions as the input."""
    normalized, std = saved
    return std.reshape(*normalized.shape[: -len(norm.shape)], *[1] * len(norm.shape))


def _norm(wrong: Callable[[LayerNorm, Array, Array, Array], Array]) -> Formula:
    """A formula of the layer, g = grad_output * weight, the normalized input h, and its std s."""

    def formula(norm: LayerNorm, saved: tuple[Array, Array], grad: Array) -> Array:
        return wrong(norm, grad * _weight(norm), saved[0], _std(norm, saved))

    return formula


LAYERS: dict[type, dict[str, dict[str, Formula]]] = {
    ReLU: {
        "grad_input": {
            "the derivative is lost": lambda relu, output, grad: grad.copy(),
            "the mask is the gradient's": lambda relu, output, grad: grad * (grad > 0),
            "the gradient is rectified": lambda relu, output, grad: np.maximum(grad, 0),
            "the kink passes the gradient": lambda relu, output, grad: grad * (output >= 0),
            "the kink passes half of it": lambda relu, output, grad: grad * np.heaviside(output, grad.dtype.type(0.5)),
            "the other side passes": lambda relu, output, grad: grad * (output <= 0),
            "scaled by the output": lambda relu, output, grad: grad * output,
            "the mask alone": lambda relu, output, grad: (output > 0).astype(grad.dtype),
            "the output alone": lambda relu, output, grad: output.copy(),
            "leaks a hundredth": lambda relu, output, grad: np.where(output > 0, grad, grad / 100),
            "open from 0.01 on": lambda relu, output, grad: grad * (output > 0.01),
            "closed above 6": lambda relu, output, grad: grad * ((output > 0) & (output < 6)),
            "the mask of the first row": lambda relu, output, grad: grad * (output[:1] > 0),
            "zero": lambda relu, output, grad: np.zeros_like(grad),
        },
    },
    Tanh: {
        "grad_input": {
            "1 - output": lambda tanh, output, grad: grad * (1 - output),
            "1 + output**2": lambda tanh, output, grad: grad * (1 + output**2),
            "the gradient squared": lambda tanh, output, grad: grad * (1 - grad**2),
            "tanh of the output": lambda tanh, output, grad: grad * (1 - np.tanh(output) ** 2),
            "the sigmoid's": lambda tanh, output, grad: grad * output * (1 - output),
            "the arctangent's": lambda tanh, output, grad: grad / (1 + output**2),
            "the inverse's": lambda tanh, output, grad: grad / (1 - output**2 + grad.dtype.type(1e-6)),
            "the derivative is lost": lambda tanh, output, grad: grad.copy(),
            "the derivative alone": lambda tanh, output, grad: 1 - output**2,
            "the upstream sign alone": lambda tanh, output, grad: np.sign(grad) * (1 - output**2),
            "half of it": lambda tanh, output, grad: grad * (1 - output**2) / 2,
            "1 - |output|": lambda tanh, output, grad: grad * (1 - np.abs(output)),
            "the second derivative": lambda tanh, output, grad: grad * -2 * output * (1 - output**2),
            "output**2 - 1": lambda tanh, output, grad: grad * (output**2 - 1),
            "a mean over the batch": lambda tanh, output, grad: grad * (1 - output**2) / len(output),
        },
    },
    GELU: {
        SAVED: {
            "the density is lost": _gelu(lambda gelu, x, p, right: p),
            "the probability is lost": _gelu(lambda gelu, x, p, right: right - p),
            "the density's sign": _gelu(lambda gelu, x, p, right: 2 * p - right),
            "half of the density": _gelu(lambda gelu, x, p, right: (p + right) / 2),
            "the other form's": _gelu(
                lambda gelu, x, p, right: _derivative("none" if gelu.approximate == "tanh" else "tanh", x)
            ),
            "at the output": _gelu(lambda gelu, x, p, right: _derivative(gelu.approximate, x * p)),
            "the output added": _gelu(lambda gelu, x, p, right: p + x * p),
            "the probability of the other side": _gelu(lambda gelu, x, p, right: right + 1 - 2 * p),
            "the ReLU's": _gelu(lambda gelu, x, p, right: (x > 0).astype(x.dtype)),
        },
        "grad_input": {
            "the derivative is lost": lambda gelu, derivative, grad: grad.copy(),
            "the derivative alone": lambda gelu, derivative, grad: derivative.copy(),
            "a mean over the batch": lambda gelu, derivative, grad: grad * derivative / len(grad),
            "zero": lambda gelu, derivative, grad: np.zeros_like(grad),
        },
    },
    LayerNorm: {
        "grad_weight": {
            "of the centered input": lambda norm, saved, grad: (
                _examples(norm, grad * saved[0] * _std(norm, saved)).sum(axis=0)
            ),
            "of the bias": lambda norm, saved, grad: _examples(norm, grad).sum(axis=0),
            "a mean over the batch": lambda norm, saved, grad: _examples(norm, grad * saved[0]).mean(axis=0),
            "of the first example": lambda norm, saved, grad: _examples(norm, grad * saved[0])[0],
            "times the weight": lambda norm, saved, grad: (
                _examples(norm, grad * saved[0]).sum(axis=0) * norm.param.weight
            ),
        },
        "grad_bias": {
            "a mean over the batch": lambda norm, saved, grad: _examples(norm, grad).mean(axis=0),
            "of the first example": lambda norm, saved, grad: _examples(norm, grad)[0],
            "times the weight": lambda norm, saved, grad: _examples(norm, grad).sum(axis=0) * norm.param.weight,
            "over everything": lambda norm, saved, grad: grad.sum(),
        },
        "grad_input": {
            "the statistics are constants": _norm(lambda norm, g, h, s: g / s),
            "the mean is a constant": _norm(lambda norm, g, h, s: (g - h * _mean(norm, g * h)) / s),
            "the variance is a constant": _norm(lambda norm, g, h, s: (g - _mean(norm, g)) / s),
            "sums for means": _norm(
                lambda norm, g, h, s: (g - (_mean(norm, g) + h * _mean(norm, g * h)) * norm.shape[-1]) / s
            ),
            "the projection's sign": _norm(lambda norm, g, h, s: (g - _mean(norm, g) + h * _mean(norm, g * h)) / s),
            "the projection on the centered input": _norm(
                lambda norm, g, h, s: (g - _mean(norm, g) - h * s * _mean(norm, g * h * s)) / s
            ),
            "means over everything": _norm(lambda norm, g, h, s: (g - g.mean() - h * (g * h).mean()) / s),
            "the std is lost": _norm(lambda norm, g, h, s: g - _mean(norm, g) - h * _mean(norm, g * h)),
            "the variance for the std": _norm(
                lambda norm, g, h, s: (g - _mean(norm, g) - h * _mean(norm, g * h)) / (s * s)
            ),
            "the weight is lost": lambda norm, saved, grad: (
                (grad - _mean(norm, grad) - saved[0] * _mean(norm, grad * saved[0])) / saved[1]
            ),
        },
    },
    Linear: {
        "grad_weight": {
            "transposed": lambda linear, input, grad: rows(input).T @ rows(grad),
            "a mean over the batch": lambda linear, input, grad: rows(grad).T @ rows(input) / len(rows(input)),
            "of the first example": lambda linear, input, grad: np.outer(rows(grad)[0], rows(input)[0]),
            "of sums": lambda linear, input, grad: np.outer(rows(grad).sum(axis=0), rows(input).sum(axis=0)),
            "with weight decay": lambda linear, input, grad: rows(grad).T @ rows(input) + 0.01 * linear.param.weight,
            "the bias's": lambda linear, input, grad: rows(grad).sum(axis=0)[:, np.newaxis] + 0 * linear.param.weight,
            "added to the last": lambda linear, input, grad: linear.grad.weight + rows(grad).T @ rows(input),
        },
        "grad_bias": {
            "a mean over the batch": lambda linear, input, grad: rows(grad).mean(axis=0),
            "over the wrong axis": lambda linear, input, grad: rows(grad).sum(axis=1),
            "over everything": lambda linear, input, grad: rows(grad).sum(),
            "of the first example": lambda linear, input, grad: rows(grad)[0],
            "over the first leading dimension": lambda linear, input, grad: rows(grad.sum(axis=0, keepdims=True))[0],
            "zero": lambda linear, input, grad: np.zeros_like(linear.param.bias),
        },
        "grad_input": {
            "weight transposed": lambda linear, input, grad: grad @ linear.param.weight.T,
            "its own output": lambda linear, input, grad: input @ linear.param.weight.T,
            "the weight's signs": lambda linear, input, grad: grad @ np.sign(linear.param.weight),
            "with the bias": lambda linear, input, grad: (grad - linear.param.bias) @ linear.param.weight,
            "a mean over the outputs": lambda linear, input, grad: grad @ linear.param.weight / grad.shape[-1],
            "zero": lambda linear, input, grad: np.zeros_like(input),
            "through the weight twice": lambda linear, input, grad: (
                grad @ linear.param.weight @ linear.param.weight.T @ linear.param.weight
            ),
        },
    },
}
