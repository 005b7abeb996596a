"""Layers that are made of layers, as a user writes them, and a model around one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_manual import Layer, Linear, Sequential, Tanh
from nn_manual.arrays import Array, Shape
from nn_manual.layers import Composite, LayerWithNoise


@dataclass(eq=False)
class Gate(Composite):
    """output     = value(input) * gate(input)
    grad_input = grad_value + grad_gate
    """

    value: Layer
    gate: Layer

    def forward(self, input: Array) -> tuple[Array, Any]:
        value, value_saved = self.value.forward(input)
        gate, gate_saved = self.gate.forward(input)
        return value * gate, (value, value_saved, gate, gate_saved)

    def backward(self, saved: Any, grad_output: Array) -> Array:
        value, value_saved, gate, gate_saved = saved
        grad_value = self.value.backward(value_saved, grad_output * gate)
        return grad_value + self.gate.backward(gate_saved, grad_output * value)

    def reference(self, input: Any, value: Any, gate: Any) -> Any:
        return value(input) * gate(input)


@dataclass(eq=False)
class Backwards(Gate):
    """Runs its children in another order than that of its fields."""

    def forward(self, input: Array) -> tuple[Array, Any]:
        gate, gate_saved = self.gate.forward(input)
        value, value_saved = self.value.forward(gate)
        return value, (gate_saved, value_saved)

    def backward(self, saved: Any, grad_output: Array) -> Array:
        gate_saved, value_saved = saved
        return self.gate.backward(gate_saved, self.value.backward(value_saved, grad_output))

    def reference(self, input: Any, value: Any, gate: Any) -> Any:
        return value(gate(input))


@dataclass(eq=False)
class Sum(Composite):
    """output     = a(input) + b(input)
    grad_input = grad_a + grad_b
    """

    a: Layer
    b: Layer

    def forward(self, input: Array) -> tuple[Array, Any]:
        a, a_saved = self.a.forward(input)
        b, b_saved = self.b.forward(input)
        return a + b, (a_saved, b_saved)

    def backward(self, saved: Any, grad_output: Array) -> Array:
        a_saved, b_saved = saved
        return self.a.backward(a_saved, grad_output) + self.b.backward(b_saved, grad_output)

    def reference(self, input: Any, a: Any, b: Any) -> Any:
        return a(input) + b(input)


@dataclass(eq=False)
class StochasticDepth(Composite, LayerWithNoise):
    """output = input + keep * branch(input), where keep is 0 or 1 / (1 - p) for each example; in evaluation 1."""

    branch: Layer
    p: float = 0.5

    def noise_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        return {"keep": (input_shape[0], 1)}

    def draw_noise(self, generator: Any) -> None:
        keep = self.noise.keep
        keep[...] = (generator.random(keep.shape) >= self.p) / (1 - self.p)

    def forward(self, input: Array) -> tuple[Array, Any]:
        output, saved = self.branch.forward(input)
        return input + self.noise.keep * output, (saved, self.noise.keep)

    def infer(self, input: Array) -> Array:
        return input + self.branch.infer(input)

    def backward(self, saved: Any, grad_output: Array) -> Array:
        branch_saved, keep = saved
        return grad_output + self.branch.backward(branch_saved, keep * grad_output)

    def update_buffers(self, saved: Any) -> None:
        self.branch.update_buffers(saved[0])

    def reference(self, input: Any, branch: Any, keep: Any) -> Any:
        return input + keep * branch(input)

    def infer_reference(self, input: Any, branch: Any) -> Any:
        return input + branch(input)


def batch(dtype: str = "float32") -> tuple[Array, Array]:
    generator = np.random.default_rng(0)
    return generator.standard_normal((5, 3)).astype(dtype), generator.standard_normal((5, 3)).astype(dtype)


def model_of(composite: Layer, dtype: str = "float32") -> Sequential:
    return Sequential(Linear(3, 3), composite, Tanh(), Linear(3, 3), seed=1, dtype=dtype)

#: A composite of one layer, as the file of a user has it.
WRAP = """\
from dataclasses import dataclass

from nn_manual import Layer
from nn_manual.layers import Composite


@dataclass(eq=False)
class Wrap(Composite):
    inner: Layer

    def forward(self, input):
        return self.inner.forward(input)

    def infer(self, input):
        return self.inner.infer(input)

    def backward(self, saved, grad_output):
        return self.inner.backward(saved, grad_output)

    def update_buffers(self, saved):
        self.inner.update_buffers(saved)

    def reference(self, input, inner):
        return inner(input)
"""
