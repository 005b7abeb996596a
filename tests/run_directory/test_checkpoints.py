"""Checkpoints: written whole or not at all, and refused where a bit is another one."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nn_manual.arrays import Array
from nn_manual.errors import DataError
from nn_manual.run_directory import checkpoints
from nn_manual.run_directory.checkpoints import (
    checkpoints_of,
    read_checkpoint,
    remove_checkpoint,
    step_of,
    write_checkpoint,
)
from nn_manual.run_directory.files import read_file
from nn_manual.run_directory.records import read_records

TENSORS: dict[str, dict[str, Array]] = {
    "state.safetensors": {"0.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "0.count": np.array(3)},
    "best.safetensors": {"0.weight": np.ones((2, 3))},
}


def written(run: Path, step: int = 7, keep: int = 3, **manifest: Any) -> Path:
    run.mkdir(exist_ok=True)
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


def signed_again(folder: Path, change: Callable[[str], str]) -> None:
    """Another text of the manifest, whose SHA-256 is right."""
    path = folder / "manifest.json"
    text = path.read_text()
    text = change(text.replace(json.loads(text)["sha256"], 64 * "0"))
    path.write_text(text.replace(64 * "0", hashlib.sha256(text.encode()).hexdigest(), 1))


@pytest.mark.parametrize("name", ["../../../secret", "/secret", "", ".", "..", "a/b.safetensors", "x\\u0000", "STATE"])
def test_a_manifest_names_files_beside_it(tmp_path: Path, name: str) -> None:
    folder = written(tmp_path / "run")
    (tmp_path / "secret").write_text("secret")
    signed_again(folder, lambda text: text.replace("state.safetensors", name))
    with pytest.raises(DataError, match=r'/manifest\.json: "files\..*\[key\]" is ".*", expected a string of the form'):
        read_checkpoint(folder)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("nested lists", "its lists are nested too deep"),
        ('"\\ud800"', "is not JSON: 'utf-8' codec can't encode character"),
        ("1e999", None),
    ],
)
def test_what_the_signature_holds(tmp_path: Path, value: str, problem: str | None) -> None:
    folder = written(tmp_path, losses=17.25)
    if value == "nested lists":  # as many as JSON's reader takes, and Python's own recursion doesn't
        depth = 900 if sys.version_info < (3, 12) else 990
        value = depth * "[" + depth * "]"
    signed_again(folder, lambda text: text.replace("17.25", value))
    if problem is None:
        assert read_checkpoint(folder)[0]["losses"] == math.inf
        return
    with pytest.raises(DataError) as caught:
        read_checkpoint(folder)
    assert str(caught.value).startswith(f"{folder}/manifest.json: {problem}")


@pytest.mark.parametrize("value", [{"float": "x"}, {"float": []}, {"float": "inf", "x": 1}, {"float": None}])
def test_what_only_looks_like_a_number(tmp_path: Path, value: dict[str, Any]) -> None:
    assert read_checkpoint(written(tmp_path, best=value))[0]["best"] == value


@pytest.mark.parametrize("name", ["step-" + 5000 * "1", "step-" + 19 * "1", "step-007", "step--1", "step-\u0663"])
def test_a_folder_of_another_name_is_none(tmp_path: Path, name: str) -> None:
    assert step_of(tmp_path / name) is None


class TestLinks:
    """Nothing outside of the run is read, and nothing is removed."""

    @pytest.fixture
    def outside(self, tmp_path: Path) -> Path:
        """Another run, with checkpoints."""
        written(tmp_path / "outside")
        return tmp_path / "outside" / "checkpoints"

    def test_all_checkpoints(self, tmp_path: Path, outside: Path) -> None:
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "checkpoints").symlink_to(outside)
        for function in (lambda: checkpoints_of(tmp_path / "run"), lambda: written(tmp_path / "run", 9)):
            with pytest.raises(DataError, match=r"run/checkpoints: is behind a link that leads out of "):
                function()
        assert os.listdir(outside) == ["step-7"]

    def test_one_of_them(self, tmp_path: Path, outside: Path) -> None:
        written(tmp_path / "run", 5)
        link = tmp_path / "run" / "checkpoints" / "step-7"
        link.symlink_to(outside / "step-7")
        for function in (lambda: checkpoints_of(tmp_path / "run"), lambda: read_checkpoint(link)):
            with pytest.raises(DataError, match=r"/step-7(/manifest\.json)?: is behind a link that leads out of "):
                function()
        remove_checkpoint(link)
        assert not link.is_symlink()
        assert sorted(os.listdir(outside / "step-7")) == ["best.safetensors", "manifest.json", "state.safetensors"]

    def test_a_file_of_one(self, tmp_path: Path, outside: Path) -> None:
        folder = written(tmp_path / "run")
        (folder / "state.safetensors").unlink()
        (folder / "state.safetensors").symlink_to(outside / "step-7" / "state.safetensors")
        with pytest.raises(DataError, match=r"/step-7/state\.safetensors: is behind a link that leads out of "):
            read_checkpoint(folder)

    def test_one_that_stays_inside(self, tmp_path: Path) -> None:
        folder = written(tmp_path / "run")
        (folder / "state.safetensors").rename(tmp_path / "run" / "moved")
        (folder / "state.safetensors").symlink_to("../../moved")
        assert read_checkpoint(folder)[1].keys() == TENSORS.keys()


@pytest.mark.parametrize(
    "read", [checkpoints_of, lambda run: read_file(run / "file"), lambda run: [*read_records(run / "lines")]]
)
def test_too_little_memory_is_no_fault_of_the_data(
    read: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(os, "listdir", refused)
    monkeypatch.setattr(Path, "open", refused)
    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(OSError, match="Cannot allocate memory"):
        read(tmp_path)
