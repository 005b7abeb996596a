"""Activations as NumPy has them: sigmoid, tanh, ReLU and its kin, GELU, swish, softplus."""

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks.functions.handwritten.draws import normals
from benchmarks.functions.subject import Handwriting
from nn_manual import HandwrittenClass


def sigmoid_forward(x: Any) -> Any:
    """No exponent is positive."""
    out = np.empty_like(x)
    positive = x >= 0
    out[positive] = 1 / (1 + np.exp(-x[positive]))
    small = np.exp(x[~positive])
    out[~positive] = small / (1 + small)
    return out, out


def sigmoid_backward(dout: Any, out: Any) -> Any:
    return dout * out * (1 - out)


def sigmoid_naive_forward(x: Any) -> Any:
    """inf / inf for a large x."""
    out = np.exp(x) / (1 + np.exp(x))
    return out, out


SCALE = np.sqrt(2 / np.pi)


class Gelu:
    """The approximation by tanh. backward returns nothing."""

    def forward(self, inputs: Any) -> Any:
        self.inputs = inputs
        self.tanh = np.tanh(SCALE * (inputs + 0.044715 * np.power(inputs, 3)))
        return 0.5 * inputs * (1 + self.tanh)

    def backward(self, dvalues: Any) -> None:
        inner = SCALE * (1 + 3 * 0.044715 * self.inputs**2)
        slope = 0.5 * (1 + self.tanh) + 0.5 * self.inputs * (1 - self.tanh**2) * inner
        self.dinputs = dvalues * slope


def gelu(inputs: Any) -> Any:
    return functional.gelu(inputs, approximate="tanh")


def softplus_forward(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), x


def softplus_backward(dout: Any, x: Any) -> Any:
    """The sigmoid, as a tanh."""
    return dout * 0.5 * (1 + np.tanh(0.5 * x))


def softplus(x: Any) -> Any:
    return torch.logaddexp(x, torch.zeros_like(x))


ALPHA = 0.5


def elu_forward(x: Any) -> Any:
    out = x.copy()
    below = out < 0
    out[below] = ALPHA * np.expm1(out[below])
    return out, {"out": out, "below": below}


def elu_backward(dout: Any, cache: Any) -> Any:
    """In place, but on a copy. The slope at zero is 1, and ALPHA just below."""
    dx = np.array(dout)
    below = cache["below"]
    dx[below] *= cache["out"][below] + ALPHA
    return dx


def elu(x: Any) -> Any:
    return functional.elu(x, alpha=ALPHA)


def tanh_forward(x: Any) -> Any:
    out = np.tanh(x)
    return out, out


def tanh_backward(dout: Any, cache: Any) -> Any:
    """The cache is the output already: its tanh is one too many."""
    return dout * (1 - np.tanh(cache) ** 2)


def swish_forward(x: Any) -> Any:
    s = 0.5 * (1 + np.tanh(x / 2))
    return x * s, (x, s)


def swish_backward(dout: Any, cache: Any) -> Any:
    """The product rule's first term, s, is missing."""
    x, s = cache
    return dout * x * s * (1 - s)


def relu_forward(x: Any) -> Any:
    return np.maximum(x, 0), x


def relu_backward(dout: Any, cache: Any) -> Any:
    """Writes into dout."""
    dout[cache <= 0] = 0
    return dout


RIGHT = [
    Handwriting(
        "sigmoid by two formulas", (sigmoid_forward, sigmoid_backward), lambda x: torch.sigmoid(x), normals(30, (4, 5))
    ),
    Handwriting(
        "GELU by tanh, backward returns nothing",
        HandwrittenClass(Gelu, {"inputs": "dinputs"}),
        gelu,
        normals(31, (3, 5)),
    ),
    Handwriting(
        "softplus with a careful logarithm", (softplus_forward, softplus_backward), softplus, normals(32, (7,))
    ),
    Handwriting("ELU in place on copies", (elu_forward, elu_backward), elu, normals(33, (4, 4))),
]
WRONG = [
    Handwriting(
        "tanh of tanh",
        (tanh_forward, tanh_backward),
        lambda x: torch.tanh(x),
        normals(34, (4, 5)),
        "the derivative at the output instead of the input",
        ("grad_x",),
    ),
    Handwriting(
        "swish",
        (swish_forward, swish_backward),
        lambda x: functional.silu(x),
        normals(35, (3, 6)),
        "a term of the product rule is missing",
        ("grad_x",),
    ),
    Handwriting(
        "ReLU in place",
        (relu_forward, relu_backward),
        lambda x: torch.relu(x),
        normals(36, (4, 5)),
        "dout is overwritten",
        ("writes grad_output",),
    ),
    Handwriting(
        "sigmoid that overflows",
        (sigmoid_naive_forward, sigmoid_backward),
        lambda x: torch.sigmoid(x),
        normals(37, (4, 5)),
        "exp of a large x over itself",
        ("kinds large",),
    ),
]
