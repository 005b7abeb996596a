"""What stands after an error, and what a training can't be brought to hide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from proving import points, prover_of, trained, trainer_of
from slow_cases import crossed

from nn_manual import (
    SGD,
    AdamW,
    Dropout,
    Embedding,
    GradientMismatch,
    Linear,
    MSELoss,
    NotFiniteError,
    Sequential,
    Tanh,
    Trainer,
)
from nn_manual.arrays import Array
from nn_manual.check.many_steps import step_group
from nn_manual.check.whole_step.update import UpdateChecker
from nn_manual.data import Examples
from nn_manual.layers import Layer, LayerWithBuffers


def net(width: int = 4) -> Sequential:
    return Sequential(Linear(3, width), Tanh(), Linear(width, 3), seed=0)


class Flaky(Linear):
    """Its backward is wrong once."""

    torch_class, runs, wrong = "Linear", 0, 5

    def backward(self, saved: Any, grad_output: Array) -> Array:
        grad_input = super().backward(saved, grad_output)
        self.runs += 1
        if self.runs == self.wrong:
            self.grad.weight *= np.float32(3)
        return grad_input


def test_a_trainer_goes_on_after_a_step_that_was_not_finite() -> None:
    trainer = trainer_of(net())
    start = trainer.model.param_arena.copy()

    def diverge() -> None:
        for step in trainer.epoch(points(12), 4, seed=0, epoch=0):
            if step.number == 4:
                trainer.optimizer.lr = 1e38

    with pytest.raises(NotFiniteError), np.errstate(all="ignore"):
        diverge()
    trainer.model.param_arena[...] = start
    trainer.optimizer.lr = 0.01
    assert len(trained(trainer, points(12))) == 12


@pytest.mark.parametrize(("large", "wrong"), crossed([0, 1 << 17], [5, 12]))
def test_after_a_step_that_was_wrong_once_all_is_as_it_was_after_it(
    large: int, wrong: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In large models, too, whose updates are proven at once. What a caller did to the parameters later is undone."""
    monkeypatch.setattr(step_group, "LARGE_UPDATE", large)

    def train_and_clip(trainer: Trainer) -> None:
        for _ in trainer.epoch(points(12), 4, seed=0, epoch=0):
            trainer.model.param_arena[...] = trainer.model.param_arena.clip(-0.3, 0.3)

    def end(memory: int) -> list[Array]:
        flaky = Flaky(20, 3)
        flaky.wrong = wrong
        model = Sequential(Linear(3, 20), Tanh(), flaky, seed=0)
        trainer = Trainer(model, MSELoss(), AdamW(model, lr=0.01), check_memory=memory)
        with pytest.raises(GradientMismatch, match=r"2\.grad_weight"):
            train_and_clip(trainer)
        assert trainer.num_steps == wrong
        assert trainer.prover is not None
        assert (trainer.prover.groups.most > 1) == (memory > 0)
        return [model.param_arena, model.grad_arena, *trainer.optimizer.vectors.values()]

    for alone, together in zip(end(0), end(64_000_000), strict=True):
        np.testing.assert_array_equal(alone, together)


def test_after_a_step_that_was_wrong_once_the_next_one_draws_its_own_random_numbers() -> None:
    """Those of step 6 had been drawn when step 5 was found to be wrong, and step 6 is made again."""

    def next_mask(memory: int) -> Array:
        model = Sequential(Linear(3, 20), Dropout(0.5), Flaky(20, 3), seed=0)
        trainer = trainer_of(model, memory=memory)
        with pytest.raises(GradientMismatch, match=r"2\.grad_weight"):
            trained(trainer, points(6))
        assert trainer.train_step(*points(1)).number == 6
        mask: Array = model.layers[1].noise.mask
        return mask

    np.testing.assert_array_equal(next_mask(64_000_000), next_mask(0))


