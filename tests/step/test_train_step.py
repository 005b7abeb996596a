"""Gradient accumulation on one process: what a batch in slices computes is what the whole batch does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from slow_cases import crossed

from nn_manual import (
    SGD,
    AdamW,
    BatchNorm1d,
    CrossEntropyLoss,
    Dropout,
    GradientMismatch,
    Linear,
    MSELoss,
    NotFiniteError,
    ReLU,
    Sequential,
    Trainer,
)
from nn_manual.arrays import Array
from nn_manual.step.slices.cut import BatchPart, Slicing, parts_of
from nn_manual.step.slices.gradient_sum import InOrder
from nn_manual.step.slices.sliced_batch import SlicedBatch
from nn_manual.step.train_step import TrainStep
from nn_manual.step.watch import Watch

RNG = np.random.default_rng(0)
INPUT, TARGET = RNG.normal(size=(50, 8)), RNG.integers(0, 5, 50)
TARGET[3:9] = -100


def trained(
    num_slices: int, *layers: Any, loss: Any = None, steps: int = 8, **settings: Any
) -> tuple[Trainer, list[float]]:
    """A trainer after some steps on one batch, and the losses."""
    layers = layers or (Linear(8, 16), ReLU(), Dropout(0.3), Linear(16, 5))
    model = Sequential(*layers, seed=1, dtype="float64")
    optimizer = AdamW(model, lr=0.01, weight_decay=0.1)
    loss = loss or CrossEntropyLoss(weight=[1, 2, 3, 4, 0.5])
    trainer = Trainer(model, loss, optimizer, slicing=Slicing(num_slices), **settings)
    return trainer, [trainer.train_step(INPUT, TARGET).loss for _ in range(steps)]


@pytest.mark.parametrize(
    ("num_slices", "settings"),
    crossed([2, 7, 50], [{}, {"clip_grad_norm": 0.1}, {"loss": CrossEntropyLoss("sum", 0.1)}]),
    ids=str,
)
@pytest.mark.parametrize("check_every", [0, 1])
def test_slices_train_as_the_whole_batch_does(num_slices: int, settings: dict[str, Any], check_every: int) -> None:
    """Dropout, weights of classes, ignored targets, sizes that differ: equal within the rounding of float64."""
    whole, losses = trained(1, check_every=0, **settings)
    sliced, losses_of_slices = trained(num_slices, check_every=check_every, **settings)
    np.testing.assert_allclose(losses_of_slices, losses, rtol=1e-12)
    np.testing.assert_allclose(sliced.model.param_arena, whole.model.param_arena, rtol=0, atol=1e-12)
    assert sliced.model.first_row == 0


def test_a_check_changes_no_bit() -> None:
    plain, checked = (
        trained(4, Linear(8, 6), BatchNorm1d(6), ReLU(), Linear(6, 5), check_every=every)[0] for every in (0, 1)
    )
    for name, array in plain.model.state_dict().items():
        assert np.array_equal(checked.model.state_dict()[name], array), name


def test_batch_norm_uses_its_slice_and_moves_its_buffers_slice_by_slice() -> None:
    trainer, _ = trained(2, BatchNorm1d(8), Linear(8, 5), check_every=0, steps=1)
    expected = np.zeros(8)
    for rows in (INPUT[:25], INPUT[25:]):
        expected = 0.9 * expected + 0.1 * rows.mean(axis=0)
    np.testing.assert_allclose(trainer.model.layers[0].buffer.running_mean, expected, atol=1e-15)
    assert trainer.model.layers[0].buffer.num_batches_tracked == 2


def test_more_slices_than_examples() -> None:
    few, _ = trained(60, check_every=1, steps=2)
    whole, _ = trained(1, check_every=0, steps=2)
    np.testing.assert_allclose(few.model.param_arena, whole.model.param_arena, atol=1e-13)


class FirstAgain(Watch):
    """It has the first slice made again, and ends the step."""

    def begin(self, parts: list[BatchPart], target: Array) -> None:  # noqa: ARG002 - as of every Watch
        self.parts = parts

    def settle(self, make_again: Callable[[BatchPart], object]) -> None:
        make_again(self.parts[0])
        raise NotFiniteError


def test_what_is_under_way_ends_before_a_slice_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum of the processes is written into the gradients, which the slice's are to be compared in."""
    model = Sequential(Linear(8, 5), dtype="float64")
    own = model, CrossEntropyLoss(), SGD(model, lr=0.1)
    step = TrainStep(*own, SlicedBatch(*own, Slicing(2)))
    events, run = list[Any](), step.runner.slice

    def run_slice(part: BatchPart, *arguments: Any) -> Any:
        events.append(part.number)
        return run(part, *arguments)

    monkeypatch.setattr(step.runner, "slice", run_slice)
    monkeypatch.setattr(InOrder, "finish", lambda *_: events.append("summed"))
    with pytest.raises(NotFiniteError):
        step(INPUT, TARGET, FirstAgain())
    assert events == [0, 1, "summed", 0]


