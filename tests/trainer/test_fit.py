"""Many epochs in one call: the same numbers as epoch by epoch, and what is printed of them."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import pytest

from nn_manual import (
    SGD,
    CrossEntropyLoss,
    Embedding,
    Examples,
    Layer,
    Linear,
    MSELoss,
    Padded,
    PaddedGRU,
    PaddedTimePool,
    ReLU,
    Sequential,
    Trainer,
)
from nn_manual.arrays import Array
from nn_manual.optim import ReduceLROnPlateau


def data(seed: int, num_examples: int = 40) -> tuple[Array, Array]:
    input = np.random.default_rng(seed).standard_normal((num_examples, 3), np.float32)
    return input, (input.sum(axis=1) > 0).astype(np.int64)


def trainer(**settings: Any) -> Trainer:
    model = Sequential(Linear(3, 8), ReLU(), Linear(8, 2), seed=0)
    return Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.2), **settings)


def test_it_makes_the_same_steps_as_a_loop(capsys: pytest.CaptureFixture[str]) -> None:
    train, validation = Examples(*data(0)), Examples(*data(1))
    one, other = trainer(), trainer()
    history = one.fit(train, validation, epochs=3, batch_size=16, seed=5)
    assert [record["epoch"] for record in history] == [1, 2, 3]
    for epoch, record in enumerate(history):
        steps = list(other.epoch(train, 16, seed=5, epoch=epoch))
        assert all(step.check is not None and step.check.proven for step in steps)
        evaluation = other.evaluate(validation)
        assert record["step"] == steps[-1].number
        assert record["train_loss"] == other.mean_loss("", [(step.loss, step.denominator) for step in steps])
        assert (record["validation_loss"], record["validation_accuracy"]) == (evaluation.loss, evaluation.accuracy)
        assert record["lr"] == 0.2
    assert one.model.param_arena.tobytes() == other.model.param_arena.tobytes()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["validation", "epoch", "1/3", "2/3", "3/3"]
    assert f"{history[0]['validation_loss']:.4g} *" in lines[2]


def test_it_can_be_silent_and_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    own = trainer(check_every=0)
    first = own.fit(data(0), epochs=2, batch_size=40, verbose=False)
    second = own.fit(data(0), epochs=2, batch_size=40, verbose=False)
    assert [record["step"] for record in first + second] == [1, 2, 3, 4]
    assert "validation_loss" not in first[0]
    assert second[-1]["train_loss"] < first[0]["train_loss"]
    assert capsys.readouterr() == ("", "")


def test_lists_and_other_dtypes_are_taken() -> None:
    input, target = data(0)
    others = input.astype(np.float64), target.astype(np.int32)
    pairs: list[Any] = [(input, target), (input.tolist(), target.tolist()), list(others)]
    losses = [trainer().fit(pair, pair, epochs=1, batch_size=8, verbose=False)[0]["train_loss"] for pair in pairs]
    assert losses[0] == losses[1] == losses[2]
    model = Sequential(Linear(3, 1), seed=0)
    regression = Trainer(model, MSELoss(), SGD(model, lr=0.1))
    assert regression.evaluate(([[1, 2, 3]], [[0.5]])).loss > 0
    assert regression.evaluate(([[1, 2, 3]], [[1]])).loss > 0
    assert len(list(regression.epoch(([[1, 2, 3], [3, 2, 1]], [[0.5], [1]]), 1, seed=0, epoch=0))) == 2


def padded_trainer(*, of_ids: bool = False) -> Trainer:
    model = Sequential(*[Embedding(5, 3)] * of_ids, PaddedGRU(3, 4), PaddedTimePool(), Linear(4, 2), seed=0)
    return Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.2))


def test_padded_lists_and_other_dtypes_are_taken() -> None:
    """As those without lengths."""
    lengths, ids = np.arange(8) % 3 + 1, np.arange(24).reshape(8, 3) % 5
    input, target = np.random.default_rng(0).standard_normal((8, 3, 3), np.float32), np.arange(8) % 2
    of_numbers = [
        Padded(input, lengths),
        Padded(input.astype(np.float64), lengths.astype(np.int32)),
        Padded(input.tolist(), lengths.tolist()),
    ]
    of_integers = [Padded(np.rint(input), lengths), Padded(np.rint(input).astype(np.int8), lengths)]
    of_ids = [Padded(ids, lengths), Padded(ids.astype(np.int32), lengths), Padded(ids.tolist(), lengths)]
    for inputs in of_numbers, of_integers, of_ids:
        found = []
        for each in inputs:
            own = padded_trainer(of_ids=inputs is of_ids)
            (record,) = own.fit((each, target), (each, target), epochs=1, batch_size=4, verbose=False)
            found.append((record["train_loss"], record["validation_loss"], own.evaluate((each, target)).loss))
        assert found == [found[0]] * len(found)


@pytest.mark.parametrize("as_examples", [True, False])
def test_padded_numbers_must_be_finite_and_the_padding_too(*, as_examples: bool) -> None:
    target = np.arange(8) % 2
    for index in [(5, 0, 1), (5, 2, 1)]:  # the sequence has length 2
        input = np.zeros((8, 3, 3), np.float32)
        input[index] = np.nan
        padded, own = Padded(input, np.full(8, 2)), padded_trainer()
        given = Examples(padded, target) if as_examples else (padded, target)
        message = f"the input holds nan at index {index}: numbers must be finite"
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            own.fit(given, epochs=1, batch_size=4, verbose=False)
        assert own.num_steps == 0


def test_it_stops_early_and_lowers_the_lr(capsys: pytest.CaptureFixture[str]) -> None:
    model = Sequential(Linear(3, 2), seed=0)
    scheduler = ReduceLROnPlateau(patience=0)
    own = Trainer(model, CrossEntropyLoss(), SGD(model, lr=1e-5), lr_scheduler=scheduler)
    history = own.fit(data(0), data(1), epochs=50, batch_size=40, patience=3, min_delta=0.01)
    assert len(history) == 4
    assert history[-1]["lr"] < 1e-5
    assert capsys.readouterr().out.splitlines()[-2] == "stopped early: no better than epoch 1 for 3 epochs"


@pytest.mark.parametrize("validation", [None, (np.zeros((0, 3)), np.zeros(0))])
def test_a_schedule_that_watches_the_validation_loss_needs_one(validation: Any) -> None:
    model = Sequential(Linear(3, 2), seed=0)
    own = Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.1), lr_scheduler=ReduceLROnPlateau())
    with pytest.raises(ValueError, match=r"^ReduceLROnPlateau needs validation examples, whose loss it watches$"):
        own.fit(data(0), validation, epochs=1, batch_size=8, verbose=False)
    assert own.num_steps == 0


def test_with_a_patience_it_goes_back_to_the_best_weights(capsys: pytest.CaptureFixture[str]) -> None:
    """The lr is so large that the validation loss rises; without a patience, the last weights stay."""
    losses = {}
    for patience in (None, 2):
        model = Sequential(Linear(3, 2), seed=0)
        own = Trainer(model, CrossEntropyLoss(), SGD(model, lr=30.0))
        history = own.fit(data(0), data(1), epochs=6, batch_size=8, patience=patience)
        losses[patience] = [record["validation_loss"] for record in history]
        loss = own.evaluate(data(1)).loss
        assert loss == (losses[None][-1] if patience is None else min(losses[2]))
    assert min(losses[2]) < losses[2][-1]
    epoch = losses[2].index(min(losses[2])) + 1
    end = f"the model has the weights of epoch {epoch}, the best one"
    assert capsys.readouterr().out.splitlines()[-1] == end


class Shrink(Layer):
    """output = input / 2, without a reference: its steps are proven one by one."""

    def forward(self, input: Array) -> tuple[Array, Any]:
        return input / 2, None

    def backward(self, saved: Any, grad_output: Array) -> Array:
        del saved
        return grad_output / 2


@pytest.mark.parametrize("verbose", [True, False])
def test_it_notes_why_it_is_slow(capsys: pytest.CaptureFixture[str], *, verbose: bool) -> None:
    model = Sequential(Linear(3, 2), Shrink(), seed=0)
    own = Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.1))
    own.fit(data(0), epochs=2, batch_size=20, verbose=verbose)
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note")]
    start = "note: each step is proven by itself, which takes longer: 1 (Shrink) is compared with its own forward in "
    assert len(notes) == verbose
    assert all(note.startswith(start) and note.endswith("; a reference is faster") for note in notes)


def test_on_a_terminal_the_note_has_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    model = Sequential(Linear(3, 2), Shrink(), seed=0)
    Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.1)).fit(data(0), epochs=1, batch_size=20)
    assert (
        "note: each step is proven by itself, which takes longer: 1 (Shrink) is compared\n"
        "  with its own forward in float64, the gradients with central differences of it;\n"
        "  a reference is faster\n"
    ) in capsys.readouterr().err


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("as_examples", [True, False])
def test_a_number_that_is_not_finite_spoils_nothing(dtype: str, *, as_examples: bool) -> None:
    own = trainer()
    before = own.model.param_arena.copy()
    input, target = data(0)
    input = input.astype(dtype)
    input[7, 1] = np.nan
    given = Examples(input.astype(np.float32), target) if as_examples else (input, target)
    with pytest.raises(ValueError, match=r"^the input holds nan at index \(7, 1\): numbers must be finite$"):
        own.fit(given, epochs=1, batch_size=8, verbose=False)
    with pytest.raises(ValueError, match=r"^the input holds nan at index"):
        own.fit(data(0), given, epochs=1, batch_size=8, verbose=False)
    assert np.array_equal(own.model.param_arena, before)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"epochs": 0}, ValueError, "epochs must be at least 1, not 0"),
        ({"epochs": 2.0}, TypeError, "epochs must be an integer, not 2.0"),
        ({"batch_size": 8.0}, TypeError, "batch_size must be an integer, not 8.0"),
        ({"patience": 0, "validation": data(0)}, ValueError, "patience must be at least 1, not 0"),
        ({"patience": 2}, ValueError, "patience needs validation examples, whose loss it watches"),
        ({"patience": 2, "validation": (np.zeros((0, 3)), np.zeros(0))}, ValueError, "patience needs validation"),
        ({"min_delta": -1.0}, ValueError, "min_delta must be at least 0, not -1.0"),
        ({"train": (np.zeros((0, 3)), np.zeros(0))}, ValueError, "there is no example to train on"),
        ({"train": ([[0.0, 1e39, 0.0]], [0])}, ValueError, r"the input holds inf at index \(0, 1\): num"),
        ({"train": (*data(0), 1)}, TypeError, r"examples are a pair, \(input, target\), and not tuple of 3"),
        ({"train": (np.ma.masked_greater(data(0)[0], 0), data(0)[1])}, ValueError, "the input has masked numbers"),
        ({"train": data(0)[0]}, TypeError, r"examples are a pair, \(input, target\), and not ndarray"),
        ({"train": ([[1, 2], [3]], [0, 1])}, ValueError, "the input is no array of numbers"),
        ({"train": ([["a"]], [0])}, TypeError, "the input has dtype <U1, and must be numbers"),
        ({"train": ([[1, 2, 3]], [0, 1])}, ValueError, "there must be a target for each input: their shapes"),
        ({"train": (np.array([[1, 2, 2**63]], np.uint64), [0])}, ValueError,
         f"the input holds {2**63}: integers must be below 2\\*\\*63"),
        ({"validation": ([[1, 2]], [0])}, ValueError, "2"),
    ],
)
def test_what_is_refused(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    given: dict[str, Any] = {"train": data(0), "epochs": 1, "batch_size": 8, "verbose": False} | settings
    with pytest.raises(error, match=f"^{message}" if message != "2" else message):
        trainer().fit(given.pop("train"), given.pop("validation", None), **given)
