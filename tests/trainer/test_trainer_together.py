"""Steps of an epoch that are proven together: when they are, and what a loop around them may do."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from nets import break_gradient
from proving import BATCH, figures, net, points, prover_of, trained, trainer_of

from nn_manual import GradientMismatch, StepLR, Trainer
from nn_manual.arrays import Array
from nn_manual.check.judge.step_check import StepCheck
from nn_manual.trainer.steps import Step

NUM_STEPS = 8


def wrong_in(step: int) -> Trainer:
    """A trainer with a gradient that is wrong in one step."""
    trainer = trainer_of(net())

    def spoilt(grad: Array) -> Array:
        return grad * np.float32(1.01 if trainer.model.num_steps == step else 1)

    break_gradient(trainer.model.layers[2], "grad_weight", spoilt)
    return trainer


def left_after(trainer: Trainer, number: int) -> Step:
    """The last step of a loop that is left early."""
    return next(step for step in trainer.epoch(points(NUM_STEPS), BATCH, seed=0, epoch=0) if step.number == number)


def check_of(step: Step) -> StepCheck:
    assert step.check is not None
    return step.check


def test_the_checks_of_an_epoch_say_whether_they_are_proven() -> None:
    trainer = trainer_of(net())
    check = check_of(left_after(trainer, 4))
    assert not check.proven
    words = "this step is not proven yet: it is when its epoch ends, or after trainer.flush()"
    for name in ("absolute", "scale", "rounding", "not_judged", "relative", "severity", "ulps"):
        with pytest.raises(RuntimeError, match=re.escape(words)):
            getattr(check, name)
    assert len(check.tensors) == len(check.tolerances)
    trainer.flush()
    assert check.proven
    assert check.severity.max() < 1
    trainer.flush()
    assert trainer.num_steps == 4


def test_they_are_when_the_epoch_ends() -> None:
    assert all(check_of(step).proven for step in trained(trainer_of(net()), points(NUM_STEPS)))


def test_a_step_of_ones_own_is_proven_at_once() -> None:
    trainer, data = trainer_of(net()), points(3)
    for start in range(0, 12, BATCH):
        batch = slice(start, start + BATCH)
        assert check_of(trainer.train_step(data.input[batch], data.target[batch])).proven
    trainer = wrong_in(2)
    trainer.train_step(data.input[:4], data.target[:4])
    with pytest.raises(GradientMismatch):
        trainer.train_step(data.input[:4], data.target[:4])
    assert trainer.num_steps == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda trainer: trainer.flush(),
        lambda trainer: trainer.train_step(points(1).input, points(1).target),
        lambda trainer: trainer.evaluate(points(2)),
        lambda trainer: next(trainer.epoch(points(2), BATCH, seed=0, epoch=1)),
    ],
)
def test_after_a_loop_that_was_left_early_the_next_call_proves_what_is_left(call: Callable[[Trainer], Any]) -> None:
    trainer = wrong_in(3)
    left_after(trainer, 6)
    assert trainer.num_steps == 6
    with pytest.raises(GradientMismatch, match=r"wrong first in 2 \(Linear\): 2\.grad_weight"):
        call(trainer)
    assert trainer.num_steps == trainer.model.num_steps == 3
    assert prover_of(trainer).numbers == []


def test_what_was_wrong_before_a_wrong_lr_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The schedule is wrong in step 6, a gradient in step 4."""
    monkeypatch.setattr(StepLR, "lr", lambda self, initial, count: initial * (2 if count == 5 else 1))  # noqa: ARG005
    trainer = wrong_in(4)
    trainer = trainer_of(trainer.model, lr_scheduler=StepLR(100, 0.5), lr_step="step")
    with pytest.raises(GradientMismatch, match=r"2\.grad_weight"):
        trained(trainer, points(NUM_STEPS))
    assert trainer.num_steps == 4


def test_a_loop_may_change_parameters_and_lr_between_steps() -> None:
    """Each step is proven from what it started with."""
    ends, found = [], []
    for memory in (0, 64_000_000):
        trainer, steps = trainer_of(net(), memory=memory, clip_grad_norm=0.2), []
        for step in trainer.epoch(points(NUM_STEPS), BATCH, seed=0, epoch=0):
            steps.append(step)
            trainer.optimizer.lr *= 0.7
            trainer.model.param_arena *= np.float32(0.9)
            trainer.model.grad_arena[...] = 0
        ends.append(trainer.model.param_arena.tobytes())
        assert all(check_of(step).proven for step in steps)
        assert max(check_of(step).severity.max() for step in steps) < 0.5
        found.append([check_of(step).scale.tolist() for step in steps])
    assert ends[0] == ends[1]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


def test_a_batch_may_change_once_its_step_is_made() -> None:
    """The prover has a copy of it."""
    data = points(NUM_STEPS)
    trainer, steps = trainer_of(net()), []
    for step in trainer.epoch(data, BATCH, seed=0, epoch=0):
        steps.append(step)
        if step.number == NUM_STEPS:
            data.input[...] = np.nan
    assert figures(steps) == figures(trained(trainer_of(net()), points(NUM_STEPS)))


@pytest.mark.parametrize("every", [1, 3])
def test_the_weights_are_those_of_unchecked_steps(every: int) -> None:
    unchecked, checked = trainer_of(net(), check_every=0), trainer_of(net(), check_every=every)
    trained(unchecked, points(NUM_STEPS))
    steps = trained(checked, points(NUM_STEPS))
    assert [step.number for step in steps if step.check] == list(range(every, NUM_STEPS + 1, every))
    assert checked.model.param_arena.tobytes() == unchecked.model.param_arena.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "words"), [(1, ""), (2, "step 2 never proven"), (5, "steps 2 to 5 never proven")]
)
def test_steps_that_are_never_proven_are_named_when_the_program_ends(number: int, words: str) -> None:
    """It alone ends whole programs with steps that nobody proved."""
    program = f"""
        from proving import *
        trainer = trainer_of(net())
        for step in trainer.epoch(points(8), BATCH, seed=0, epoch=0):
            if step.number == {number}:
                break
    """
    code = f"import sys; sys.path[:0] = {sys.path!r}" + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    said = f"nn_manual: {words}: call trainer.flush() after a loop that is left early\n"
    assert done.stderr == (said if words else "")
    assert done.stdout == ""
