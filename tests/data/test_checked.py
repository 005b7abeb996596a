"""A data set that doesn't keep its contract is named, before a model meets what it has loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from nn_manual.arrays import Array
from nn_manual.data import Dataset, Examples, Split
from nn_manual.data.checked import checked_split
from nn_manual.errors import DataError

FLOAT32 = np.dtype(np.float32)


@dataclass
class Own(Dataset):
    """A data set of one's own."""

    example_shape = (2,)

    def load(self, seed: int, dtype: Any, transform: Any = None) -> Split:
        raise NotImplementedError


def part(input: Array, target: Array) -> Examples:
    return Examples(input, target)


RIGHT = part(np.zeros((3, 2), np.float32), np.arange(3))
NONE = part(np.zeros((0, 2), np.float32), np.zeros(0, np.int64))


def test_a_right_one_is_returned() -> None:
    for split in (Split(RIGHT, RIGHT, 3), Split(RIGHT, NONE, 3), Split(part(RIGHT.input, RIGHT.input), NONE, None)):
        assert checked_split(Own(), split, FLOAT32) is split


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ((RIGHT, NONE, 3), "Own.load returned tuple, and must return a Split"),
        (Split(part(np.zeros((3, 2)), np.arange(3)), NONE, 3), "the input has dtype float64, and must have float32 or"),
        (Split(part(RIGHT.input, np.zeros((3, 1))), NONE, None), "the target has dtype float64, and must have float32"),
        (Split(RIGHT, part(RIGHT.input, np.arange(2)), 3), "in the validation part, there are 3 inputs and 2 targets"),
        (Split(part(RIGHT.input, RIGHT.input), NONE, 3), "the target of 3 classes has dtype float32"),
        (Split(RIGHT, NONE, 2), "in the training part, there is a class 2, and num_classes is 2"),
        (Split(part([[1, 2]], RIGHT.target), NONE, 3), "in the training part, the input is no array of examples"),  # type: ignore[arg-type]
        (Split(NONE, RIGHT, 3), "Own.load returned no example for training"),
        (
            Split(part(np.zeros((3, 4), np.float32), np.arange(3)), NONE, 3),
            r"Own: example_shape is \(2,\), and an example has \(4,\)",
        ),
    ],
)
def test_what_is_wrong_is_named(split: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        checked_split(Own(), split, FLOAT32)
