"""torch's versions of optimizers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from nn_manual import SGD, AdamW, GradientMismatch, Linear, MSELoss, Sequential, Trainer
from nn_manual.arrays import Array
from nn_manual.check.twin.optimizers import OptimizerTwin
from nn_manual.data import Examples
from nn_manual.optim import Optimizer
from nn_manual.optim.scheduler_base import Scheduled
from nn_manual.step.slices.cut import Slicing


def test_a_step_starts_from_what_it_is_given() -> None:
    """The same step again gives the same, after any other steps in between."""
    model = Sequential(Linear(2, 1), dtype="float64")
    optimizer = SGD(model, lr=0.5, momentum=0.9, dampening=0.5)
    twin = OptimizerTwin(optimizer, model.dtype)
    param, grad = np.arange(3.0)[np.newaxis], np.ones((1, 3))
    for num_steps, buffer in ((0, [1, 1, 1]), (4, [2.3, 2.3, 2.3]), (0, [1, 1, 1])):
        vectors = {"momentum_buffer": np.full((1, 3), 2.0)}
        twin.step(param, vectors, grad, scheduled=[[Scheduled(0.5, 0.9)]], num_steps=[num_steps])
        np.testing.assert_allclose(twin.vectors["momentum_buffer"], [buffer], rtol=1e-15)
        np.testing.assert_allclose(twin.param, param - 0.5 * np.array(buffer), rtol=1e-15)


def test_steps_at_once_start_each_from_its_own() -> None:
    """Each has its row, its lr and its count: the first of all has no momentum yet."""
    model = Sequential(Linear(2, 1), dtype="float64")
    twin = OptimizerTwin(SGD(model, momentum=0.9, dampening=0.5), model.dtype, num_steps=5)
    param, buffer = np.arange(12.0).reshape(4, 3), np.full((4, 3), [[2.0], [2.0], [4.0], [2.0]])
    lrs = [[0.5], [0.5], [0.5], [0.25]]
    for num_steps, expected in (([0, 4, 4, 4], [1, 2.3, 4.1, 2.3]), ([4, 0, 4, 0], [2.3, 1, 4.1, 1])):
        vectors, scheduled = {"momentum_buffer": buffer}, [[Scheduled(lr, 0.9)] for (lr,) in lrs]
        twin.step(param, vectors, np.ones((4, 3)), scheduled=scheduled, num_steps=num_steps)
        moved = np.full((4, 3), np.array(expected)[:, np.newaxis])
        np.testing.assert_allclose(twin.vectors["momentum_buffer"][:4], moved, rtol=1e-15)
        np.testing.assert_allclose(twin.param[:4], param - np.array(lrs) * moved, rtol=1e-15)


def test_a_group_has_its_settings_and_its_lr() -> None:
    """The bias has no momentum, so its part of the buffer stays."""
    model = Sequential(Linear(2, 1), dtype="float64")
    optimizer = SGD(model, lr=0.5, momentum=0.9, groups=[{"parameters": "*.bias", "momentum": 0.0}])
    twin = OptimizerTwin(optimizer, model.dtype)
    for _ in range(2):
        vectors = {"momentum_buffer": np.full((1, 3), 2.0)}
        scheduled = [[Scheduled(0.5, 0.9), Scheduled(0.25, 0.0)]]
        twin.step(np.zeros((1, 3)), vectors, np.ones((1, 3)), scheduled=scheduled, num_steps=[1])
        np.testing.assert_allclose(twin.vectors["momentum_buffer"], [[2.8, 2.8, 2.0]], rtol=1e-15)
        np.testing.assert_allclose(twin.param, [[-1.4, -1.4, -0.25]], rtol=1e-15)


def test_the_number_of_steps_is_that_of_each_part() -> None:
    """torch counts the steps of each of its parameters: with one count for two runs it would count twice."""
    model = Sequential(Linear(2, 1), Linear(1, 1), dtype="float64")
    optimizer = AdamW(model, betas=(0.5, 0), eps=0.25, groups=[{"parameters": "*.bias", "weight_decay": 0.0}])
    twin = OptimizerTwin(optimizer, model.dtype)
    vectors = {"exp_avg": np.zeros((1, 5)), "exp_avg_sq": np.zeros((1, 5))}
    scheduled = [[Scheduled(1.0, 0.5)] * 2]
    twin.step(np.ones((1, 5)), vectors, np.full((1, 5), 0.75), scheduled=scheduled, num_steps=[3])
    np.testing.assert_allclose(twin.param, [[0.59, 0.59, 0.6, 0.59, 0.6]], rtol=1e-14)


def test_a_schedule_may_move_the_momentum() -> None:
    """SGD's setting of this name, and the first of Adam's betas: from zeros, exp_avg is (1 - beta1) * gradient."""
    model, grad, param = Sequential(Linear(2, 1), dtype="float64"), np.ones((1, 3)), np.zeros((1, 3))
    twin = OptimizerTwin(SGD(model, momentum=0.9), model.dtype)
    twin.step(param, {"momentum_buffer": np.ones((1, 3))}, grad, scheduled=[[Scheduled(1.0, 0.25)]], num_steps=[1])
    np.testing.assert_allclose(twin.vectors["momentum_buffer"], [[1.25] * 3], rtol=1e-15)
    twin, zeros = OptimizerTwin(AdamW(model), model.dtype), np.zeros((1, 3))
    vectors = {"exp_avg": zeros, "exp_avg_sq": zeros}
    twin.step(param, vectors, grad, scheduled=[[Scheduled(1.0, 0.25)]], num_steps=[1])
    np.testing.assert_allclose(twin.vectors["exp_avg"], [[0.75] * 3], rtol=1e-15)


def test_an_own_reference_gets_one_parameter_at_a_time() -> None:
    """In its shape, whatever the class says of itself: else a norm of all of them would agree with our own mistake."""
    seen = []

    class Named(SGD):
        def reference(self, param: Any, grad: Any, vectors: Any, step: int) -> Any:  # noqa: ARG002 - the contract's
            seen.append(tuple(param.shape))
            return param - grad, {}

    model = Sequential(Linear(2, 3), dtype="float64")
    twin = OptimizerTwin(Named(model), model.dtype)
    twin.step(np.zeros((1, 9)), {}, np.ones((1, 9)), scheduled=[[Scheduled(1.0, 0.0)]], num_steps=[0])
    assert seen == [(3, 2), (3,)]
    np.testing.assert_array_equal(twin.param, -np.ones((1, 9)))


#: What a reference makes of `step`, its arguments.
WRONG_REFERENCES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "its error": (lambda step: step.vectors["exp_avg"], r"raised KeyError: 'exp_avg' \(.*test_optimizers"),
    "a tensor": (lambda step: step.param, "must return a tensor, the parameter, and a dict"),
    "a list": (lambda step: (step.param, [step.grad]), "must return a tensor, the parameter, and a dict"),
    "a row": (lambda step: (step.param[:1], step.vectors), r"tensors of shape \(3, 2\); the parameter isn't"),
    "a number": (lambda step: (step.param, {"momentum_buffer": 0.0}), "; momentum_buffer isn't"),
    "another name": (
        lambda step: (step.param, {"buffer": step.grad}),
        r"must return the parameter, momentum_buffer, tensors of shape \(3, 2\); buffer isn't",
    ),
}


@pytest.mark.parametrize(
    "settings", [{}, {"check_memory": 0}, {"slicing": Slicing(2)}], ids=["together", "one by one", "sliced"]
)
@pytest.mark.parametrize("wrong", WRONG_REFERENCES)
def test_a_wrong_reference_is_named(wrong: str, settings: dict[str, Any]) -> None:
    formula, message = WRONG_REFERENCES[wrong]

    class Wrong(SGD):
        def reference(self, param: Any, grad: Any, vectors: Any, step: int) -> Any:  # noqa: ARG002 - the contract's
            return formula(SimpleNamespace(param=param, grad=grad, vectors=vectors))

    model = Sequential(Linear(2, 3), seed=0)
    trainer = Trainer(model, MSELoss(), Wrong(model, lr=0.1, momentum=0.5), **settings)
    data = Examples(np.ones((4, 2), np.float32), np.ones((4, 3), np.float32))
    with pytest.raises(GradientMismatch) as caught:
        list(trainer.epoch(data, 2, seed=0, epoch=0))
    assert re.search(rf"optimizer: Wrong\.reference .*{message}", " ".join(str(caught.value).split()))


def test_an_optimizer_that_torch_does_not_have() -> None:
    class Halving(SGD):
        pass

    with pytest.raises(TypeError, match=r"^torch\.optim has no Halving: the class must define reference\(\), "):
        OptimizerTwin(Halving(Sequential()), np.dtype(np.float32))


@dataclass(eq=False)
class Adafactor(Optimizer):
    """With one sum for each row, which it spreads over the row, as state has the shape of the parameters."""

    is_elementwise: ClassVar[bool] = False
    num_dims: ClassVar[int | None] = 2

    def check_settings(self) -> None:
        """Any will do."""

    def vector_names(self) -> list[str]:
        return ["row_var"]

    def coefficients(self, step: int) -> dict[str, float]:
        return {"lr": self.lr * step}

    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
    ) -> None:
        vectors["row_var"][...] = (grad * grad).mean(axis=1, keepdims=True)
        param -= coefficients["lr"] * grad


def test_state_of_another_shape_than_torchs_is_no_mistake_of_a_formula() -> None:
    model = Sequential(Linear(3, 4, bias=False), seed=0)
    batch = np.ones((2, 3), np.float32), np.ones((2, 4), np.float32)
    with pytest.raises(GradientMismatch) as caught:
        Trainer(model, MSELoss(), Adafactor(model)).train_step(*batch)
    words = "torch.optim.Adafactor keeps row_var in shape (4, 1), and ours is shaped as its parameter, (4, 3): give the"
    assert words in " ".join(str(caught.value).split())


def test_settings_that_torch_refuses_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SGD, "check_settings", lambda _: None)
    model = Sequential(Linear(3, 4), seed=0)
    with pytest.raises(TypeError, match=r"^torch.optim.SGD refuses the settings: ValueError: Invalid momentum value"):
        Trainer(model, MSELoss(), SGD(model, momentum=-1.0))
