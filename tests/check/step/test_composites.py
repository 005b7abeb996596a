"""Layers that are made of layers, checked: each mistake is found where it was made, and right ones pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from composites import Backwards, Gate, batch, model_of
from nets import break_gradient
from slow_cases import crossed

from nn_manual import (
    SGD,
    Embedding,
    GradientMismatch,
    Layer,
    Linear,
    MSELoss,
    ReLU,
    Residual,
    Sequential,
    Tanh,
    Trainer,
    check_gradients,
)
from nn_manual.arrays import Array, Shape


def inner() -> list[Layer]:
    return [Sequential(Linear(3, 3), ReLU()), Residual(Linear(3, 3), Tanh())]


COMPOSITES: list[Callable[[], Layer]] = [
    lambda: Residual(Linear(3, 3), Tanh()),
    lambda: Residual(Residual(Tanh()), Sequential(Linear(3, 3), Sequential(ReLU()))),
    lambda: Gate(*inner()),
    lambda: Gate(Gate(Tanh(), Linear(3, 3)), Gate(*inner())),
    lambda: Backwards(*inner()),
    lambda: Residual(Sequential(), Linear(3, 3)),
]


@pytest.mark.parametrize(("make", "dtype"), crossed(COMPOSITES, ["float32", "float64"]))
def test_right_ones_pass(make: Callable[[], Layer], dtype: str) -> None:
    report = check_gradients(model_of(make(), dtype), MSELoss(), *batch(dtype))
    assert report.passed, str(report)
    # The model's first, its last, and one before the first parameters, which backward doesn't reach.
    for layers in ([make(), Linear(3, 3)], [Linear(3, 3), make()], [Residual(Tanh()), make(), Linear(3, 3)]):
        model = Sequential(*layers, seed=2, dtype=dtype)
        trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1, momentum=0.9), clip_grad_norm=1.0)
        for _ in range(5):
            check = trainer.train_step(*batch(dtype)).check
        assert check is not None
        assert check.severity.max() < 1


def test_every_tensor_has_a_name() -> None:
    model = Sequential(Residual(Sequential(Linear(3, 3), Tanh())), dtype="float64")
    report = check_gradients(model, MSELoss(), *batch("float64"))
    assert [comparison.name for comparison in report.comparisons] == [
        "0.0.input", "0.0.0.output", "0.0.1.output", "0.output", "loss", "loss.grad_prediction", "loss.grad_target",
        "0.0.grad_output", "0.0.1.grad_input", "0.0.0.grad_weight", "0.0.0.grad_bias", "0.0.0.grad_input",
        "0.grad_input", "0.infer",
    ]  # fmt: skip - a list of names


@pytest.mark.slow
@pytest.mark.parametrize("tensor", ["grad_weight", "grad_bias", "grad_input"])
@pytest.mark.parametrize("make", COMPOSITES)
def test_a_wrong_layer_inside_is_named(make: Callable[[], Layer], tensor: str) -> None:
    """It alone has each wrong gradient of a layer that stands in a composite."""
    model = model_of(make())
    inside = [(name, layer) for name, layer in model.named_layers() if name[0] == "1" and isinstance(layer, Linear)]
    for name, layer in inside:
        right = type(layer)
        break_gradient(layer, tensor, lambda grad: 1.001 * grad)
        report = check_gradients(model, MSELoss(), *batch())
        assert report.failures[0].name == f"{name}.{tensor}", str(report)
        assert report.failures[0].layer == f"{name} (Linear)"
        layer.__class__ = right


class NoSkip(Gate):
    def backward(self, saved: Any, grad_output: Array) -> Array:
        value, value_saved, gate, gate_saved = saved
        self.value.backward(value_saved, grad_output * gate)
        return self.gate.backward(gate_saved, grad_output * value)


class SameGradient(Gate):
    def backward(self, saved: Any, grad_output: Array) -> Array:
        value, value_saved, _, gate_saved = saved
        grad_value = self.value.backward(value_saved, grad_output * value)
        return grad_value + self.gate.backward(gate_saved, grad_output * value)


class InOneLine(Gate):
    def forward(self, input: Array) -> tuple[Array, Any]:
        value, value_saved = self.value.forward(input)
        gate, gate_saved = self.gate.forward(value)
        return value * gate, (value, value_saved, gate, gate_saved)


class Sum(Gate):
    def forward(self, input: Array) -> tuple[Array, Any]:
        _, saved = super().forward(input)
        output: Array = saved[0] + saved[2]
        return output, saved


@pytest.mark.parametrize(
    ("wrong", "tensor"),
    [(NoSkip, "1.grad_input"), (SameGradient, "1.value.grad_output"), (InOneLine, "1.gate.input"), (Sum, "1.output")],
)
def test_wrong_wiring_is_the_composites_fault(wrong: type[Gate], tensor: str) -> None:
    model = model_of(wrong(Linear(3, 3), Tanh()))
    report = check_gradients(model, MSELoss(), *batch())
    assert (report.failures[0].name, report.failures[0].layer) == (tensor, f"1 ({wrong.__name__})"), str(report)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1))
    with pytest.raises(GradientMismatch, match=rf"wrong first in 1 \({wrong.__name__}\): {tensor}"):
        trainer.train_step(*batch())


class Twice(Gate):
    def forward(self, input: Array) -> tuple[Array, Any]:
        self.gate.forward(input)
        return super().forward(input)


class Never(Gate):
    def forward(self, input: Array) -> tuple[Array, Any]:
        value, value_saved = self.value.forward(input)
        return value, value_saved

    def backward(self, saved: Any, grad_output: Array) -> Array:
        return self.value.backward(saved, grad_output)


class NeverBack(Gate):
    def backward(self, saved: Any, grad_output: Array) -> Array:
        value, value_saved, gate, _ = saved
        grad_input: Array = self.value.backward(value_saved, grad_output * gate) + grad_output * value
        return grad_input


class Flat(Gate):
    def backward(self, saved: Any, grad_output: Array) -> Array:
        value, value_saved, gate, gate_saved = saved
        self.gate.backward(gate_saved, (grad_output * value)[:1])
        return self.value.backward(value_saved, grad_output * gate)


class Raises(Gate):
    def backward(self, saved: Any, grad_output: Array) -> Array:
        raise ArithmeticError(f"no {len(saved)}, {grad_output.ndim}")


class WrongChild(Gate):
    def forward(self, input: Array) -> tuple[Array, Any]:
        return self.value.forward(input.T)


class NoReference(Gate):
    reference = property()  # hasattr finds none


class RunsTwice(Gate):
    def reference(self, input: Any, value: Any, gate: Any) -> Any:
        return value(value(input)) * gate(input)


class RunsOne(Gate):
    def reference(self, input: Any, value: Any, gate: Any) -> Any:  # noqa: ARG002 - that is its fault
        return value(input)


class Overwrites(Gate):
    def reference(self, input: Any, value: Any, gate: Any) -> Any:
        output = value(input)
        output *= gate(input)
        return output


class Misshapen(Gate):
    def reference(self, input: Any, value: Any, gate: Any) -> Any:
        return value(input) * gate(input[:2])


PROBLEMS = [
    (Twice, "1 (Twice) ran 1.gate (Tanh) forward 2 times instead of once"),
    (Never, "1 (Never) ran 1.gate (Tanh) forward never instead of once"),
    (NeverBack, "1 (NeverBack) ran 1.gate (Tanh) backward never instead of once"),
    (Raises, "1 (Raises): backward raised ArithmeticError: no 4, 2"),
    (WrongChild, "1 (WrongChild) gave 1.value (Linear) an input that doesn't fit: Linear takes in_features=3"),
    (NoReference, "1 (NoReference): it is made of layers and has no reference: reference(self, input, *children) says"),
    (RunsTwice, "1 (RunsTwice): its own reference ran 1.value twice"),
    (RunsOne, "1 (RunsOne): its own reference never ran 1.gate"),
    (Overwrites, "1 (Overwrites): its own reference"),
    (Misshapen, "1 (Misshapen): its own reference gave 1.gate a float32 tensor of shape (2, 3), forward a float32"),
    (Flat, "1 (Flat) passed to 1.gate (Tanh) what can't be its grad_output: the gradient has shape (1, 3)"),
]


@pytest.mark.parametrize(("wrong", "problem"), PROBLEMS)
def test_what_cannot_be_compared_is_named(wrong: type[Gate], problem: str) -> None:
    model = model_of(wrong(Linear(3, 3), Tanh()))
    report = check_gradients(model, MSELoss(), *batch())
    assert report.problem is not None, str(report)
    assert report.problem.startswith(problem)


def test_a_composite_that_gets_what_it_cannot_take_is_not_blamed_for_what_it_gives() -> None:
    model = model_of(WrongChild(Residual(Linear(3, 3)), Tanh()))
    report = check_gradients(model, MSELoss(), *batch())
    assert report.problem is not None, str(report)
    assert report.problem.startswith("1 (WrongChild) gave 1.value (Residual) an input that doesn't fit: ")


@dataclass(eq=False)
class Remembers(Residual):
    """A composite that keeps what must travel in `saved`."""

    layers: tuple[Layer, ...] = field(default=())

    def forward(self, input: Array) -> tuple[Array, Any]:
        output, self.saved = super().forward(input)
        return output, None

    def backward(self, saved: Any, grad_output: Array) -> Array:  # noqa: ARG002 - that is its fault
        return super().backward(self.saved, grad_output)


def test_the_conduct_of_a_composite() -> None:
    composite = Remembers()
    Residual.__init__(composite, Linear(3, 3), Tanh())
    report = check_gradients(model_of(composite), MSELoss(), *batch())
    assert report.problem is not None
    assert report.problem.startswith("1 (Remembers): ")


@dataclass(eq=False)
class Lookup(Layer):
    """output = 3 * table(input), of indices"""

    table: Layer

    def __post_init__(self) -> None:
        self.domain = self.table.domain

    def output_shape(self, input_shape: Shape) -> Shape:
        return self.table.output_shape(input_shape)

    def forward(self, input: Array) -> tuple[Array, Any]:
        output, saved = self.table.forward(input)
        return 3 * output, saved

    def backward(self, saved: Any, grad_output: Array) -> Any:
        self.table.backward(saved, 3 * grad_output)

    def reference(self, input: Any, table: Any) -> Any:
        return 3 * table(input)


def test_a_wrong_gradient_behind_a_composite_that_takes_indices_is_named() -> None:
    model = Sequential(Lookup(Embedding(5, 3)), Tanh(), Linear(3, 2), seed=0)
    input, target = np.array([[0, 1], [4, 2], [3, 3]]), np.ones((3, 2, 2), np.float32)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1))
    trainer.train_step(input, target)
    break_gradient(model.layers[1], "grad_input", lambda grad: 1.5 * grad)
    with pytest.raises(GradientMismatch, match=r"wrong first in 1 \(.*Tanh\): 1\.grad_input"):
        trainer.train_step(input, target)
