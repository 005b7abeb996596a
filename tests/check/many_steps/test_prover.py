"""Steps that wait for their proof: the one that is wrong is named, and all stands as it was after that step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from nets import break_gradient, replace_method
from proving import BATCH, group_size, points, prover_of, trained, trainer_of
from slow_cases import crossed

from nn_manual import (
    GELU,
    AdamW,
    BatchNorm1d,
    GradientMismatch,
    LayerNorm,
    Linear,
    MSELoss,
    NotFiniteError,
    Residual,
    Sequential,
    Tanh,
    Trainer,
    clip_grad_norm,
)
from nn_manual.arrays import Array
from nn_manual.check.judge.step_check import StepCheck
from nn_manual.check.many_steps import step_group
from nn_manual.check.many_steps.one_layer import CannotStack
from nn_manual.check.many_steps.ring import Ring
from nn_manual.check.many_steps.stacked_steps import StackedSteps
from nn_manual.data import Examples, batches
from nn_manual.optim import clipping

NUM_STEPS = 12


def model() -> Sequential:
    composite = Residual(Linear(4, 4), Tanh())
    return Sequential(Linear(3, 4), BatchNorm1d(4), composite, Tanh(), Linear(4, 3), seed=1)


class When:
    """Says which calls are wrong: those from a step on, of that step alone, or the first one of that step."""

    def __init__(self, trainer: Trainer, step: int, how: str) -> None:
        self.trainer, self.step, self.how, self.num_wrong = trainer, step, how, 0

    def __call__(self) -> bool:
        number = self.trainer.model.num_steps
        is_wrong = number >= self.step if self.how == "from then on" else number == self.step
        is_wrong = is_wrong and not (self.how == "once" and self.num_wrong)
        self.num_wrong += is_wrong
        return is_wrong


def wrong_weight(trainer: Trainer, when: When, _: pytest.MonkeyPatch) -> None:
    break_gradient(trainer.model.layers[4], "grad_weight", lambda grad: grad * np.float32(1.01 if when() else 1))


def wrong_wiring(trainer: Trainer, when: When, _: pytest.MonkeyPatch) -> None:
    def backward(right: Any, layer: Any, saved: Any, grad_output: Any) -> Any:
        grad_input = right(layer, saved, grad_output)
        return grad_input - grad_output if when() else grad_input

    replace_method(trainer.model.layers[2], "backward", backward)


def wrong_update(trainer: Trainer, when: When, _: pytest.MonkeyPatch) -> None:
    def step(right: Any, optimizer: Any) -> None:
        right(optimizer)
        if when():
            optimizer.vectors["exp_avg"][3] *= np.float32(1.01)

    replace_method(trainer.optimizer, "step", step)


def wrong_clipping(_: Trainer, when: When, monkeypatch: pytest.MonkeyPatch) -> None:
    def clip(grad: Array, max_norm: float) -> None:
        clip_grad_norm(grad, 1.01 * max_norm if when() else max_norm)

    monkeypatch.setattr(clipping, "clip_grad_norm", clip)


def wrong_buffer(trainer: Trainer, when: When, _: pytest.MonkeyPatch) -> None:
    def update_buffers(right: Any, layer: Any, saved: Any) -> None:
        right(layer, saved)
        if when():
            layer.buffer.running_mean += np.float32(0.01)

    replace_method(trainer.model.layers[1], "update_buffers", update_buffers)


FAULTS: dict[str, Callable[[Trainer, When, pytest.MonkeyPatch], None]] = {
    "wrong first in 4 (Linear): 4.grad_weight": wrong_weight,
    "wrong first in 2 (Residual): 2.grad_input": wrong_wiring,
    "wrong first in optimizer: 0.weight.exp_avg": wrong_update,
    "wrong first in clip_grad_norm: clipped gradient": wrong_clipping,
    "wrong first in 1 (BatchNorm1d): 1.running_mean": wrong_buffer,
}


class End(NamedTuple):
    """What a mismatch leaves behind."""

    report: str
    step: int
    arrays: list[list[float]]
    batch: list[list[float]]


def end_of(monkeypatch: pytest.MonkeyPatch, words: str, step: int, how: str, memory: int) -> End:
    """Of a training with a fault that begins at a step."""
    trainer = trainer_of(model(), AdamW, memory=memory, clip_grad_norm=0.05)
    with monkeypatch.context() as patch:
        when = When(trainer, step, how)
        FAULTS[words](trainer, when, patch)
        with pytest.raises(GradientMismatch) as raised:
            trained(trainer, points(NUM_STEPS))
    assert when.num_wrong >= 1
    assert trainer.num_steps == trainer.model.num_steps == trainer.optimizer.num_steps == step
    arrays = [trainer.model.param_arena, *trainer.optimizer.vectors.values(), *vars(trainer.model.buffer).values()]
    assert raised.value.batch is not None
    input, target = raised.value.batch
    return End(
        str(raised.value.report),
        trainer.num_steps,
        [array.tolist() for array in arrays],
        [input.tolist(), target.tolist()],
    )


#: How long a fault lasts: each beside each fault, and beside each of the steps in which it begins.
HOW_LONG = ["from then on", "in that step", "once"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "step", "how"),
    [
        (words, step, HOW_LONG[(i + j) % len(HOW_LONG)])
        for i, words in enumerate(FAULTS)
        for j, step in enumerate([1, 2, 5, NUM_STEPS])
    ],
)
def test_a_fault_that_begins_at_a_step(monkeypatch: pytest.MonkeyPatch, words: str, step: int, how: str) -> None:
    """Its end is that of a training whose steps are proven one by one, in groups of any size."""
    ends = [end_of(monkeypatch, words, step, how, memory=0)]
    for size in (1, 3, 64):
        group_size(monkeypatch, size)
        ends.append(end_of(monkeypatch, words, step, how, memory=64_000_000))
    assert words in ends[0].report
    batch = list(batches(points(NUM_STEPS), BATCH, 0, 0))[step - 1]
    assert ends[0].batch == [array.tolist() for array in batch]
    for end in ends[1:]:
        assert end == ends[0]


@pytest.mark.parametrize("number", [np.nan, np.inf])
@pytest.mark.parametrize(("step", "every"), crossed([1, 2, 6], [1, 2]))
def test_numbers_that_are_not_finite(number: float, step: int, every: int) -> None:
    """They are found in the same step, in the same words, as where steps are proven one by one."""
    ends = []
    for memory in (0, 64_000_000):
        data = points(NUM_STEPS)
        order = list(batches(Examples(np.arange(len(data.input)), data.target), BATCH, 0, 0))
        data.input[order[step - 1][0][0]] = number
        trainer = trainer_of(model(), memory=memory, check_every=every)
        with pytest.raises(NotFiniteError) as raised, np.errstate(invalid="ignore"):
            trained(trainer, data)
        ends.append((str(raised.value), trainer.num_steps))
    assert ends[0] == ends[1]
    assert ends[0][1] == step


def test_what_was_wrong_before_comes_before_a_number_that_is_not_finite() -> None:
    """Step 6 is wrong and waits when step 7, which isn't checked, has none."""
    for memory in (0, 64_000_000):
        trainer = trainer_of(model(), memory=memory, check_every=3)

        def spoilt(grad: Array, trainer: Trainer = trainer) -> Array:
            return grad * np.float32({6: 1.01, 7: np.nan}.get(trainer.model.num_steps, 1))

        break_gradient(trainer.model.layers[4], "grad_weight", spoilt)
        with pytest.raises(GradientMismatch, match=r"4 \(Linear\): 4\.grad_weight"):
            trained(trainer, points(NUM_STEPS))
        assert trainer.num_steps == 6


