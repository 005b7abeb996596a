"""Gradients of one's own classes that no step uses are compared all the same, once for each shape of the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import SGD, Examples, Layer, Linear, MSELoss, Residual, Sequential, Tanh, Trainer
from nn_manual.arrays import Array
from nn_manual.check.whole_step import unused
from nn_manual.errors import GradientMismatch
from nn_manual.step.slices.cut import Slicing


@dataclass(eq=False)
class Scale(Layer):
    """Each feature times a weight. A `factor` other than 1 is a mistake in grad_input, for batches of `num_rows`."""

    features: int
    factor: float = 1.0
    num_rows: int | None = None
    dtype: str = ""  # the only one that it takes

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"weight": (self.features,)}

    def forward(self, input: Array) -> tuple[Array, Array]:
        assert self.dtype in ("", input.dtype.name)
        return self.param.weight * input, input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        self.grad.weight[...] = (saved * grad_output).sum(axis=0)
        is_wrong = self.num_rows in (None, len(saved))
        grad_input: Array = self.param.weight * grad_output * grad_output.dtype.type(self.factor if is_wrong else 1)
        return grad_input

    def reference(self, input: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return weight * input


@dataclass(eq=False)
class OwnMSE(MSELoss):
    """A loss with a wrong gradient of the target, which no training asks for."""

    def backward_target(self, saved: Any) -> Array:
        return 2 * super().backward_target(saved)

    def reference(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.mse_loss(prediction, target)


def trained(*layers: Layer, loss: MSELoss | None = None, num_examples: int = 8, **settings: Any) -> Trainer:
    generator = np.random.default_rng(0)
    model = Sequential(*layers, dtype="float32")
    model.param_arena[...] = generator.normal(size=model.num_parameters)
    examples = generator.normal(size=(num_examples, 3)), generator.normal(size=(num_examples, 2))
    train = Examples(*(array.astype(np.float32) for array in examples))
    trainer = Trainer(model, loss or MSELoss(), SGD(model, lr=0.01), check_every=1, **settings)
    trainer.fit(train, epochs=1, batch_size=4, verbose=False)
    return trainer


@pytest.mark.parametrize("settings", [{}, {"compiled": True}, {"slicing": Slicing(2)}])
@pytest.mark.parametrize(
    ("layers", "name"),
    [
        (lambda wrong: (wrong, Linear(3, 2)), "0.grad_input"),
        (lambda wrong: (Tanh(), wrong, Linear(3, 2)), "1.grad_input"),
        (lambda wrong: (Residual(wrong), Linear(3, 2)), "0.0.grad_input"),
    ],
)
def test_of_the_first_layer_with_parameters(layers: Any, name: str, settings: dict[str, Any]) -> None:
    trained(*layers(Scale(3)), **settings)
    with pytest.raises(GradientMismatch) as wrong:
        trained(*layers(Scale(3, factor=1.001)), **settings)
    first = wrong.value.report.failures[0]
    assert first.name == name
    assert first.relative == pytest.approx(1e-3, rel=1e-3)


def test_of_each_shape_of_the_input() -> None:
    trained(Scale(3, factor=2, num_rows=1), Linear(3, 2), num_examples=8)
    with pytest.raises(GradientMismatch, match=r"0\.grad_input"):
        trained(Scale(3, factor=2, num_rows=1), Linear(3, 2), num_examples=9)


def test_of_the_target_of_a_loss() -> None:
    with pytest.raises(GradientMismatch, match=r"loss\.grad_target"):
        trained(Linear(3, 2), loss=OwnMSE())


def test_of_one_that_does_not_run_in_float64_they_are_not_proven() -> None:
    trainer = trained(Scale(3, factor=2, dtype="float32"), Linear(3, 2))
    assert trainer.checker is not None
    (unproven,) = trainer.checker.unproven()
    assert unproven.startswith("gradients that no step uses: in float64 the step raised AssertionError")


@dataclass(eq=False)
class NoReference(Scale):
    reference = None  # type: ignore[assignment]  # it is compared with differences


def test_of_a_layer_without_a_reference_only_if_differences_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GradientMismatch, match=r"0\.grad_input"):
        trained(NoReference(3, factor=1.001), Linear(3, 2))
    monkeypatch.setattr(unused, "MOST_DIFFERENCES", 11)
    trainer = trained(NoReference(3, factor=1.001), Linear(3, 2))
    assert trainer.checker is not None
    words = "0 (NoReference) has no reference, and differences for the 12 numbers of its input take long: nn-manual"
    assert any(words in sentence for sentence in trainer.checker.unproven())


def test_nothing_is_run_again_for_the_packages_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(unused, "Again")
    trained(Tanh(), Linear(3, 3), Scale(3, factor=1), Linear(3, 2))
    with pytest.raises(NameError):
        trained(Scale(3), Linear(3, 2))