class RowMean(Layer):
    """Returns arrays that can't be written to, once a wrong one."""

    runs = 0

    def forward(self, input: Array) -> tuple[Array, Any]:
        return np.broadcast_to(input.mean(1, keepdims=True), input.shape), input.shape

    def backward(self, saved: Any, grad_output: Array) -> Array:
        self.runs += 1
        factor = np.float32(2 if self.runs == 5 else 1)
        return np.broadcast_to(grad_output.mean(1, keepdims=True) * factor, saved)

    def reference(self, input: Any) -> Any:
        return input.mean(1, keepdim=True).expand(input.shape)


@pytest.mark.parametrize("memory", [0, 64_000_000])
def test_a_layer_whose_arrays_can_not_be_written_to_is_named(memory: int) -> None:
    trainer = trainer_of(Sequential(Linear(3, 4), RowMean(), Linear(4, 3), seed=0), memory=memory)
    with pytest.raises(GradientMismatch, match=r"wrong first in 1 \(RowMean\): 1\.grad_input"):
        trained(trainer, points(12))
    assert trainer.num_steps == 5


class WithoutDecay(AdamW):
    """Forgets the weight decay, from a step on."""

    since = 1

    def move(self, param: Array, grad: Array, vectors: Any, coefficients: Any) -> None:
        decay = np.ones((), np.float32) if self.num_steps + 1 >= self.since else coefficients["decay"]
        super().move(param, grad, vectors, {**coefficients, "decay": decay})


WithoutDecay.__name__ = "AdamW"


