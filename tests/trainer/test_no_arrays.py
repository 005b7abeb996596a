"""What is no plain array is refused in the same words wherever a batch is taken, before a step begins."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from classifiers import classifier, examples

from nn_manual import CrossEntropyLoss, check_gradients
from nn_manual.data import Examples
from nn_manual.trainer.trainer import Trainer

#: Each takes a batch.
TAKEN_BY: dict[str, Callable[[Trainer, Any, Any], object]] = {
    "check_gradients": lambda trainer, *batch: check_gradients(trainer.model, CrossEntropyLoss(), *batch),
    "train_step": lambda trainer, *batch: trainer.train_step(*batch),
    "step": lambda trainer, *batch: trainer.step(*batch),
    "epoch": lambda trainer, *batch: next(trainer.epoch(Examples(*batch), 8, seed=0, epoch=0)),
    "evaluate": lambda trainer, *batch: trainer.evaluate(Examples(*batch)),
}
#: Each makes something else of an array, and what is said of that.
MADE: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "masked": (
        lambda array: np.ma.masked_greater(array, 0),
        ValueError,
        "has masked numbers: fill them, or leave their examples out",
    ),
    "unmasked": (np.ma.masked_array, TypeError, "must be a numpy array, not MaskedArray"),
    "list": (lambda array: array.tolist(), TypeError, "must be a numpy array, not list"),
    "None": (lambda _: None, TypeError, "must be a numpy array, not NoneType"),
}


@pytest.mark.parametrize("every", [0, 1])
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("taken_by", TAKEN_BY)
def test_of_a_batch(taken_by: str, made: str, every: int) -> None:
    trainer, (make, error, words) = classifier(check_every=every), MADE[made]
    input, target = examples()
    before = trainer.model.param_arena.copy()
    for name, batch in (("input", (make(input), target)), ("target", (input, make(target)))):
        with pytest.raises(error, match=f"^the {name} {re.escape(words)}$"):
            TAKEN_BY[taken_by](trainer, *batch)
    np.testing.assert_array_equal(trainer.model.param_arena, before)
    assert trainer.num_steps == 0


@pytest.mark.parametrize("made", MADE)
def test_of_a_model(made: str) -> None:
    model, (make, error, words) = classifier(check_every=0).model, MADE[made]
    for method in (model, model.forward):
        with pytest.raises(error, match=f"^the input {re.escape(words)}$"):
            method(make(examples().input))


def test_a_file_in_memory_is_an_array(tmp_path: Any) -> None:
    """A memmap, which is a subclass of NumPy's array, trains as the array does."""
    input, target = examples()
    np.save(tmp_path / "input.npy", input)
    mapped = np.load(tmp_path / "input.npy", mmap_mode="r")
    losses = [classifier().train_step(each, target).loss for each in (input, mapped)]
    assert losses[0] == losses[1]
