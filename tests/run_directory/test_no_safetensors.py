"""What is said of a file that isn't read as safetensors: our words alone, and how another format is converted."""

from __future__ import annotations

import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch

from nn_manual.errors import DataError
from nn_manual.run_directory.no_safetensors import OF_NUMPY, OF_TORCH, OF_ZIP
from nn_manual.run_directory.weights import opened_weights, read_weights

ARRAYS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones(2, np.float32)}
WHOLE, DAMAGED = "is not a whole safetensors file: ", "is not a whole safetensors file: its header is damaged"


def with_header(header: Any) -> bytes:
    """A file of 32 bytes of tensors behind this header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(32)


def entry(**changed: Any) -> dict[str, Any]:
    """The header of a tensor that takes all 32 bytes."""
    return {"a": {"dtype": "F32", "shape": [8], "data_offsets": [0, 32]} | changed}


def _torchs(path: Path) -> None:
    torch.save({name: torch.from_numpy(each) for name, each in ARRAYS.items()}, path)


def _older_torchs(path: Path) -> None:
    torch.save({"a": torch.ones(2)}, path, _use_new_zipfile_serialization=False)


def _npz(path: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, **ARRAYS)  # type: ignore[arg-type]  # a name may be that of a setting


def _other_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "a")


def _cut_zip(path: Path) -> None:
    _torchs(path)
    path.write_bytes(path.read_bytes()[:300])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_torchs, OF_TORCH),
        (_older_torchs, OF_TORCH),
        (lambda path: path.write_bytes(pickle.dumps(ARRAYS)), OF_TORCH),
        (_npz, OF_NUMPY),
        (_other_zip, OF_ZIP),
        (_cut_zip, OF_ZIP),
        (lambda path: path.write_bytes(b""), "is empty, not a safetensors file"),
        (lambda path: path.write_bytes(b"1234"), "is not a safetensors file"),
        (lambda path: path.write_text("hello " * 10), "is not a safetensors file"),
        (lambda path: path.write_bytes(with_header([1])), "is not a safetensors file"),
        (lambda path: path.write_bytes(with_header(b"[" * 100_000)), "is not a safetensors file"),
        (lambda path: path.write_bytes(with_header(b'{"a":' * 100_000)), DAMAGED),
        (lambda path: path.write_bytes(with_header(b"{}}")), DAMAGED),
        (lambda path: path.write_bytes(with_header({"a": 1})), DAMAGED),
        (lambda path: path.write_bytes(with_header(entry(shape=[9]))), DAMAGED),
        (lambda path: path.write_bytes(with_header(entry(shape=[-8]))), DAMAGED),
        (lambda path: path.write_bytes(with_header(entry(data_offsets=[0]))), DAMAGED),
        (lambda path: path.write_bytes(with_header(entry(data_offsets=[0, None]))), DAMAGED),
        (lambda path: path.write_bytes(with_header(entry())[:-1]), f"{WHOLE}it has 101 bytes, and 102 by its header"),
        (lambda path: path.write_bytes(with_header(entry()) + b"x"), f"{WHOLE}it has 103 bytes, and 102 by its header"),
        (
            lambda path: path.write_bytes(struct.pack("<Q", 2**40) + b"{}"),
            f"{WHOLE}it has 10 bytes, and 1,099,511,627,784 by its header",
        ),
    ],
)
def test_what_a_file_is(tmp_path: Path, make: Callable[[Path], object], words: str) -> None:
    path = tmp_path / "weights"
    make(path)
    for read in (read_weights, lambda path: opened_weights(path).__enter__()):
        with pytest.raises(DataError) as caught:
            read(path)
        assert str(caught.value) == f"{path}: {words}"


def test_a_header_as_long_as_a_pickle_begins(tmp_path: Path) -> None:
    """Its first bytes are those of a pickle, and its file is cut off."""
    header = json.dumps(entry(dtype="F16")).encode().ljust(0x280)
    (tmp_path / "weights").write_bytes(with_header(header)[:-20])
    assert with_header(header).startswith(b"\x80\x02")
    with pytest.raises(DataError, match=r": is not a whole safetensors file: it has 660 bytes, and 680 by its header$"):
        read_weights(tmp_path / "weights")


@pytest.mark.parametrize(("make", "words"), [(_torchs, OF_TORCH), (_npz, OF_NUMPY)])
def test_the_advice_converts_it(tmp_path: Path, make: Callable[[Path], None], words: str) -> None:
    make(tmp_path / "weights")
    advice = words.rpartition(": ")[2].replace("FILE", "file").replace("'new.safetensors'", "new")
    files = {"file": tmp_path / "weights", "new": tmp_path / "new"}
    exec(advice, {"safetensors": safetensors, "np": np, "torch": torch} | files)
    read = read_weights(tmp_path / "new")
    assert {name: each.tolist() for name, each in read.items()} == {name: ARRAYS[name].tolist() for name in ARRAYS}
