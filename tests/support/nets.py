"""Nets for the tests of the check, and ways to break one tensor of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from benchmarks.mutation import replacing

from nn_manual import SGD, GradientChecker, Layer, Linear, ReLU, Sequential, Tanh, check_gradients
from nn_manual.arrays import Array
from nn_manual.check.catalogue.upstream import UpstreamLoss
from nn_manual.check.judge.report import GradientReport

Change = Callable[[Array], Array]


def net(dtype: str = "float32", seed: int = 1) -> Sequential:
    """Square matrices in the middle, so that a transpose fits."""
    return Sequential(Linear(3, 4), Tanh(), Linear(4, 4), ReLU(), Linear(4, 4), seed=seed, dtype=dtype)


def batch(dtype: str = "float32", seed: int = 0) -> tuple[Array, Array]:
    """Four examples for `net`, so that a batch can be mistaken for features, too."""
    generator = np.random.default_rng(seed)
    return generator.standard_normal((4, 3)).astype(dtype), generator.standard_normal((4, 4)).astype(dtype)


@dataclass(eq=False)
class Double(Layer):
    """output = 2 * input: a right layer, to be given a reference."""

    def forward(self, input: Array) -> tuple[Array, Any]:
        return 2 * input, None

    def backward(self, saved: Any, grad_output: Array) -> Array:  # noqa: ARG002 - the contract's signature
        return 2 * grad_output


def model_of(composite: Layer) -> Sequential:
    """A net for `batch()` that has this composite of 4 features in its middle."""
    return Sequential(Linear(3, 4), composite, Tanh(), Linear(4, 4), seed=1)


def report_of(layer: Layer, dtype: str = "float64") -> GradientReport:
    """The check of a net that has this layer of 4 features in its middle."""
    generator = np.random.default_rng(0)
    model = Sequential(Linear(3, 4), ReLU(), layer, Linear(4, 2), seed=1, dtype=dtype)
    input, grad_output = generator.standard_normal((5, 3)), generator.standard_normal((5, 2))
    return check_gradients(model, UpstreamLoss(), input.astype(dtype), grad_output.astype(dtype))


def break_gradient(part: Any, name: str, change: Change) -> None:
    """Have `change` spoil one gradient of a layer ("grad_input" or "grad_" and a parameter) or of a loss."""
    part.__class__ = replacing.change_gradient(type(part), name, change)


def replace_method(part: Any, method: str, replacement: Callable[..., Any]) -> None:
    """Replace a method of one object: `replacement` gets the right one as its first argument."""
    right = getattr(type(part), method)

    def replaced(self: Any, *arguments: Any) -> Any:
        return replacement(right, self, *arguments)

    part.__class__ = replacing.replace_method(type(part), method, replaced)


def run(checker: GradientChecker, optimizer: SGD) -> None:
    """One checked step on `batch()`."""
    with checker.recording():
        checker.run(*batch())
        optimizer.step()
    checker.compare()
