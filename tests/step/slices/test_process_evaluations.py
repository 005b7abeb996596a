"""What several processes evaluate and refuse together is what one does alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from processes import Case, log_of, run_cases, statuses_of

CONFIG = """
data: {Spirals: {num_examples: 20, validation_fraction: 0}}
batch_size: 20
epochs: 1
model: [Linear: {in_features: 2, out_features: 2}]
loss: CrossEntropyLoss
optimizer: {SGD: {lr: 0.1}}
"""
SIZE = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the cases have run, each in the folder of its name. Who waits for others waits for 5 s."""
    folder = tmp_path_factory.mktemp("evaluations")
    (folder / "own.yaml").write_text(CONFIG)
    cases = [
        Case(
            directory=str(folder / name),
            logs=str(folder / f"{name}.logs"),
            size=SIZE,
            module="process_evaluations",
            function=name,
            environment={"NN_MANUAL_TIME_LIMIT": "5"},
        )
        for name in ("evaluate", "refuse", "evaluate_with_a_wrong_layer")
    ]
    run_cases(cases, folder)
    return folder


def logs_of(folder: Path, name: str) -> str:
    """What the processes of a case have printed."""
    return "".join(log_of(folder / f"{name}.logs", rank) for rank in range(SIZE))


@pytest.mark.slow
def test_loss_accuracy_and_confusion_are_those_of_one_process(folder: Path) -> None:
    """It alone evaluates on several processes."""
    assert statuses_of(folder / "evaluate.logs") == [0] * SIZE, logs_of(folder, "evaluate")
    for rank in range(SIZE):
        arrays = np.load(folder / f"evaluate.{rank}.npz")
        for together, alone in (*arrays["found"].reshape(2, 2, 2), *arrays["confusions"].reshape(2, 2, 3, 3)):
            np.testing.assert_array_equal(together, alone)
        assert arrays["confusions"].sum(axis=(1, 2)).tolist() == [24 + 3, 24 + 3, 100 + 3, 100 + 3]


@pytest.mark.slow
def test_what_one_process_refuses_all_refuse(folder: Path) -> None:
    """With the same words, at once: those of an evaluation, and of a batch of which one process has no slice. It alone
    refuses on several processes.
    """
    assert statuses_of(folder / "refuse.logs") == [0] * SIZE, logs_of(folder, "refuse")
    expected = []
    label = "ValueError: CrossEntropyLoss: label 3 at index {} is outside 0 ... 2"
    norm = (
        "ValueError: 1 (BatchNorm1d) needs more than 1 value for each feature in a training step, "
        "the input has shape (1, 8)"
    )
    for last in (norm, "nothing"):  # with sync_batch_norm it is the batch that has values
        expected += [
            label.format(17),
            "ValueError: confusion has shape (2, 2), and the number of classes is 3",
            label.format(1),
            "ValueError: 0 (Linear) takes in_features=6 in the last dimension, the input has shape (2, 5)",
            "TypeError: the model is float32, its input float64",
            last,
        ]
    for rank in range(SIZE):
        assert json.loads((folder / f"refuse.{rank}.json").read_text()) == expected


@pytest.mark.slow
def test_what_one_process_finds_wrong_in_evaluation_all_raise(folder: Path) -> None:
    """It alone evaluates a layer that is wrong in one of several processes."""
    name = "evaluate_with_a_wrong_layer"
    assert statuses_of(folder / f"{name}.logs") == [0] * SIZE, logs_of(folder, name)
    said = [(folder / f"{name}.{rank}.txt").read_text() for rank in range(SIZE)]
    assert said[1].startswith("gradient check failed: wrong first in 1 (ReLU): 1.infer")
    for other in (said[0], said[2]):
        assert other.startswith("gradient check failed: process 1: wrong first in 1 (ReLU): 1.infer")
