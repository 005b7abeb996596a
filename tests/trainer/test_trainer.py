"""The training step by hand, epochs of it, its schedule, its clipping, and what is refused."""

from __future__ import annotations

import math
import signal
from typing import Any

import numpy as np
import pytest
from classifiers import BATCH, classifier, examples, train
from comparing import assert_equal
from stateful import Averaged

from nn_manual.data import Examples
from nn_manual.errors import ConfigError, NotFiniteError
from nn_manual.layers import Linear
from nn_manual.losses import CrossEntropyLoss, Loss, MSELoss, SmoothL1Loss
from nn_manual.model import Sequential
from nn_manual.optim import SGD, ReduceLROnPlateau, StepLR
from nn_manual.step.slices.cut import Slicing
from nn_manual.trainer.trainer import Trainer


def test_a_step_is_its_formula() -> None:
    model = Sequential(Linear(3, 2), dtype="float64")
    generator = np.random.default_rng(0)
    input, target = generator.standard_normal((4, 3)), generator.standard_normal((4, 2))
    weight, bias = model.layers[0].param.weight.copy(), model.layers[0].param.bias.copy()
    difference = input @ weight.T + bias - target
    step = Trainer(model, MSELoss(), SGD(model, lr=0.5)).train_step(input, target)
    assert (step.number, step.num_examples) == (1, 4)
    assert step.loss == pytest.approx((difference**2).mean(), rel=1e-15)
    assert_equal(model.layers[0].param.weight, weight - 0.5 * 2 / 8 * difference.T @ input)
    assert_equal(model.layers[0].param.bias, bias - 0.5 * 2 / 8 * difference.sum(axis=0))


@pytest.mark.parametrize("every", [0, 1])
def test_buffers_move_before_the_parameters(every: int) -> None:
    model = Sequential(Averaged(2), dtype="float64")
    weight = model.param_arena.copy()
    input = np.random.default_rng(0).standard_normal((3, 2))
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.5), check_every=every)
    trainer.train_step(input, input)
    assert_equal(model.layers[0].buffer.average, weight / 2)
    second = model.param_arena.copy()
    assert not np.array_equal(weight, second)
    trainer.train_step(input, input)
    assert_equal(model.layers[0].buffer.average, weight / 4 + second / 2)


class EndedError(Exception):
    """Raised from outside in the middle of a step."""


