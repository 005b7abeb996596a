"""What a composite does to its layers: its mistakes are its own, and what they return is its own to write into."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from composites import Sum
from nets import batch, model_of
from problems import problem_and_place
from stateful import Wrapped

from nn_manual import (
    SGD,
    BatchNorm1d,
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
from nn_manual.arrays import Array


class AddsInPlace(Sum):
    """Right where `a` doesn't save its output."""

    def forward(self, input: Array) -> tuple[Array, Any]:
        output, a_saved = self.a.forward(input)
        b, b_saved = self.b.forward(input)
        output += b
        return output, (a_saved, b_saved)


class AddsGradientsInPlace(Sum):
    """Right where `a` doesn't return grad_output itself."""

    def backward(self, saved: Any, grad_output: Array) -> Array:
        a_saved, b_saved = saved
        grad_input = self.a.backward(a_saved, grad_output)
        grad_input += self.b.backward(b_saved, grad_output)
        return grad_input


class OneAfterTheOther(Sum):
    """output = b(a(input)) + a(input), in memory that b got. Right where b doesn't save its input."""

    def forward(self, input: Array) -> tuple[Array, Any]:
        a, a_saved = self.a.forward(input)
        b, b_saved = self.b.forward(a)
        a += b
        return a, (a_saved, b_saved)

    def backward(self, saved: Any, grad_output: Array) -> Array:
        a_saved, b_saved = saved
        return self.a.backward(a_saved, grad_output + self.b.backward(b_saved, grad_output))

    def reference(self, input: Any, a: Any, b: Any) -> Any:
        between = a(input)
        return between + b(between)


class ReusesTheGradient(Sum):
    """Overwrites the gradient that it has given to `b`."""

    def backward(self, saved: Any, grad_output: Array) -> Array:
        a_saved, b_saved = saved
        grad = grad_output.copy()
        grad_input = self.b.backward(b_saved, grad)
        grad[...] = grad_output
        grad_input += self.a.backward(a_saved, grad)
        grad[...] = 0
        return grad_input


def two() -> list[Layer]:
    return [Sequential(Tanh(), Linear(4, 4)), Residual(Linear(4, 4))]


RIGHT = [
    lambda: AddsInPlace(Linear(4, 4), Tanh()),
    lambda: AddsInPlace(*two()),
    lambda: AddsGradientsInPlace(Tanh(), Linear(4, 4)),
    lambda: AddsGradientsInPlace(*two()),
    lambda: AddsInPlace(AddsInPlace(*two()), AddsGradientsInPlace(*two())),
    lambda: OneAfterTheOther(Linear(4, 4), Tanh()),
    lambda: ReusesTheGradient(*two()),
]


@pytest.mark.parametrize("make", RIGHT)
def test_what_a_layer_returns_is_the_composites_to_write_into(make: Any) -> None:
    model = model_of(make())
    report = check_gradients(model, MSELoss(), *batch())
    assert report.passed, str(report)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1))
    for _ in range(3):
        trainer.train_step(*batch())


class ScalesTheGradient(Wrapped):
    def backward(self, saved: Any, grad_output: Array) -> Array:
        grad_input = super().backward(saved, grad_output)
        self.inner.grad.weight *= 2
        return grad_input


class ClearsWhatWasSaved(Wrapped):
    def forward(self, input: Array) -> tuple[Array, Any]:
        output, saved = super().forward(input)
        saved[...] = 0
        return output, saved


@dataclass(eq=False)
class PassesOn(Layer):
    """output = input, the very array; so is the gradient."""

    def forward(self, input: Array) -> tuple[Array, Any]:
        return input, None

    def backward(self, saved: Any, grad_output: Array) -> Array:  # noqa: ARG002
        return grad_output

    def reference(self, input: Any) -> Any:
        return input.clone()


WRONG: list[tuple[Callable[[], Layer], str | None]] = [
    (lambda: AddsInPlace(Tanh(), Linear(4, 4)), "forward wrote into what 1.a (Tanh) saved"),
    (lambda: AddsInPlace(Residual(Tanh()), Tanh()), None),
    (lambda: AddsInPlace(Sequential(Linear(4, 4), Tanh()), Tanh()), "forward wrote into what 1.a.1 (Tanh) saved"),
    (lambda: AddsInPlace(PassesOn(), Tanh()), "forward wrote into its input"),
    (lambda: AddsGradientsInPlace(PassesOn(), Linear(4, 4)), "backward wrote into grad_output"),
    (lambda: OneAfterTheOther(Linear(4, 4), Linear(4, 4)), "forward wrote into what 1.b (Linear) saved"),
    (lambda: ScalesTheGradient(Linear(4, 4)), "backward wrote into grad.weight of 1.inner (Linear)"),
    (lambda: ScalesTheGradient(BatchNorm1d(4)), "backward wrote into grad.weight of 1.inner (BatchNorm1d)"),
    (lambda: ClearsWhatWasSaved(ReLU()), "forward wrote into what 1.inner (ReLU) saved"),
]


@pytest.mark.parametrize(("make", "words"), WRONG)
def test_what_it_does_to_its_layers_is_the_composites_fault(make: Any, words: str | None) -> None:
    composite = make()
    report = check_gradients(model_of(composite), MSELoss(), *batch())
    if words is None:
        assert report.passed, str(report)
        return
    problem, file, _ = problem_and_place(report)
    assert problem == f"1 ({type(composite).__name__}): {words}"
    assert file == Path(__file__)


@pytest.mark.parametrize("number", [0, 2, 5, 6, 8])
def test_so_it_is_in_training(number: int) -> None:
    make, words = WRONG[number]
    composite: Layer = make()
    model = model_of(composite)
    with pytest.raises(GradientMismatch) as caught:
        Trainer(model, MSELoss(), SGD(model, lr=0.1)).train_step(*batch())
    assert problem_and_place(caught.value.report)[0] == f"1 ({type(composite).__name__}): {words}"
