"""A composite's own backward_parameters: it may save what nobody asks for, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from composites import Gate, batch, model_of

from nn_manual import SGD, GradientMismatch, Layer, Linear, MSELoss, ReLU, Sequential, Tanh, Trainer, check_gradients
from nn_manual.arrays import Array


class Thrifty(Gate):
    """Runs its children one after the other; where nobody asks for its input's gradient, it saves the first one's."""

    def forward(self, input: Array) -> tuple[Array, Any]:
        value, value_saved = self.value.forward(input)
        output, gate_saved = self.gate.forward(value)
        return output, (value_saved, gate_saved)

    def infer(self, input: Array) -> Array:
        return self.gate.infer(self.value.infer(input))

    def backward(self, saved: Any, grad_output: Array) -> Array:
        value_saved, gate_saved = saved
        return self.value.backward(value_saved, self.gate.backward(gate_saved, grad_output))

    def backward_parameters(self, saved: Any, grad_output: Array) -> None:
        value_saved, gate_saved = saved
        self.value.backward_parameters(value_saved, self.gate.backward(gate_saved, grad_output))

    def reference(self, input: Any, value: Any, gate: Any) -> Any:
        return gate(value(input))


class SkipsFirst(Thrifty):
    def backward_parameters(self, saved: Any, grad_output: Array) -> None:
        self.gate.backward_parameters(saved[1], grad_output)


class Doubles(Thrifty):
    def backward_parameters(self, saved: Any, grad_output: Array) -> None:
        super().backward_parameters(saved, 2 * grad_output)


class SavesTooMuch(Thrifty):
    def backward_parameters(self, saved: Any, grad_output: Array) -> None:
        self.gate.backward_parameters(saved[1], grad_output)
        self.value.backward_parameters(saved[0], grad_output)


def train_first(layer: Layer) -> tuple[str, ...]:
    """The tensors of a checked training step in which it is the first layer."""
    model = Sequential(layer, Tanh(), seed=1)
    check = Trainer(model, MSELoss(), SGD(model, lr=0.1)).train_step(*batch()).check
    assert check is not None
    return tuple(name for name in check.tensors if name.startswith("0.") and name.endswith(("_input", "_output")))


@pytest.mark.parametrize(
    ("make", "gradients"),
    [
        (lambda: Thrifty(Linear(3, 3), Tanh()), ("0.gate.grad_output", "0.gate.grad_input", "0.value.grad_output")),
        (
            lambda: Thrifty(Sequential(Tanh(), Linear(3, 3)), Tanh()),
            ("0.gate.grad_output", "0.gate.grad_input", "0.value.grad_output"),
        ),
        (
            lambda: Thrifty(Thrifty(Tanh(), Linear(3, 3)), Tanh()),
            (
                "0.gate.grad_output", "0.gate.grad_input", "0.value.grad_output", "0.value.gate.grad_output",
                "0.value.gate.grad_input", "0.value.value.grad_output",
            ),
        ),
        (lambda: SkipsFirst(Tanh(), Linear(3, 3)), ("0.gate.grad_output",)),
        (lambda: SkipsFirst(Sequential(Tanh(), ReLU()), Linear(3, 3)), ("0.gate.grad_output",)),
    ],
)  # fmt: skip - a table
def test_a_composite_may_compute_no_more_than_its_parameters_need(
    make: Callable[[], Layer], gradients: tuple[str, ...]
) -> None:
    assert train_first(make()) == gradients
    assert check_gradients(model_of(make()), MSELoss(), *batch()).passed


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (SkipsFirst, "0 (SkipsFirst) ran 0.value (Linear) backward never instead of once"),
        (Doubles, "0 (Doubles): backward_parameters and backward write different values into grad.value.weight"),
        (SavesTooMuch, "0 (SavesTooMuch): backward_parameters and backward write different values"),
    ],
)
def test_but_not_less(wrong: type[Thrifty], problem: str) -> None:
    with pytest.raises(GradientMismatch) as caught:
        train_first(wrong(Linear(3, 3), Tanh()))
    assert problem in " ".join(str(caught.value).split())