def test_a_step_waits_until_the_memory_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    group_size(monkeypatch, 3)
    trainer = trainer_of(model())
    numbers, checks = [], list[StepCheck]()
    for step in trainer.epoch(points(8), BATCH, seed=0, epoch=0):
        assert step.check is not None
        checks.append(step.check)
        numbers.append((prover_of(trainer).numbers.copy(), sum(check.proven for check in checks)))
    assert [len(waiting) for waiting, _ in numbers] == [0, 1, 0, 1, 2, 0, 1, 2]  # the first has a row, too
    assert [num_proven for _, num_proven in numbers] == [1, 1, 3, 3, 3, 6, 6, 6]
    assert numbers[4][0] == [4, 5]
    assert all(check.proven for check in checks)


def test_where_too_few_steps_fit_each_is_proven_at_once() -> None:
    trainer = trainer_of(model(), memory=10_000)
    steps = trained(trainer, points(5))
    assert all(step.check is not None and step.check.proven for step in steps)
    assert prover_of(trainer).groups.reason == "fewer than 8 steps, of 0.00603 MB each, fit into 0.01 MB"


def test_a_reference_with_branches_is_proven_one_by_one() -> None:
    """torch.vmap doesn't know a branch on values."""

    class Halved(Tanh):
        def reference(self, input: Any) -> Any:
            return input.tanh() if input.sum() > 0 else -(-input).tanh()

    trainer = trainer_of(Sequential(Linear(3, 4), Halved(), Linear(4, 3)))
    assert all(step.check is not None and step.check.proven for step in trained(trainer, points(5)))
    reason = prover_of(trainer).groups.reason
    assert reason.startswith("1 (Halved) under torch.vmap raised RuntimeError: vmap: It looks like")


