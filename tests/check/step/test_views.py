"""What a step moves, or may write into, is compared as it was when it was noted."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from problems import problem_and_place
from proving import points, prover_of, trained, trainer_of

from nn_manual import (
    BatchNorm1d,
    Examples,
    Flatten,
    GradientChecker,
    GradientMismatch,
    Layer,
    Linear,
    MSELoss,
    Residual,
    Sequential,
    Slicing,
    Unflatten,
)
from nn_manual.arrays import Array, Shape
from nn_manual.errors import NotFiniteError
from nn_manual.layers import Dropout, LayerWithBuffers

#: Steps are proven together, and one by one, by the formulas and by plans.
WAYS: list[Any] = [
    {},
    {"memory": 0},
    {"slicing": Slicing(num_slices=2)},
]
#: numba compiles.
WAYS += [pytest.param({"compiled": True, **way}, marks=pytest.mark.slow) for way in WAYS]
IDS = ["together", "alone", "slices", "compiled together", "compiled alone", "compiled slices"]
each_way = pytest.mark.parametrize("way", WAYS, ids=IDS)


@dataclass(eq=False)
class Row(Layer):
    """The output is the parameter, whatever the input is: a view of what the optimizer moves."""

    num_features: int = 3

    def parameter_shapes(self) -> dict[str, Shape]:
        return {"row": (self.num_features,)}

    def reset_parameters(self, generator: np.random.Generator) -> None:
        self.param.row[...] = generator.standard_normal(self.num_features)

    def forward(self, input: Array) -> tuple[Array, None]:
        return np.broadcast_to(self.param.row, input.shape), None

    def backward(self, saved: None, grad_output: Array) -> Array:  # noqa: ARG002 - the contract's
        self.grad.row[...] = grad_output.sum(axis=0)
        return np.zeros_like(grad_output)

    def reference(self, input: Any, row: Any) -> Any:
        return row + 0 * input


@dataclass(eq=False)
class Offset(Row):
    """output = input + offset, (batch, features): grad_input is the very array of grad_offset, which is clipped."""

    batch: int = 4

    def parameter_shapes(self) -> dict[str, Shape]:
        return {"row": (self.batch, self.num_features)}

    def reset_parameters(self, generator: np.random.Generator) -> None:
        self.param.row[...] = generator.standard_normal(self.param.row.shape)

    def forward(self, input: Array) -> tuple[Array, None]:
        return input + self.param.row, None

    def backward(self, saved: None, grad_output: Array) -> Array:  # noqa: ARG002 - the contract's
        grad_row: Array = self.grad.row
        grad_row[...] = grad_output
        return grad_row

    def reference(self, input: Any, row: Any) -> Any:
        return input + row


@dataclass(eq=False)
class Running(LayerWithBuffers):
    """The output is the buffer, which then moves to the mean of the inputs."""

    num_features: int = 3

    def buffer_shapes(self) -> dict[str, Shape]:
        return {"mean": (self.num_features,)}

    def forward(self, input: Array) -> tuple[Array, Array]:
        return np.broadcast_to(self.buffer.mean, input.shape), input

    def backward(self, saved: Array, grad_output: Array) -> Array:  # noqa: ARG002 - the contract's
        return np.zeros_like(grad_output)

    def update_buffers(self, saved: Array) -> None:
        self.buffer.mean[...] = saved.mean(axis=0)

    def reference(self, input: Any, mean: Any) -> Any:
        return mean + 0 * input, {"mean": input.mean(0)}


@each_way
@pytest.mark.parametrize("layers", [[Row()], [Linear(3, 3), Row(), Dropout(0)], [Running()]])
def test_an_output_that_is_a_view_of_what_the_step_moves(way: dict[str, Any], layers: list[Layer]) -> None:
    trainer = trainer_of(Sequential(*copy.deepcopy(layers), Linear(3, 3), seed=1), **way)
    steps = trained(trainer, points(6))
    assert [step.check is not None and step.check.proven for step in steps] == 6 * [True]


@each_way
def test_an_output_that_is_a_view_of_the_batch(way: dict[str, Any]) -> None:
    """The batch is in memory of its own, which the output keeps alive: other steps would write into it."""
    trainer = trainer_of(Sequential(Unflatten(1, [1, 3]), Flatten(), Linear(3, 3), seed=1), **way)
    examples = Examples(*(np.tile(array, (64, 1)) for array in points(6)))
    steps = trained(trainer, examples, batch_size=384)
    assert [step.check is not None and step.check.proven for step in steps] == len(steps) * [True]


@each_way
def test_noise_and_buffers_in_one_composite(way: dict[str, Any]) -> None:
    composite = Residual(Linear(3, 3), BatchNorm1d(3), Dropout(0.5))
    steps = trained(trainer_of(Sequential(composite, Linear(3, 3), seed=1), **way), points(6))
    assert [step.check is not None and step.check.proven for step in steps] == 6 * [True]


@pytest.mark.parametrize("memory", [0, 64_000_000])
def test_a_grad_input_that_is_a_view_of_a_clipped_gradient(memory: int) -> None:
    trainer = trainer_of(Sequential(Linear(3, 3), Offset(), Linear(3, 3), seed=1), memory=memory, clip_grad_norm=0.01)
    steps = trained(trainer, points(6))
    assert [step.check is not None and step.check.proven for step in steps] == 6 * [True]
    assert not prover_of(trainer).groups.reason


def test_an_output_that_is_a_view_and_not_finite_is_the_one_that_its_neighbour_got() -> None:
    """NaN is no sign that a Sequential gave the next layer something else."""
    model = Sequential(Row(), Linear(3, 3), seed=1)
    model.param_arena[0] = np.nan
    checker = GradientChecker(model, MSELoss())
    with checker.recording():
        checker.run(*points(1))
    with pytest.raises(NotFiniteError, match=r"^parameter 0\.row holds nan at index \(0,\)"):
        checker.compare()


@dataclass(eq=False)
class Doubles(Layer):
    """output = input, and a wrong one: forward doubles its input first."""

    def forward(self, input: Array) -> tuple[Array, None]:
        input *= 2
        return input.copy(), None

    def backward(self, saved: None, grad_output: Array) -> Array:  # noqa: ARG002 - the contract's
        return grad_output.copy()

    def reference(self, input: Any) -> Any:
        return input * 1


@each_way
def test_in_training_a_first_layer_that_writes_into_the_models_input_is_named(way: dict[str, Any]) -> None:
    trainer = trainer_of(Sequential(Doubles(), Linear(3, 3), seed=1), **way)
    with pytest.raises(GradientMismatch) as caught:
        trained(trainer, points(6))
    assert problem_and_place(caught.value.report)[0] == "0 (Doubles): forward wrote into its input"
    assert trainer.model.num_steps == 1
