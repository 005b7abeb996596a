"""A model's weights on disk: they read back to the bit, torch reads them too, and a damaged file is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from nn_manual.errors import DataError
from nn_manual.run_directory.weights import read_weights, write_weights

WEIGHTS: dict[str, Callable[[], Any]] = {
    "transposed": lambda: np.arange(6.0).reshape(2, 3).T,
    "strided": lambda: np.arange(10, dtype=np.float32)[::3],
    "reversed": lambda: np.arange(4)[::-1],
    "scalar": lambda: np.array(2.5, np.float32),
    "empty": lambda: np.zeros((0, 3)),
}


def test_weights_read_back_whatever_their_memory_layout(tmp_path: Path) -> None:
    weights = {f"0.{name}": make() for name, make in WEIGHTS.items()}
    digest = write_weights(tmp_path / "model.safetensors", weights)
    read = read_weights(tmp_path / "model.safetensors", digest)
    assert read.keys() == weights.keys()
    for name, array in weights.items():
        assert read[name].dtype == array.dtype
        assert read[name].shape == array.shape
        assert np.array_equal(read[name], array)


def test_weights_are_a_state_dict_for_torch(tmp_path: Path) -> None:
    write_weights(tmp_path / "model.safetensors", {"0.weight": np.arange(6.0).reshape(2, 3).T})
    state = safetensors.torch.load_file(tmp_path / "model.safetensors")
    assert state["0.weight"].tolist() == [[0, 3], [1, 4], [2, 5]]


def test_the_digest_is_that_of_the_file_and_of_the_weights_alone(tmp_path: Path) -> None:
    weights = {name: make() for name, make in WEIGHTS.items()}
    digest = write_weights(tmp_path / "first", weights)
    assert digest == hashlib.sha256((tmp_path / "first").read_bytes()).hexdigest()
    assert write_weights(tmp_path / "second", dict(reversed(weights.items()))) == digest


def test_a_flipped_bit_is_found(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    digest = write_weights(path, {"0.weight": np.arange(6.0)})
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    assert read_weights(path)["0.weight"][-1] != 5  # loads all the same
    with pytest.raises(DataError, match=rf"{path}: is corrupt: its SHA-256 is .*, recorded was {digest}"):
        read_weights(path, digest)


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (0, "is empty, not a safetensors file"),
        (5, "is not a safetensors file"),
        (40, "is not a whole safetensors file: it has 40 bytes, and 72 by its header"),
        (-1, "is not a whole safetensors file: it has 119 bytes, and 120 by its header"),
    ],
)
def test_a_cut_file_is_refused(tmp_path: Path, length: int, words: str) -> None:
    path = tmp_path / "model.safetensors"
    write_weights(path, {"0.weight": np.arange(6.0)})
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(DataError, match=f"^{path}: {words}$"):
        read_weights(path)


def test_a_dtype_that_numpy_lacks_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    safetensors.torch.save_file({"0.weight": torch.zeros(2, dtype=torch.bfloat16)}, path)
    with pytest.raises(DataError, match=f"{path}: holds the dtype 'BF16', which numpy does not have"):
        read_weights(path)


def test_missing_weights_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"{tmp_path / 'no'}: can't be read: No such file or directory"):
        read_weights(tmp_path / "no")