def test_steps_that_wait_when_they_cannot_be_stacked_are_proven_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first could be."""
    right, calls = StackedSteps.differentiate, list[int]()

    def fails(stacked: StackedSteps, ring: Any, rows: slice) -> Any:
        calls.append(rows.start)
        if len(calls) > 1:
            raise CannotStack("not today")
        return right(stacked, ring, rows)

    monkeypatch.setattr(StackedSteps, "differentiate", fails)
    trainer = trainer_of(model())
    steps = trained(trainer, points(5))
    assert calls == [0, 0]
    assert prover_of(trainer).groups.reason == "not today"
    alone = trained(trainer_of(model(), memory=0), points(5))
    for step, other in zip(steps[1:], alone[1:], strict=True):
        assert step.check is not None
        assert other.check is not None
        assert step.check.absolute.tolist() == other.check.absolute.tolist()


@pytest.mark.parametrize("is_moved", [False, True])
def test_the_place_in_the_epoch_decides_the_row(*, is_moved: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On some processors the last bits of torch's sums depend on where in memory they lie. Here they do on all."""
    right = StackedSteps.differentiate

    def by_row(stacked: StackedSteps, ring: Ring, rows: slice) -> Any:
        """torch's values, those of a row 0 to 3 units in their last place larger: as many as its place modulo 4."""
        values = right(stacked, ring, rows)
        units = torch.arange(rows.start, rows.stop) % 4
        for name, value in values.items():
            factor = 1 + torch.finfo(value.dtype).eps * units.to(value.dtype)
            values[name] = value * factor.reshape(-1, *[1] * (value.ndim - 1))
        return values

    monkeypatch.setattr(StackedSteps, "differentiate", by_row)

    def found(num_together: int) -> list[list[float]]:
        trainer = trainer_of(Sequential(Linear(3, 5), GELU(), Linear(5, 20), LayerNorm(20), Linear(20, 3)))
        checks = []
        for i, step in enumerate(trainer.epoch(points(60), batch_size=5, seed=0, epoch=0), 1):
            checks.append(step.check)
            if i % num_together == 0:
                trainer.flush()
                if is_moved:
                    prover_of(trainer).begin(0, 12)
        return [check.absolute.tolist() for check in checks if check is not None]

    assert (found(1) == found(3) == found(64)) != is_moved


def test_a_right_step_of_another_form_passes_wherever_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows beside the steps that wait are overwritten when they are proven."""
    end = Ring.end

    def of_most(ring: Ring, i: int, recorded: Any) -> bool:
        return i not in (5, 9) and end(ring, i, recorded)

    monkeypatch.setattr(Ring, "end", of_most)
    net = Sequential(Linear(3, 3), seed=0)
    trainer = Trainer(net, MSELoss(), AdamW(net, lr=0.05))
    assert all(step.check is not None and step.check.proven for step in trained(trainer, points(12)))


def test_each_shape_has_its_own_group() -> None:
    """The last batch of an epoch is smaller."""
    trainer = trainer_of(model())
    generator = np.random.default_rng(0)
    data = Examples(*(generator.standard_normal((18, 3)).astype("float32") for _ in range(2)))
    steps = [step for epoch in range(3) for step in trainer.epoch(data, BATCH, seed=0, epoch=epoch)]
    assert [step.num_examples for step in steps] == 3 * [4, 4, 4, 4, 2]
    assert all(step.check is not None and step.check.proven for step in steps)
    assert len(prover_of(trainer).groups._by_shape) == 2


def test_a_large_model_has_its_updates_proven_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_group, "LARGE_UPDATE", 1 << 14)
    wide = Sequential(Linear(3, 150), Tanh(), Linear(150, 150), Tanh(), Linear(150, 3), seed=0)
    trainer = Trainer(wide, MSELoss(), AdamW(wide, lr=0.01), clip_grad_norm=0.1)
    steps = trained(trainer, points(6))
    group = next(iter(prover_of(trainer).groups._by_shape.values()))
    assert group is not None
    assert not group.proves_updates
    for step in steps:
        assert step.check is not None
        assert len(step.check.absolute) == len(step.check.tensors)
    wrong_update(trainer, When(trainer, 7, "once"), monkeypatch)
    with pytest.raises(GradientMismatch, match=r"wrong first in optimizer: 0\.weight\.exp_avg"):
        trained(trainer, points(6))
    assert trainer.num_steps == 7


def test_a_training_that_goes_on_counts_the_steps_of_a_zero_once() -> None:
    """The first step is compared alone and with others: it is one step for what is known of gradients that are zero."""
    first = trainer_of(model())
    trained(first, points(4))
    assert first.checker is not None
    (known,) = first.checker.state()["zeros"]
    second = trainer_of(model())
    assert second.checker is not None
    second.checker.load_state(first.checker.state())
    trained(second, points(3))
    (later,) = second.checker.state()["zeros"]
    assert (known["steps"], later["steps"]) == (4, 7)
