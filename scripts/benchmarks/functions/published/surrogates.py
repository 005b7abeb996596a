"""snntorch: the step of a spiking neuron, with the derivative of another function.

The references are the step plus a function that has this derivative, minus its value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from snntorch import surrogate

from benchmarks.functions.subject import Published, normal


def stepping(smooth: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    def step(x: torch.Tensor) -> torch.Tensor:
        value = smooth(x)
        return (x > 0).to(x.dtype) + (value - value.detach())

    return step


def arc_tangent(x: torch.Tensor) -> torch.Tensor:
    return torch.atan(math.pi * x) / math.pi


def fast_sigmoid(x: torch.Tensor) -> torch.Tensor:
    return x / (1 + 25 * x.abs())


def sigmoid(x: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(25 * x)


def escape(x: torch.Tensor) -> torch.Tensor:
    """The integral of 25 exp(-|x - 1|)."""
    gone = torch.exp(-(x - 1).abs())
    return 25 * torch.where(x > 1, 2 - gone, gone)


def triangle(x: torch.Tensor) -> torch.Tensor:
    return -x.abs()


def sparse(x: torch.Tensor) -> torch.Tensor:
    """The slope begins above 1."""
    return torch.where(x > 1, x / (1 + 25 * x.abs()), 1 / 26)


def leaky(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 0, x, 0.1 * x)


def doubled(x: Any, grad: Any, spikes: Any) -> Any:
    return 2 * grad * spikes


def inputs(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D)]


SIZES = {"N": 5, "D": 40}
#: The step is always float32: `.float()`.
SINGLE = {"dtypes": ["float32"]}
#: What is saved is the step, whose derivative is again a surrogate: the second derivative is a matter of convention.
ONCE = SINGLE | {"skip": ["twice"]}
STATED = "the formula of its docstring, integrated by hand"
RIGHT = [
    Published("atan", surrogate.atan(), stepping(arc_tangent), inputs, STATED, SIZES, SINGLE),
    Published("fast_sigmoid", surrogate.fast_sigmoid(), stepping(fast_sigmoid), inputs, STATED, SIZES, SINGLE),
    Published("spike_rate_escape", surrogate.spike_rate_escape(), stepping(escape), inputs, STATED, SIZES, SINGLE),
    Published("triangular", surrogate.triangular(), stepping(triangle), inputs, STATED, SIZES, SINGLE),
    Published(
        "straight_through_estimator",
        surrogate.straight_through_estimator(),
        stepping(lambda x: x),
        inputs,
        STATED,
        SIZES,
        SINGLE,
    ),
    Published("SFS", surrogate.SFS(), stepping(sparse), inputs, STATED, SIZES, SINGLE),
    Published("heaviside", surrogate.heaviside(), stepping(torch.relu), inputs, STATED, SIZES, ONCE),
    Published(
        "SSO without noise",
        surrogate.SSO(variance=0),
        stepping(torch.relu),
        inputs,
        "with variance 0 the slope below the threshold is 0",
        SIZES,
        ONCE,
    ),
    Published(
        "custom_surrogate",
        surrogate.custom_surrogate(doubled),
        stepping(lambda x: 2 * torch.relu(x)),
        inputs,
        STATED,
        SIZES,
        ONCE,
    ),
]
WRONG = [
    Published(
        "sigmoid",
        surrogate.sigmoid(),
        stepping(sigmoid),
        inputs,
        "exp(-25 x) is infinite in float32 below x = -3.55, and infinity / infinity is NaN; the true slope is 0 there",
        SIZES,
        SINGLE,
        "NaN for inputs below -3.55",
        ("kinds large", "kinds spread"),
    ),
    Published(
        "LSO",
        surrogate.LSO(),
        stepping(leaky),
        inputs,
        "LSO calls the operator of SSO, which takes one argument more",
        SIZES,
        SINGLE,
        "calls another operator, with too few arguments",
        ("missing 1 required positional argument",),
    ),
    Published(
        "LeakySpikeOperator",
        lambda x: surrogate.LeakySpikeOperator.apply(x, 0.1),
        stepping(leaky),
        inputs,
        "forward takes two arguments, and backward returns one gradient",
        SIZES,
        SINGLE,
        "returns a gradient too few",
        ("incorrect number of gradients", "returned 1 gradient"),
    ),
]
