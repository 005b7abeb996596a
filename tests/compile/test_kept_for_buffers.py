"""What layers with buffers save is split into arrays and put together again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from nn_manual import BatchNorm1d, Linear, ReLU, Sequential
from nn_manual.compile.kept_for_buffers import KeptForBuffers
from nn_manual.trace.trace import CannotTrace


class Saved(NamedTuple):
    """As a user's layer may save it."""

    mean: Any
    settings: Any


def test_arrays_are_copies_and_what_was_one_stays_one() -> None:
    kept = KeptForBuffers(Sequential(BatchNorm1d(2), ReLU()))
    mean, input = np.array([1.0, 2.0]), np.zeros((3, 2))
    saved = Saved(mean, {"again": [mean, 3, None], "input": input})
    found = kept.arrays([saved, input])
    assert found == {"kept.0.0": mean, "kept.0.1.input": input}
    assert kept.names[id(saved)] == "kept.0"
    others = {name: array + 1 for name, array in found.items()}
    (again, of_relu), parts = kept.of(others)
    assert of_relu is None
    assert isinstance(again, Saved)
    assert again.mean.tolist() == [2.0, 3.0]
    assert again.mean is not others["kept.0.0"]
    assert again.settings["again"][0] is again.mean
    assert again.settings["again"][1:] == [3, None]
    assert again.settings["input"].tolist() == (input + 1).tolist()
    assert parts["kept.0"] is again
    assert parts["kept.0.0"] is again.mean


def test_it_is_needed_where_there_are_buffers() -> None:
    assert KeptForBuffers(Sequential(Linear(2, 2), BatchNorm1d(2))).is_needed
    assert not KeptForBuffers(Sequential(Linear(2, 2), ReLU())).is_needed


def test_what_is_not_known_cannot_be_traced() -> None:
    kept = KeptForBuffers(Sequential(BatchNorm1d(2)))
    with pytest.raises(CannotTrace, match="a layer with buffers saves a set: save arrays, numbers, tuples, lists and"):
        kept.arrays([(np.zeros(2), {1})])
