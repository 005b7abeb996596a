"""Checkpoints: written whole or not at all, and refused where a bit is another one."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nn_manual.arrays import Array
from nn_manual.errors import DataError
from nn_manual.run_directory import checkpoints
from nn_manual.run_directory.checkpoints import checkpoints_of, read_checkpoint, step_of, write_checkpoint

TENSORS: dict[str, dict[str, Array]] = {
    "state.safetensors": {"0.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "0.count": np.array(3)},
    "best.safetensors": {"0.weight": np.ones((2, 3))},
}


def written(run: Path, step: int = 7, keep: int = 3, **manifest: Any) -> Path:
    return write_checkpoint(run, step, TENSORS, {"step": step, **manifest}, keep=keep)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    folder = written(tmp_path, losses=[[0.1, 3.0]], last=None)
    assert folder == tmp_path / "checkpoints" / "step-7"
    manifest, tensors = read_checkpoint(folder)
    assert (manifest["step"], manifest["losses"], manifest["last"]) == (7, [[0.1, 3.0]], None)
    assert tensors.keys() == TENSORS.keys()
    for file, arrays in TENSORS.items():
        assert tensors[file].keys() == arrays.keys()
        for name, array in arrays.items():
            assert tensors[file][name].dtype == array.dtype
            assert np.array_equal(tensors[file][name], array)


def test_the_newest_are_kept(tmp_path: Path) -> None:
    for step in (8, 9, 10, 11):
        written(tmp_path, step, keep=2)
    assert [step_of(path) for path in checkpoints_of(tmp_path)] == [11, 10]
    assert sorted(os.listdir(tmp_path / "checkpoints")) == ["step-10", "step-11"]
    assert checkpoints_of(tmp_path / "nowhere") == []


def test_one_of_the_same_step_is_replaced(tmp_path: Path) -> None:
    written(tmp_path, note="old")
    assert read_checkpoint(written(tmp_path, note="new"))[0]["note"] == "new"


def test_numbers_that_json_lacks(tmp_path: Path) -> None:
    manifest, _ = read_checkpoint(written(tmp_path, best=math.inf, losses=[[-math.inf, 0.1]], last={"loss": math.nan}))
    assert (manifest["best"], manifest["losses"]) == (math.inf, [[-math.inf, 0.1]])
    assert math.isnan(manifest["last"]["loss"])


@pytest.mark.parametrize("function", ["fsync", "rename"])
def test_a_system_that_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str) -> None:
    before = written(tmp_path)

    def refused(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    if function == "fsync":
        monkeypatch.setattr(os, "fsync", refused)
    else:
        monkeypatch.setattr(Path, "rename", refused)
    with pytest.raises(DataError, match=r"checkpoints/step-8: can't be written: No space left on device$"):
        written(tmp_path, 8)
    assert checkpoints_of(tmp_path) == [before]
    assert os.listdir(tmp_path / "checkpoints") == ["step-7"]
    assert read_checkpoint(before)[0]["step"] == 7


def test_the_manifest_is_written_last_and_removed_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left of a checkpoint that was being written or removed is none."""
    order: list[str] = []
    write = checkpoints._write

    def noted(path: Path, data: bytes) -> None:
        order.append(path.name)
        write(path, data)

    monkeypatch.setattr(checkpoints, "_write", noted)
    folder = written(tmp_path)
    assert order == ["state.safetensors", "best.safetensors", "manifest.json"]
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: order.extend(sorted(os.listdir(folder))))
    checkpoints.remove_checkpoint(folder)
    assert order[3:] == ["best.safetensors", "state.safetensors"]


@pytest.mark.parametrize("file", ["manifest.json", "state.safetensors", "best.safetensors"])
def test_no_other_bit_and_no_shorter_file_is_read(tmp_path: Path, file: str) -> None:
    folder = written(tmp_path)
    path = folder / file
    data = path.read_bytes()
    generator = np.random.default_rng(0)
    spoilt = [data[:size] for size in range(0, len(data), 7)] + [data + b" ", data + b"\n"]
    for place in generator.integers(8 * len(data), size=200):
        flipped = bytearray(data)
        flipped[place // 8] ^= 1 << (place % 8)
        spoilt.append(bytes(flipped))
    for other in spoilt:
        path.write_bytes(other)
        with pytest.raises(DataError, match=f"^{folder}/{file}: is corrupt: "):
            read_checkpoint(folder)
    path.unlink()
    with pytest.raises(DataError, match=f"^{folder}/{file}: can't be read: No such file"):
        read_checkpoint(folder)
