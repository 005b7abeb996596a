"""A loss as metrics.jsonl has it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import write_config

from nn_manual.config import load_config
from nn_manual.data import Dataset, Iris, Text
from nn_manual.losses import CrossEntropyLoss, Loss, MSELoss, NLLLoss
from nn_manual.run.recorded_loss import recorded_loss

#: The targets of three windows of four characters; one loss ignores the 2.
TARGET = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 0, 0, 2]])


def recorded(folder: Path, column: str, value: float, loss: Loss, data: Dataset | None = None) -> dict[str, Any]:
    """What a run with this loss records, on Text unless it is on other data."""
    config = replace(load_config(write_config(folder)), loss=loss, data=data or Text())
    return recorded_loss(column, value, TARGET, config)


@pytest.mark.parametrize("loss", [CrossEntropyLoss(), NLLLoss()], ids=repr)
def test_bits_are_nats_divided_by_ln_2(tmp_path: Path, loss: Loss) -> None:
    # A probability of 1/8 takes three bits.
    found = recorded(tmp_path, "validation_loss", np.log(8), loss)
    assert found == {
        "validation_loss": np.log(8),
        "validation_bits_per_character": pytest.approx(3, rel=1e-15),  # two roundings
    }


def test_a_sum_is_divided_by_the_characters_that_count(tmp_path: Path) -> None:
    found = recorded(tmp_path, "train_loss", 11 * np.log(4), CrossEntropyLoss("sum", ignore_index=2))
    assert found == {
        "train_loss": 11 * np.log(4),
        "num_train_examples": 3,
        "train_bits_per_character": pytest.approx(2, rel=1e-15),
    }


@pytest.mark.parametrize(
    ("loss", "data"),
    [
        (CrossEntropyLoss(), Iris()),
        (CrossEntropyLoss(label_smoothing=0.1), Text()),
        (CrossEntropyLoss(weight=[1, 2]), Text()),
        (NLLLoss(weight=[1, 2]), Text()),
        (MSELoss(), Text()),
    ],
)
def test_a_loss_that_is_no_code_length_has_no_bits(tmp_path: Path, loss: Loss, data: Dataset) -> None:
    assert recorded(tmp_path, "train_loss", 2.5, loss, data) == {"train_loss": 2.5}