@pytest.mark.parametrize(
    ("numbers", "memory"), crossed([(1, 1), (2, 2), (3, 4), (6, 8)], [0, 64_000_000])
)
def test_a_wrong_update_shows_however_small_the_lr(
    numbers: tuple[int, int], memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    since, caught = numbers
    monkeypatch.setattr(WithoutDecay, "since", since)
    model = net()
    trainer = Trainer(model, MSELoss(), WithoutDecay(model, lr=1e-6, weight_decay=0.01), check_memory=memory)
    with pytest.raises(GradientMismatch, match="wrong first in optimizer: updated"):
        trained(trainer, points(12))
    assert trainer.num_steps == caught


@pytest.mark.parametrize("memory", [0, 64_000_000])
def test_the_steps_of_the_optimizer_are_counted(memory: int) -> None:
    class Twice(AdamW):
        def step(self) -> None:
            super().step()
            self.num_steps += self.num_steps >= 3

    Twice.__name__ = "AdamW"
    model = net()
    trainer = Trainer(model, MSELoss(), Twice(model, lr=0.01), check_memory=memory)
    with pytest.raises(GradientMismatch, match="num_steps is 4 after the step, and was 2"):
        trained(trainer, points(12))
    assert trainer.num_steps == 3


@pytest.mark.parametrize("when", [3, 4])
def test_a_proof_that_is_interrupted_changes_nothing_and_is_made_once(
    when: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In float64, the update is compared in the 1st, 2nd, 4th and 8th step; for the 4th, an interruption comes."""
    made, compared = trainer_of(Sequential(Linear(3, 4), Dropout(0.5), Linear(4, 3))), list[int]()
    right = UpdateChecker.compare_in_float64

    def interrupted(update: UpdateChecker, *arguments: Any) -> None:
        compared.append(made.num_steps)
        if len(compared) == when:
            raise KeyboardInterrupt
        right(update, *arguments)

    monkeypatch.setattr(UpdateChecker, "compare_in_float64", interrupted)
    with pytest.raises(KeyboardInterrupt):
        trained(made, points(12))
    assert (made.num_steps, prover_of(made).numbers) == (12, [*range(2, 13)])
    made.flush()
    assert compared == sorted([1, 2, 4, 8, 2 ** (when - 1)])
    assert made.checker is not None
    assert made.checker.update is not None
    assert made.checker.update._num_compared == 12
    assert made.train_step(*points(1)).number == 13


@dataclass(eq=False)
class Count(LayerWithBuffers):
    """Forgets to count."""

    def counter_names(self) -> tuple[str, ...]:
        return ("n",)

    def forward(self, input: Array) -> tuple[Array, None]:
        return input, None

    def infer(self, input: Array) -> Array:
        return input

    def backward(self, saved: None, grad_output: Array) -> Array:  # noqa: ARG002 - a layer's
        return grad_output

    def update_buffers(self, saved: None) -> None:
        pass

    def reference(self, input: Any, n: Any) -> Any:
        return input, {"n": n + 1}

    def infer_reference(self, input: Any, n: Any) -> Any:  # noqa: ARG002 - a reference's
        return input


@pytest.mark.parametrize("start", [0, 101_000, 10_000_000])
def test_a_counter_is_compared_exactly(start: int) -> None:
    model = Sequential(Linear(3, 4), Count(), Linear(4, 3), seed=0)
    model.load_state_dict({**model.state_dict(), "1.n": np.array(start)})
    with pytest.raises(GradientMismatch, match=r"wrong first in 1 \(Count\): 1\.n"):
        trained(trainer_of(model), points(3))


@pytest.mark.parametrize("memory", [0, 64_000_000])
def test_settings_that_change_are_refused(memory: int) -> None:
    model = net()
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1, momentum=0.5), check_memory=memory)

    def anneal() -> None:
        for step in trainer.epoch(points(12), 4, seed=0, epoch=0):
            trainer.optimizer.lr = 0.2
            if step.number == 3:
                trainer.optimizer.momentum = 0.6

    with pytest.raises(ValueError, match=r"SGD\.momentum was 0\.5 and is 0\.6\. In a checked training the lr alone"):
        anneal()
    assert trainer.num_steps == 3
    for name, value in {"check_every": 2, "check_memory": 5, "clip_grad_norm": 0.5, "lr_scheduler": object()}.items():
        with pytest.raises(AttributeError, match=f"{name} was given to the check"):
            setattr(trainer, name, value)


@dataclass(eq=False)
class Lookup(Layer):
    """A composite that takes indices."""

    domain = range(5)
    table: Layer
    projection: Layer

    def output_shape(self, input_shape: Any) -> Any:
        return self.projection.output_shape(self.table.output_shape(input_shape))

    def forward(self, input: Array) -> tuple[Array, Any]:
        inner, saved = self.table.forward(input)
        output, saved_after = self.projection.forward(inner)
        return output, (saved, saved_after)

    def backward(self, saved: Any, grad_output: Array) -> Any:
        return self.table.backward(saved[0], self.projection.backward(saved[1], grad_output))

    def reference(self, input: Any, table: Any, projection: Any) -> Any:
        return projection(table(input))


def test_a_composite_of_indices_is_proven_with_others() -> None:
    model = Sequential(Lookup(Embedding(5, 4), Linear(4, 3)), Tanh(), seed=0)
    generator = np.random.default_rng(0)
    data = Examples(generator.integers(0, 5, 48), generator.standard_normal((48, 3), np.float32))
    trainer = trainer_of(model)
    trained(trainer, data)
    assert prover_of(trainer).groups.most > 1, prover_of(trainer).groups.reason


def test_a_batch_that_is_refused_is_no_step() -> None:
    trainer = trainer_of(net())
    with pytest.raises(ValueError, match=r"the input is empty, shape \(0, 3\)"):
        trainer.train_step(np.empty((0, 3), np.float32), np.empty((0, 3), np.float32))
    with pytest.raises(ValueError, match="MSELoss"):
        trainer.train_step(np.ones((2, 3), np.float32), np.ones((2, 2), np.float32))
    assert (trainer.num_steps, trainer.model.num_steps) == (0, 0)
    assert trainer.train_step(np.ones((2, 3), np.float32), np.ones((2, 3), np.float32)).number == 1


@pytest.mark.parametrize("check_every", [0, 1])
def test_a_loss_that_is_no_number(check_every: int) -> None:
    class Squared(MSELoss):
        def forward(self, prediction: Array, target: Array) -> tuple[Any, Any]:
            return (prediction - target).mean(axis=1), super().forward(prediction, target)[1]

        def reference(self, prediction: Any, target: Any) -> Any:
            return ((prediction - target) ** 2).mean()

    model = net()
    trainer = Trainer(model, Squared(), SGD(model, lr=0.1), check_every=check_every)
    message = r"Squared\.forward must return one number, not an array of shape \(4,\)"
    with pytest.raises(TypeError, match=message):
        trained(trainer, points(3))
