"""The memory in which steps wait: what of a step is kept, and how many steps have room."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nets import replace_method
from proving import points, prover_of, trained, trainer_of

from nn_manual import AdamW, BatchNorm1d, Dropout, GradientMismatch, Linear, Sequential, Tanh, Trainer
from nn_manual.check.many_steps import ring as ring_module
from nn_manual.check.many_steps.ring import Ring
from nn_manual.check.many_steps.ring_memory import RingMemory
from nn_manual.check.step.proof import ours_of
from nn_manual.check.twin.optimizers import state_of
from nn_manual.data import batches


def trainer() -> Trainer:
    layers = Linear(3, 4), BatchNorm1d(4), Dropout(0.3), Tanh(), Linear(4, 3)
    return trainer_of(Sequential(*layers, seed=1), AdamW, clip_grad_norm=0.1)


def ring_of(trainer: Trainer) -> Ring:
    (group,) = prover_of(trainer).groups._by_shape.values()
    assert group is not None
    return group.ring


def test_each_step_is_kept_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the steps after it write."""
    made = trainer()
    trained(made, points(1))
    seen: list[dict[str, Any]] = []
    end = Ring.end

    def noted(ring: Ring, i: int, recorded: Any) -> bool:
        kept = end(ring, i, recorded)
        names = [quantity.name for quantity in (*ring.plan.forward, *ring.plan.backward)]
        state = state_of(made.optimizer)
        seen.append(
            {
                "tensors": {name: np.array(ours_of(ring.plan, recorded)[name]) for name in names},
                "after": [vector.copy() for vector in state.all],
                "grad": made.model.grad_arena.copy(),
                "mask": made.model.layers[2].noise.mask.copy(),
                "mean": recorded.buffers_before["1.running_mean"].copy(),
                "lr": made.optimizer.lr,
                "number": made.num_steps,
            }
        )
        return kept

    monkeypatch.setattr(Ring, "end", noted)
    before = []
    for step in made.epoch(points(6), 4, seed=0, epoch=0):
        before.append([vector.copy() for vector in state_of(made.optimizer).all])
        made.optimizer.lr *= 0.9
        if step.number == 6:
            break
    ring = ring_of(made)
    assert len(seen) == 5
    for i, (kept, (input, target)) in enumerate(zip(seen, batches(points(6), 4, 0, 0), strict=False)):
        assert ring.tensors.keys() == kept["tensors"].keys()
        for name, array in kept["tensors"].items():
            assert np.array_equal(ring.tensors[name][i], array), name
        assert ring.after is not None
        assert ring.grad is not None
        for rows, vector in zip(ring.after.all, kept["after"], strict=True):
            assert np.array_equal(rows[i], vector)
        if i:
            for rows, vector in zip(ring.before.all, before[i - 1], strict=True):
                assert np.array_equal(rows[i], vector)
        assert np.array_equal(ring.grad[i], kept["grad"])
        assert np.array_equal(ring.given("input")[i], input)
        assert np.array_equal(ring.given("target")[i], target)
        assert np.array_equal(ring.given("2.noise.mask")[i], kept["mask"])
        assert np.array_equal(ring.given_before("1.running_mean")[i], kept["mean"])
        assert (ring.scheduled[i][0].lr, ring.num_updates[i], ring.numbers[i]) == (kept["lr"], i + 1, i + 2)
    made.flush()


def test_the_batch_is_kept_as_it_was_before_the_step_could_write_into_it() -> None:
    """The first layer doubles its input and the loss its target, before what they compute from it."""

    def doubling(right: Any, component: Any, *arguments: Any) -> Any:
        arguments[-1][...] *= 2 if made.num_steps == 3 else 1
        return right(component, *arguments)

    for name in ("input", "target"):
        made = trainer()
        replace_method({"input": made.model.layers[0], "target": made.loss}[name], "forward", doubling)
        with pytest.raises(GradientMismatch) as raised:
            trained(made, points(6))
        assert made.num_steps == 3
        batch = list(batches(points(6), 4, 0, 0))[2]
        assert raised.value.batch is not None
        for kept, given in zip(raised.value.batch, batch, strict=True):
            np.testing.assert_array_equal(kept, given)


def test_as_many_steps_as_fit_in_multiples_of_what_torch_takes_at_once() -> None:
    """Outputs of 4 * 4 and 4 * 3 elements: 12 are no part of 32, 4 are, so 8 steps have no rest."""
    sizes = {}
    for memory in (64_000_000, 1_000_000, 100_000, 20_000):
        made = trainer_of(trainer().model, AdamW, memory=memory, clip_grad_norm=0.1)
        trained(made, points(1))
        group = prover_of(made).groups._by_shape[4, 3]
        sizes[memory] = group.ring.num_steps if group else 0
        if group:
            assert group.ring.multiple == 8
            assert group.ring.num_steps == min(256, memory // group.ring.num_bytes // 8 * 8)
    assert sizes[64_000_000] == ring_module.MOST_STEPS == 256
    assert 0 < sizes[100_000] < 256
    assert sizes[20_000] == 0


def trained_once() -> Trainer:
    made = trainer()
    trained(made, points(1))
    return made


def test_what_has_another_form_is_not_kept() -> None:
    made = trained_once()
    ring, recorded = ring_of(made), prover_of(made).checker.recorded
    assert ring.end(0, recorded)
    recorded.loss.target = np.zeros((4, 3))  # of another dtype
    assert not ring.end(0, recorded)
    recorded.loss.target = np.zeros((4, 2), np.float32)
    assert not ring.end(0, recorded)


def test_the_first_and_the_last_step_are_repeated_up_to_multiples() -> None:
    made = trained_once()
    left = list(zip(range(3), made.epoch(points(6), 4, seed=0, epoch=0), strict=False))
    assert len(left) == 3
    ring = ring_of(made)
    assert ring.padded(1, 3) == slice(0, 8)
    for rows in [*ring.tensors.values(), ring.given("input"), *ring.before.all]:
        assert not np.array_equal(rows[1], rows[2])
        for i, same in ((0, 1), *((i, 2) for i in range(3, 8))):
            assert np.array_equal(rows[i], rows[same])
    assert ring.num_updates[:8] == [2, 2, 3, 3, 3, 3, 3, 3]
    made.flush()




def test_no_more_memory_is_taken_than_an_epoch_needs() -> None:
    """In rows of 8 steps, as torch takes them. A longer epoch has new ones."""
    made = trainer()
    for num_steps, num_rows in ((5, 8), (3, 8), (20, 24)):
        trained(made, points(num_steps))
        groups = prover_of(made).groups
        ring = ring_of(made)
        assert (ring.num_steps, ring.num_rows, groups.most) == (256, num_rows, 256)
        assert groups._memory.num_bytes == ring.num_rows * ring._copied < ring.num_rows * ring.num_bytes


def test_a_shape_that_needs_more_memory_takes_it() -> None:
    """Then, as where an epoch has more steps, the other shapes have a first step again."""
    made = trainer()
    for batch_size, num_shapes in ((8, 1), (2, 1), (4, 1), (2, 2), (4, 2)):
        trained(made, points(8), batch_size)
        assert len(prover_of(made).groups._by_shape) == num_shapes


def test_who_gets_too_little_memory_learns_which_setting_takes_less(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise MemoryError("Unable to allocate 122. MiB")

    memory = RingMemory(128_000_000)
    monkeypatch.setattr(np, "empty", refused)
    with pytest.raises(MemoryError) as raised:
        memory.taken(1_000_000)
    assert raised.value.__notes__ == [
        "for the steps that are proven together: a smaller gradient_check.memory takes less"
    ]
