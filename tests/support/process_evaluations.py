"""What the processes of a case run that evaluates, or is refused, without a config."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from nn_manual import SGD, BatchNorm1d, CrossEntropyLoss, Linear, ReLU, Sequential, Trainer
from nn_manual.arrays import Array
from nn_manual.data import Examples
from nn_manual.errors import GradientMismatch
from nn_manual.step.slices.cut import Slicing
from nn_manual.step.slices.process_group import ProcessGroup
from nn_manual.step.slices.torchrun import processes
from nn_manual.trainer import evaluation_slices as slices

#: Examples that are evaluated at a time: of 24, the third process has none.
SIZE = 16


def evaluate(directory: Path, rank: int) -> int:
    """What all processes evaluate together, and what each does alone."""
    found, confusions = list[Array](), list[Array]()
    with processes() as group:
        group.connect()
        for num_examples, slicing in itertools.product((24, 100), (Slicing(group.size, group), Slicing(group.size))):
            trainer, data = _trainer(slicing), _examples(num_examples)
            confusion = np.eye(3, dtype=np.int64)  # what was there before stays
            found.append(np.array(trainer.evaluate(data, confusion)))
            confusions.append(confusion)
    np.savez(f"{directory}.{rank}.npz", found=np.array(found), confusions=np.array(confusions))
    return 0


def refuse(directory: Path, rank: int) -> int:
    """What each process says of what is refused; then all go on."""
    good, bad = _examples(24), _examples(24)
    bad.target[17] = 3
    two = bad.input[16:18], bad.target[16:18]  # the third process has no slice of them
    said = []
    with processes() as group:
        group.connect()
        for sync_batch_norm in (False, True):
            trainer = _trainer(Slicing(group.size, group, sync_batch_norm=sync_batch_norm))
            said += [
                _said(group, trainer.evaluate, *each)
                for each in ((bad, None), (good, np.zeros((2, 2), np.int64)))
            ]
            said += [
                _said(group, trainer.train_step, *each)
                for each in (two, (two[0][:, :5], good.target[:2]), (two[0].astype(np.float64), good.target[:2]))
            ]
            # One of the processes has a slice of one example, of which batch normalization takes no statistics.
            trainer = _trainer(trainer.slicing, with_norm=True)
            said.append(_said(group, trainer.train_step, good.input[:5], good.target[:5]))
            loss = trainer.train_step(good.input[:6], good.target[:6]).loss
            assert group.gather(loss) == [loss] * group.size
    Path(f"{directory}.{rank}.json").write_text(json.dumps(said))
    return 0


def _said(group: ProcessGroup, refuses: Callable[..., object], *given: object) -> str:
    words = "nothing"
    try:
        refuses(*given)
    except (TypeError, ValueError) as error:
        words = f"{type(error).__name__}: {error}"
    assert group.gather(group.rank) == [*range(group.size)]
    return words


def evaluate_with_a_wrong_layer(directory: Path, rank: int) -> int:
    """What each process says where a layer of process 1 alone is wrong in evaluation."""
    data = _examples(24)

    def wrong(layer: ReLU, input: Array) -> Array:
        output: Array = layer.forward(input)[0] * np.float32(2 if rank == 1 else 1)
        return output

    ReLU.infer = wrong  # type: ignore[assignment, method-assign]  # the first argument is called self there
    with processes() as group:
        group.connect()
        trainer = _trainer(Slicing(group.size, group), check_every=1)
        trainer.train_step(data.input[:2], data.target[:2])  # of which the third process has no slice
        said = ""
        try:
            trainer.evaluate(data)
        except GradientMismatch as mismatch:
            said = str(mismatch)
        assert group.gather(rank) == [*range(group.size)]
    Path(f"{directory}.{rank}.txt").write_text(said)
    return 0


def _trainer(slicing: Slicing, check_every: int = 0, *, with_norm: bool = False) -> Trainer:
    norms = [BatchNorm1d(8)] if slicing.sync_batch_norm or with_norm else []
    model = Sequential(Linear(6, 8), *norms, ReLU(), Linear(8, 3), seed=1)
    slices.EVALUATION_BYTES = SIZE * (8 + 8 * len(norms) + 8 + 3) * model.dtype.itemsize
    return Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.1), check_every=check_every, slicing=slicing)


def _examples(num_examples: int) -> Examples:
    rng = np.random.default_rng(0)
    return Examples(rng.standard_normal((num_examples, 6), np.float32), rng.integers(0, 3, num_examples))
