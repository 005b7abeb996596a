"""Steps that have passed, restored: whatever becomes of them, the training goes on from where it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from proving import BATCH, figures, group_size, points, prover_of, trained, trainer_of

from nn_manual import AdamW, BatchNorm1d, Dropout, Linear, Sequential, StepLR, Tanh, Trainer
from nn_manual.arrays import Array
from nn_manual.check.many_steps import step_group
from nn_manual.check.many_steps.waiting import Waiting
from nn_manual.check.step.proof import ours_of
from nn_manual.check.step.structure import check_structure
from nn_manual.layers import Layer
from nn_manual.trainer.steps import Step

NUM_STEPS = 12


@dataclass(eq=False)
class Cancelling(Layer):
    """output = (input + 1e5) - 1e5: right, and off by rounding in float32."""

    def forward(self, input: Array) -> tuple[Array, Any]:
        large = input.dtype.type(1e5)
        return (input + large) - large, None

    def backward(self, saved: Any, grad_output: Array) -> Array:  # noqa: ARG002 - the contract's signature
        return grad_output.copy()

    def reference(self, input: Any) -> Any:
        return (input + 3e5) - 3e5


def trainer(**settings: Any) -> Trainer:
    """All that a step can move or depend on, and a layer for which each step is judged."""
    layers = Linear(3, 4), BatchNorm1d(4), Cancelling(), Dropout(0.3), Tanh(), Linear(4, 3)
    model = Sequential(*layers, tied=[("0.bias", "1.bias")], seed=1)
    return trainer_of(model, AdamW, lr_scheduler=StepLR(2, 0.7), lr_step="step", clip_grad_norm=0.5, **settings)


def state(trainer: Trainer) -> dict[str, Any]:
    model, optimizer = trainer.model, trainer.optimizer
    arrays = {"param": model.param_arena, "grad": model.grad_arena, **optimizer.vectors, **vars(model.buffer)}
    numbers = {"steps": trainer.num_steps, "model": model.num_steps, "lr": optimizer.lr, "made": optimizer.num_steps}
    noise = {"mask": model.layers[3].noise.mask}
    return {name: np.asarray(value).tobytes() for name, value in {**arrays, **numbers, **noise}.items()}


@pytest.mark.slow
def test_steps_that_are_judged_leave_everything_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a training without any check, after each step and at the end.
    It alone compares all that a judged step must leave as it is.
    """
    unchecked = trainer(check_every=0)
    expected = [state(unchecked) for _ in unchecked.epoch(points(NUM_STEPS), BATCH, seed=0, epoch=0)]
    judged, prove_alone = list[int](), Waiting.prove_alone

    def counted(waiting: Waiting, group: Any, i: int) -> None:
        judged.append(group.ring.numbers[i])
        prove_alone(waiting, group, i)

    monkeypatch.setattr(Waiting, "prove_alone", counted)
    for size in (1, 3, 64):
        judged.clear()
        group_size(monkeypatch, size)
        checked = trainer()
        steps, states = [], []
        for step in checked.epoch(points(NUM_STEPS), BATCH, seed=0, epoch=0):
            steps.append(step)
            states.append(state(checked))
        assert states == expected
        assert state(checked) == expected[-1]
        assert judged == list(range(2, NUM_STEPS + 1))
        assert all(step.check is not None and "2.output" in step.check.rounding for step in steps)
        alone = trained(trainer(memory=0), points(NUM_STEPS))
        assert figures(steps) == figures(alone)


@pytest.mark.parametrize("check_every", [1, 2])
def test_an_update_that_was_compared_when_it_was_made_is_not_compared_again(
    check_every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in large models. Where the parameters are when the next step is checked, the update may not have ended."""
    monkeypatch.setattr(step_group, "LARGE_UPDATE", 0)

    def steps(memory: int) -> list[Step]:
        made, done = trainer(check_every=check_every, memory=memory), list[Step]()
        for step in made.epoch(points(NUM_STEPS), BATCH, seed=0, epoch=0):
            done.append(step)
            made.model.param_arena[...] = made.model.param_arena.clip(-0.3, 0.3)
        assert (prover_of(made).groups.most > 1) == (memory > 0)
        update = prover_of(made).checker.update
        assert update is not None
        assert update._num_compared == NUM_STEPS // check_every
        return done

    together, alone = steps(64_000_000), steps(0)
    assert figures(together) == figures(alone)
    assert all("2.output" in step.check.rounding for step in together if step.check)


def test_an_earlier_step_restored_leaves_everything_as_it_is() -> None:
    """Meanwhile its lr, random numbers and buffers are those of then, and the checker has recorded it."""
    made, seen, recorded = trainer(), list[dict[str, Any]](), list[dict[str, Array]]()
    trained(made, points(1))
    checker = prover_of(made).checker
    for step in made.epoch(points(6), BATCH, seed=0, epoch=0):
        seen.append(state(made))
        ours = ours_of(checker.plan(), checker.recorded)
        given = {f"before {name}": buffer for name, buffer in checker.recorded.buffers_before.items()}
        recorded.append({name: np.array(array) for name, array in (ours | given).items()})
        if step.number == 6:
            break
    (group,) = prover_of(made).groups._by_shape.values()
    assert group is not None
    with group.past.restored(1):
        assert state(made) == seen[1]
        check_structure(checker.recorded, group.plan)
        ours = ours_of(checker.plan(), checker.recorded)
        compared = [quantity.name for quantity in (*group.plan.forward, *group.plan.backward)]
        assert {name: ours[name].tobytes() for name in compared} == {
            name: recorded[1][name].tobytes() for name in compared
        }
        for name, buffer in checker.recorded.buffers_before.items():
            np.testing.assert_array_equal(buffer, recorded[1][f"before {name}"])
    assert state(made) == seen[-1]
    assert checker.recorded.loss.value == recorded[-1]["loss"]
    made.flush()