def test_the_sum_is_made_in_the_order_of_the_slices() -> None:
    """1 + 2**-53 rounds to 1, twice; the other way round it is 1 + 2**-52."""
    model = Sequential(Linear(1, 1, bias=False), dtype="float64")
    total = InOrder(model)
    for values, expected in (([1, 2**-53, 2**-53], 1.0), ([2**-53, 2**-53, 1], 1 + 2**-52)):
        total.begin([BatchPart(i, slice(i, i + 1), 1, 1.0) for i in range(3)], 3, whole=False)
        for position, value in enumerate(values):
            model.grad_arena[...] = value
            total.part(position)(-1)
        total.finish(np.zeros(1))
        assert model.grad_arena[0] == expected


def test_a_checked_step_reports_slices_batch_sum_clipping_and_update() -> None:
    trainer, _ = trained(3, check_every=1, steps=1, clip_grad_norm=1.0)
    check = trainer.train_step(INPUT, TARGET).check
    assert check is not None
    names = check.tensors
    assert names.index("0.grad_weight") < names.index("batch.loss") < names.index("summed 0.weight")
    assert names.index("summed 3.bias") < names.index("clipped gradient") < names.index("0.weight.exp_avg")
    assert names[-1] == "updated 3.bias"
    assert check.severity.max() < 0.1


class Wrong(Linear):
    """A Linear whose gradient is wrong for a slice of 16 examples: the last of 50 in 3."""

    torch_class = "Linear"

    def backward_parameters(self, saved: Any, grad_output: Array) -> None:
        super().backward_parameters(saved, grad_output)
        if len(grad_output) == 16:
            self.grad.weight *= 1.01

    def backward(self, saved: Any, grad_output: Array) -> Array:
        grad_input = super().backward(saved, grad_output)
        self.backward_parameters(saved, grad_output)
        return grad_input


def test_a_wrong_slice_is_found_with_its_batch() -> None:
    with pytest.raises(GradientMismatch, match=r"wrong first in 2 \(Wrong\): 2.grad_weight") as caught:
        trained(3, Linear(8, 4), ReLU(), Wrong(4, 5), check_every=1)
    assert caught.value.batch is not None
    assert np.array_equal(caught.value.batch[0], INPUT[34:])
    assert caught.value.first_row == 34


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("average", "wrong first in sum over the slices: summed 0.weight"),
        ("lost", "wrong first in sum over the slices: summed 0.weight"),
        ("weight", "wrong first in batch: batch.loss"),
        ("order", r"summed 0.weight\[\d+, \d+\] is not their\s+sum in order, bit for bit"),
    ],
)
def test_a_wrong_sum_is_found(fault: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Averaged, without the second slice, of slices that weigh the same, one bit off."""
    add = InOrder.add

    def wrong(total: InOrder, position: int, where: slice) -> None:
        if fault == "lost" and position == 1:
            return
        add(total, position, where)
        if position == 2 and fault in ("average", "order"):
            total._grad[where] *= 1 / 3 if fault == "average" else 1 + 2**-52

    monkeypatch.setattr(InOrder, "add", wrong)
    if fault == "weight":
        parts = [part._replace(weight=1 / 3) for part in parts_of(CrossEntropyLoss(), TARGET, 3)]
        monkeypatch.setattr("nn_manual.step.slices.sliced_batch.parts_of", lambda *_: parts)
    with pytest.raises(GradientMismatch, match=message):
        trained(3, check_every=1)


def test_a_loss_that_is_not_finite_moves_nothing() -> None:
    model = Sequential(BatchNorm1d(2), Linear(2, 1), dtype="float64")
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1), check_every=0, slicing=Slicing(2))
    before = {name: array.copy() for name, array in model.state_dict().items()}
    target = np.array([[0.0], [1.0], [1e200], [2.0]])
    with np.errstate(over="ignore"), pytest.raises(NotFiniteError, match=r"the loss is inf at step 1"):
        trainer.train_step(RNG.normal(size=(4, 2)), target)
    for name, array in before.items():
        assert np.array_equal(model.state_dict()[name], array), name


def test_a_batch_of_which_nothing_counts_has_no_gradient() -> None:
    model = Sequential(Linear(8, 5), dtype="float64")
    trainer = Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.1), slicing=Slicing(2))
    step = trainer.train_step(INPUT, np.full(50, -100))
    assert np.isnan(step.loss)
    assert step.check is None
    assert not model.grad_arena.any()


def test_smoothed_targets_of_weight_0_are_no_step_in_slices() -> None:
    """A slice of them alone would lose its part. A step that is refused moves nothing."""
    model = Sequential(Linear(8, 5), dtype="float64")
    trainer = Trainer(
        model, CrossEntropyLoss("mean", 0.1, [1, 0, 1, 1, 1]), SGD(model, lr=0.1), check_every=0, slicing=Slicing(2)
    )
    with pytest.raises(ValueError, match=r"^CrossEntropyLoss with label_smoothing must give targets a weight above 0"):
        trainer.train_step(INPUT, np.repeat([0, 1], 25))
    assert trainer.num_steps == 0
    assert np.isfinite(trainer.train_step(INPUT, np.repeat([0, 2], 25)).loss)
