"""Steps that put their own batches together give the same bits as steps that are given these batches."""

from __future__ import annotations

import numpy as np
import pytest

from nn_manual import SGD, Embedding, Linear, MSELoss, Sequential, Tanh, Trainer
from nn_manual.arrays import Array
from nn_manual.compile.compile_step import compile_step
from nn_manual.compile.gathering import Rows
from nn_manual.compile.plan import Plan
from nn_manual.layers import Layer

GENERATOR = np.random.default_rng(0)
NUMBERS = GENERATOR.standard_normal((50, 40))


def new_plan(examples: Array) -> Plan:
    """The plan of a small net, for batches of 4 of these examples."""
    first: list[Layer] = [Linear(examples.shape[-1], 3)]
    if examples.dtype.kind == "i":
        first = [Embedding(10, 6), Linear(6, 3)]
    dtype = "float64" if examples.dtype == np.float64 else "float32"
    model = Sequential(*first, Tanh(), seed=0, dtype=dtype)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1), check_every=0)
    batch = np.ascontiguousarray(examples[:4])
    return compile_step(model, trainer.loss, trainer.optimizer, batch, model(batch), report=lambda _: None)


EXAMPLES: dict[str, Array] = {
    "float32": NUMBERS[:, :7].astype(np.float32),
    "float64": NUMBERS[:, :7].copy(),
    "one column": NUMBERS[:, :1].astype(np.float32),
    "long rows": NUMBERS.astype(np.float32),
    "rows with a gap": NUMBERS.astype(np.float32)[:, 3:10],
    "every other, from the last on": NUMBERS[:, :7].astype(np.float32)[::-2],
    "windows that overlap": np.lib.stride_tricks.sliding_window_view(GENERATOR.integers(0, 10, 60), 5),
    "images": NUMBERS.astype(np.float32).reshape(50, 5, 8),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_bytes_are_those_of_the_same_rows(kind: str) -> None:
    """It alone gathers rows in compiled epochs of every kind."""
    examples = EXAMPLES[kind]
    order = GENERATOR.permutation(len(examples))[:20].reshape(5, 4)
    inputs = np.ascontiguousarray(examples[order])
    ours, theirs = new_plan(examples), new_plan(examples)
    targets = np.stack([ours.model(input) + 1 for input in inputs])
    assert ours.may_gather(examples)
    lrs = {name: np.full(5, 0.1, ours.model.dtype) for name in ours.of_steps if name.startswith("0.")}
    done, expected = ours.run(Rows(examples, order), targets, lrs), theirs.run(inputs, targets, lrs)
    assert done.num_steps == expected.num_steps == 5
    np.testing.assert_array_equal(done.losses, expected.losses)
    np.testing.assert_array_equal(ours.model.param_arena, theirs.model.param_arena)
    assert np.abs(np.diff(done.losses)).min() > 0


def test_rows_that_dont_lie_in_one_piece_are_given() -> None:
    examples = EXAMPLES["float32"]
    plan = new_plan(examples)
    assert not plan.may_gather(np.asfortranarray(examples))
    assert not plan.may_gather(examples[:, :6])
    assert not plan.may_gather(examples.astype(np.float64))