@pytest.mark.parametrize("every", [0, 1])
def test_a_step_that_is_ended_from_outside_is_no_step(every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer, data = classifier(check_every=every), examples()
    batch = data.input[:8], data.target[:8]
    trainer.train_step(*batch)
    with monkeypatch.context() as context:
        context.setattr(Linear, "forward", lambda *_: signal.raise_signal(signal.SIGUSR1))

        def handler(*_: object) -> None:
            raise EndedError

        before = signal.signal(signal.SIGUSR1, handler)
        try:
            with pytest.raises(EndedError):
                trainer.train_step(*batch)
        finally:
            signal.signal(signal.SIGUSR1, before)
    assert trainer.num_steps == trainer.optimizer.num_steps == 1
    assert trainer.train_step(*batch).number == 2


@pytest.mark.parametrize("error", [ValueError, ZeroDivisionError, IndexError, MemoryError])
def test_a_step_in_which_a_layer_raises_is_no_step(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it raises; a step whose update was made is one."""
    trainer, data = classifier(check_every=0), examples()
    batch = data.input[:8], data.target[:8]
    trainer.train_step(*batch)
    for owner, method in ((Linear, "forward"), (CrossEntropyLoss, "backward"), (SGD, "step")):
        with monkeypatch.context() as context:

            def raising(*_: object) -> None:
                raise error("said by a layer")

            context.setattr(owner, method, raising)
            with pytest.raises(error, match=r"^said by a layer$"):
                trainer.train_step(*batch)
        assert trainer.num_steps == trainer.optimizer.num_steps == 1
    assert trainer.train_step(*batch).number == 2


def test_an_epoch_takes_every_example_once_the_last_batch_smaller() -> None:
    steps = train(classifier(check_every=0))
    assert [step.number for step in steps] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [step.num_examples for step in steps] == 2 * [8, 8, 8, 6]
    assert [step.denominator for step in steps] == 2 * [8, 8, 8, 6]
    assert steps[-1].loss < steps[0].loss


@pytest.mark.parametrize("compiled", [False, True])
def test_batches_that_are_none_are_refused(compiled: bool) -> None:
    trainer = classifier(check_every=0, compiled=compiled)
    for batch_size, first, words in ((0, 0, "batch_size must be at least 1, not 0"),
                                     (-1, 0, "batch_size must be at least 1, not -1"),
                                     (8, -1, "first must be at least 0, not -1")):
        with pytest.raises(ValueError, match=f"^{words}$"):
            next(trainer.epoch(examples(), batch_size, seed=0, epoch=0, first=first))


def test_the_schedule_counts_from_the_optimizers_own_lr() -> None:
    trainer = classifier(lr_scheduler=StepLR(2, 0.1))
    lrs = []
    for epoch in range(5):
        list(trainer.epoch(examples(), BATCH, seed=0, epoch=epoch))
        lrs.append(trainer.optimizer.lr)
    assert lrs == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.001], rel=1e-15)


def test_each_group_follows_the_schedule_from_its_own_lr() -> None:
    model = Sequential(Linear(2, 4), dtype="float64")
    optimizer = SGD(model, lr=0.1, groups=[{"parameters": "*.bias", "lr": 0.4}])
    trainer = Trainer(model, CrossEntropyLoss(), optimizer, lr_scheduler=StepLR(2, 0.5))
    lrs = []
    for epoch in range(4):
        list(trainer.epoch(examples(), BATCH, seed=0, epoch=epoch))
        lrs.append([member.lr for member in optimizer.members])
    assert lrs == [[0.1, 0.4], [0.1, 0.4], [0.05, 0.2], [0.05, 0.2]]


@pytest.mark.parametrize("every", [1, 3])
def test_a_schedule_may_count_steps(every: int) -> None:
    trainer = classifier(lr_scheduler=StepLR(3, 0.5), lr_step="step", check_every=every)
    lrs = []
    for epoch in range(2):
        for _ in trainer.epoch(examples(), BATCH, seed=0, epoch=epoch):
            lrs.append(trainer.optimizer.lr)
    assert lrs == [0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025]


def test_a_schedule_sees_the_losses_that_it_is_shown() -> None:
    trainer = classifier(lr_scheduler=ReduceLROnPlateau(patience=1, factor=0.5))
    lrs = []
    for epoch, loss in enumerate([3.0, 2.0, 2.0, 2.5, 1.0, 1.0]):
        list(trainer.epoch(examples(), BATCH, seed=0, epoch=epoch))
        lrs.append(trainer.optimizer.lr)
        trainer.observe(loss)
    assert lrs == [0.1, 0.1, 0.1, 0.1, 0.05, 0.05]


def test_clipping_bounds_the_gradient() -> None:
    trainer = classifier(clip_grad_norm=0.01)
    train(trainer, 1)
    assert np.linalg.norm(trainer.model.grad_arena) == pytest.approx(0.01, rel=1e-3)  # torch's 1e-6 beside the norm


@pytest.mark.parametrize("every", [0, 1])
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # a mean over nothing is what is tested
def test_a_batch_of_which_nothing_counts_weighs_nothing(every: int) -> None:
    trainer, data = classifier(check_every=every), examples(8)
    before = trainer.model.param_arena.copy()
    nothing = trainer.train_step(data.input, np.full(8, -100))
    assert math.isnan(nothing.loss)
    assert (nothing.denominator, nothing.check) == (0, None)
    np.testing.assert_array_equal(trainer.model.param_arena, before)  # without momentum and decay, it stays
    step = trainer.train_step(*data)
    assert (step.check is not None) == bool(every)
    assert trainer.mean_loss("", [(nothing.loss, 0), (step.loss, 8)]) == step.loss
    with pytest.raises(NotFiniteError, match=r"^the loss of nothing is nan at step 2$"):
        trainer.mean_loss("the loss of nothing", [(nothing.loss, 0)])


class TestNotFinite:
    """Overflow is an error of its own, checked or not."""

    @pytest.mark.parametrize("every", [0, 1])
    @pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
    def test_loss(self, every: int) -> None:
        model = Sequential(Linear(2, 1))
        trainer = Trainer(model, MSELoss(), SGD(model), check_every=every)
        with pytest.raises(NotFiniteError, match=r"^the loss is inf at step 1$"):
            trainer.train_step(np.ones((2, 2), np.float32), np.full((2, 1), 1e30, np.float32))

    @pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
    def test_the_last_step_of_an_epoch(self) -> None:
        # The loss and the gradient are finite: only the step overflows, and no later loss could show it.
        model = Sequential(Linear(2, 1))
        trainer = Trainer(model, MSELoss(), SGD(model, lr=1e38), check_every=0)
        data = Examples(np.full((2, 2), 1e3, np.float32), np.ones((2, 1), np.float32))
        found = r"^updated 0\.weight of 0 \(Linear\) holds inf at index \(0, 0\) at step 1$"
        with pytest.raises(NotFiniteError, match=found):
            list(trainer.epoch(data, 2, seed=0, epoch=0))

    @pytest.mark.parametrize("loss", [MSELoss(), MSELoss("sum")])
    def test_the_losses_of_an_epoch_together(self, loss: Loss) -> None:
        # A mean of finite losses is finite, a sum of them need not be.
        model = Sequential(Linear(2, 1), dtype="float64")
        trainer = Trainer(model, loss, SGD(model), check_every=0)
        batches = 3 * [(1.5e308, 2)]
        if loss.reduction == "mean":
            assert trainer.mean_loss("the training loss", batches) == pytest.approx(1.5e308)
        else:
            with pytest.raises(NotFiniteError, match=r"^the training loss is inf at step 0$"):
                trainer.mean_loss("the training loss", batches)


class TestSettings:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"check_every": -1}, "check_every must be at least 0, not -1"),
            ({"check_memory": -1}, "check_memory must be at least 0, not -1"),
            ({"check_threads": 0}, "check_threads must be at least 1, not 0"),
            ({"clip_grad_norm": 0.0}, "clip_grad_norm must be above 0, not 0.0"),
            ({"clip_grad_norm": math.nan}, "clip_grad_norm must be above 0, not nan"),
            ({"lr_step": "batch"}, "lr_step must be epoch or step, not batch"),
            (
                {"lr_step": "step", "lr_scheduler": ReduceLROnPlateau()},
                "lr_step must be epoch with ReduceLROnPlateau: a validation loss comes once an epoch",
            ),
        ],
    )
    def test_out_of_range(self, settings: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=f"^{message}$"):
            classifier(**settings)

    @pytest.mark.parametrize(
        ("settings", "error", "message"),
        [
            ({"blas": "foo"}, ValueError, "blas must be numpy, scipy, mkl or None, not 'foo'"),
            ({"threads": "1"}, TypeError, "threads must be an integer, not '1'"),
            ({"loop_threads": 1.0}, TypeError, "loop_threads must be an integer, not 1.0"),
            ({"check_threads": True}, TypeError, "check_threads must be an integer, not True"),
            ({"check_memory": True}, TypeError, "check_memory must be an integer, not True"),
            ({"check_every": False}, TypeError, "check_every must be an integer, not False"),
            ({"clip_grad_value": True}, TypeError, "clip_grad_value must be a number, not True"),
            ({"clip_grad_norm": "1"}, TypeError, "clip_grad_norm must be a number, not '1'"),
            ({"lr_scheduler": 5}, TypeError, "lr_scheduler must be a Scheduler, not 5"),
            ({"slicing": 2}, TypeError, "slicing must be a Slicing, not 2"),
            ({"compiled": "yes"}, TypeError, "compiled must be True or False, not 'yes'"),
            ({"threads": 10**6}, ConfigError, r"threads must be 1 to \d+, the cores that are free.*"),
            ({"check_memory": 10**18}, ValueError, r"check_memory is 1,0{3}[,0]+ bytes, and this machine has .* GB"),
        ],
    )
    def test_of_another_kind(self, settings: dict[str, Any], error: type[Exception], message: str) -> None:
        given: dict[str, Any] = {"compiled": True} | settings
        with pytest.raises(error, match=f"^{message}$"):
            classifier(**given)

    def test_the_optimizer_of_another_model(self) -> None:
        model, other = Sequential(Linear(2, 1)), Sequential(Linear(2, 1))
        with pytest.raises(ValueError, match="another model"):
            Trainer(model, MSELoss(), SGD(other))

    def test_a_loss_with_a_setting_beyond_what_the_dtype_can_hold(self) -> None:
        model = Sequential(Linear(2, 1))
        with pytest.raises(ValueError, match=r"^SmoothL1Loss: beta 1e\+300 is beyond what float32 can hold$"):
            Trainer(model, SmoothL1Loss(beta=1e300), SGD(model))


@pytest.mark.parametrize("every", [1, 2])
def test_epochs_may_be_run_again(every: int) -> None:
    """A schedule follows the epoch that is asked for, and torch's goes back with it."""
    trainer = classifier(lr_scheduler=StepLR(1, 0.5), check_every=every)
    for _ in range(2):
        train(trainer)
    assert trainer.num_steps > 4


@pytest.mark.parametrize("num_slices", [1, 2])
@pytest.mark.parametrize("every", [0, 1])
def test_a_step_of_its_own_is_not_recorded(every: int, num_slices: int) -> None:
    """After a checked one: it moves what a new trainer's does, and nothing where its loss isn't finite."""
    model, new = (Sequential(Linear(2, 1), seed=1, dtype="float64") for _ in range(2))
    trainer, another = (
        Trainer(of, MSELoss(), SGD(of, lr=0.1), check_every=every, slicing=Slicing(num_slices)) for of in (model, new)
    )
    input, target = np.eye(2), np.ones((2, 1))
    trainer.train_step(input, target)
    new.param_arena[...] = model.param_arena
    assert trainer.step(2 * input, target) == another.step(2 * input, target)
    assert_equal(model.param_arena, new.param_arena)
    before = model.param_arena.copy()
    with np.errstate(all="ignore"), pytest.raises(NotFiniteError, match=r"0\.output of 0"):
        trainer.step(np.full((2, 2), np.inf), target)
    assert_equal(model.param_arena, before)
