"""Steps proven at once: what is found of clipping and of the update, and what the judge asks of a step."""

from __future__ import annotations

import numpy as np
import pytest
from proving import points, prover_of, trained, trainer_of

from nn_manual import SGD, AdamW, Linear, Residual, Sequential, Tanh, Trainer
from nn_manual.check.many_steps.step_group import StepGroup


def waiting(trainer: Trainer, num_steps: int) -> StepGroup:
    """The group of a trainer, in which so many steps wait."""
    trained(trainer, points(1))
    for step in trainer.epoch(points(num_steps + 1), 4, seed=0, epoch=0):
        if step.number == num_steps + 1:
            break
    (group,) = prover_of(trainer).groups._by_shape.values()
    assert group is not None
    return group


def model() -> Sequential:
    return Sequential(Linear(3, 4), Residual(Linear(4, 4), Tanh()), Linear(4, 3), seed=1)


@pytest.mark.parametrize(("num_steps", "threads"), [(5, 1), (20, 3)])
def test_what_a_step_is_off_by_shows_in_its_row_and_column_alone(num_steps: int, threads: int) -> None:
    trainer = trainer_of(model(), AdamW, clip_grad_norm=0.1, check_threads=threads)
    group = waiting(trainer, num_steps)
    names = [quantity.name for quantity in group.plan.quantities]
    right, _ = group.found(0, num_steps)
    assert right.shape == (num_steps, len(names))
    assert len(group._comparisons) == threads
    assert np.all(right < 1e-5)
    ring = group.ring
    assert ring.after is not None
    spoilt = {
        "2.grad_bias": ring.tensors["2.grad_bias"][2],
        "0.weight.exp_avg": ring.after.vectors["exp_avg"][2, :12],
        "updated 2.bias": ring.after.param[2, -3:],
    }
    for name, tensor in spoilt.items():
        kept = tensor.copy()
        tensor += np.float32(0.5)
        absolute, _ = group.found(0, num_steps)
        wrong = [(step, names[i]) for step, i in zip(*(absolute > 0.4).nonzero(), strict=True)]
        assert wrong == [(2, name)], name
        tensor[...] = kept
    trainer.flush()


def test_an_update_that_lands_near_zero_is_measured_by_where_it_came_from() -> None:
    """As the checker has it: 1 - 0.999999 has the rounding errors of 1."""
    trainer = trainer_of(model(), SGD, clip_grad_norm=0.1)
    group = waiting(trainer, 3)
    ring, i = group.ring, [quantity.name for quantity in group.plan.quantities].index("updated 2.bias")
    assert ring.after is not None
    assert ring.grad is not None
    bias = slice(-3, None)
    ring.before.param[1, bias], ring.scheduled[1] = 1, (ring.scheduled[1][0]._replace(lr=1.0),)
    ring.grad[1, bias] = 1 - 1e-6
    ring.after.param[1, bias] = ring.before.param[1, bias] - ring.grad[1, bias] + np.float32(1e-7)
    absolute, scale = group.found(0, 3)
    assert scale[1, i] == 1
    assert scale[0, i] < 1
    assert absolute[1, i] == pytest.approx(1e-7, rel=0.2)


def test_the_largest_grad_output_is_that_of_the_layer() -> None:
    group = waiting(trainer_of(model()), 4)
    tensors, names = group.ring.tensors, [quantity.name for quantity in group.plan.quantities]
    for name, source in {
        "2.grad_weight": "loss.grad_prediction",
        "0.grad_bias": "1.grad_input",
        "1.0.grad_weight": "1.1.grad_input",
        "1.grad_input": "2.grad_input",
    }.items():
        for step in range(4):
            found = group.largest_grad_output(step, names.index(name))
            assert found == np.abs(tensors[source][step]).max() > 0
    assert group.largest_grad_output(0, names.index("loss")) == 0
