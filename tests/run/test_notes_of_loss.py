"""What is said before the first step of predictions and targets that a loss takes, and that nobody can mean."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from runs import CONFIG, write_config

from nn_manual import CrossEntropyLoss, Identity, Layer, LogSoftmax, Loss, Sequential
from nn_manual.arrays import Array
from nn_manual.config import load_config
from nn_manual.data import Examples, Split
from nn_manual.losses import CTCLoss, KLDivLoss, NLLLoss
from nn_manual.run.new_run import run
from nn_manual.run.notes_of_loss import notes_of_loss

LABELS = np.array([[1, 2], [1, 1], [1, 0]])


def notes(folder: Path, loss: Loss, layer: Layer, input: Array, target: Array) -> list[str]:
    """The notes of a run on this data, without the place of the loss in the config."""
    config = replace(load_config(write_config(folder, CONFIG)), loss=loss)
    examples = Examples(input, target)
    found = list(notes_of_loss(config, Split(examples, examples, None), Sequential(layer)))
    assert all(note.startswith("loss: note: ") for note in found)
    return [note.removeprefix("loss: note: ") for note in found]


@pytest.mark.parametrize(
    ("loss", "probability"), [(CTCLoss(), "17.7"), (NLLLoss(), "17.7"), (KLDivLoss(), "12.7"), (CrossEntropyLoss(), "")]
)
def test_predictions_that_are_no_log_probabilities(tmp_path: Path, loss: Loss, probability: str) -> None:
    input = np.zeros((3, 6, 4), np.float32)
    input[1, 2] = 2.54
    words = f"log-probabilities, and the model's first predictions stand for a probability of {probability}"
    found = [f"{type(loss).__name__} takes {words}: LogSoftmax makes log-probabilities"] if probability else []
    assert notes(tmp_path, loss, Identity(), input, LABELS) == found
    assert notes(tmp_path, loss, LogSoftmax(1), input, LABELS) == []
    assert bool(notes(tmp_path, loss, LogSoftmax(2), input, LABELS)) == isinstance(loss, CTCLoss | NLLLoss)


def test_the_logarithm_of_a_probability_and_an_eps(tmp_path: Path) -> None:
    input = np.log(np.array([[0.25, 0.75, 0], [0, 1, 0]], np.float32) + 1e-3)
    assert notes(tmp_path, NLLLoss(), Identity(), input, np.array([1, 2])) == []


@pytest.mark.parametrize(
    ("shape", "target", "left_out"),
    [((3, 3, 3), LABELS, ""), ((3, 3, 2), LABELS, "1 of 3"), ((3, 3, 1), LABELS, "2 of 3"), ((1, 3), [1], "")],
)
def test_targets_without_a_path(tmp_path: Path, shape: tuple[int, ...], target: Array, left_out: str) -> None:
    words = f"targets of the training part need more times than the prediction's {shape[-1]}"
    found = [f"{left_out} {words}: with zero_infinity they don't count"] if left_out else []
    input, target = np.zeros(shape, np.float32), np.array(target)
    assert notes(tmp_path, CTCLoss(zero_infinity=True), LogSoftmax(1), input, target) == found
    assert notes(tmp_path, CTCLoss(), LogSoftmax(1), input, target) == []


@pytest.mark.parametrize(
    ("target", "total"),
    [([[0, 1], [1, 0]], ""), ([[0.5, 0.5], [1, 1]], "2"), ([[0, 1], [0, 0]], "0"), ([[0.4, 0.4], [1, 0]], "0.8")],
)
def test_targets_that_are_no_probabilities(tmp_path: Path, target: list[list[float]], total: str) -> None:
    example = int(target[0] != [0.4, 0.4])
    words = f"probabilities of classes, and those of training example {example} add up to {total}"
    found = [f"CrossEntropyLoss takes {words}: BCEWithLogitsLoss takes several labels"] if total else []
    given = np.array(target, np.float32)
    assert notes(tmp_path, CrossEntropyLoss(), Identity(), np.zeros((2, 2), np.float32), given) == found
    of_places = np.repeat(given[:, :, np.newaxis], 3, axis=2)
    assert notes(tmp_path, CrossEntropyLoss(), Identity(), np.zeros((2, 2, 3), np.float32), of_places) == found
    assert notes(tmp_path, CrossEntropyLoss(), Identity(), np.zeros((2, 2), np.float32), np.array([0, 1])) == []


def test_a_run_says_it_with_its_place_in_the_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_config(tmp_path, CONFIG.replace("CrossEntropyLoss", "NLLLoss"))
    run(load_config(path, ["epochs=1", "gradient_check.every=0"]), tmp_path / "run")
    assert f"{path}:8:7: note: NLLLoss takes log-probabilities, and the model's " in capsys.readouterr().err
