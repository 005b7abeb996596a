"""Checkpoints, from which a run goes on: each is a folder that is whole or not there.

    RUN/checkpoints/step-70/
        state.safetensors     and other files of named arrays
        manifest.json         written last: what else the run knew, and the SHA-256 of each file and of itself

A folder is written under another name, brought to the disk, and renamed. So a killed process or a full disk leaves the
earlier checkpoints as they were. Nothing in a checkpoint is code.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from nn_manual.arrays import Array
from nn_manual.errors import DataError, raise_if_out_of_memory
from nn_manual.run_directory.files import read_file, sync_directory
from nn_manual.run_directory.records import read_object
from nn_manual.run_directory.values import SHA256, FileName, validated
from nn_manual.run_directory.weights import parse_weights, weights_as_bytes
from nn_manual.run_directory.within import within

CHECKPOINTS_DIRECTORY = "checkpoints"
MANIFEST_FILE = "manifest.json"

#: Named arrays, by the name of the file that has them.
Tensors = Mapping[str, Mapping[str, Array]]

#: A number of 18 digits fits into 64 bits. A leading zero isn't allowed: two folders could then have the same step.
_NAME = re.compile(r"step-(0|[1-9][0-9]{0,17})")
#: How a manifest begins. Its own SHA-256 is taken of its bytes with zeros in the place of the digest.
_BEGINNING = re.compile(rb'\{\n  "sha256": "([0-9a-f]{64})"')
_ZEROS = "0" * 64
#: The SHA-256 of each file of arrays.
_DIGESTS = TypeAdapter(dict[FileName, SHA256])


def step_of(checkpoint: Path) -> int | None:
    """The step of a checkpoint, by the name of its folder; None for another name."""
    name = _NAME.fullmatch(checkpoint.name)
    return int(name[1]) if name else None


def checkpoints_of(run: Path) -> list[Path]:
    """The checkpoints of the run directory `run`, the newest first: all folders with a manifest. Some of them may be
    unreadable.
    """
    folder = within(run, CHECKPOINTS_DIRECTORY)
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise_if_out_of_memory(error)
        raise DataError(f"{folder}: can't be read: {error.strerror}") from error
    found = [(step, name) for name in names if (step := step_of(Path(name))) is not None]
    paths = [within(run, CHECKPOINTS_DIRECTORY, name) for _, name in sorted(found, reverse=True)]
    return [path for path in paths if (path / MANIFEST_FILE).exists()]


def write_checkpoint(run: Path, step: int, tensors: Tensors, manifest: Mapping[str, Any], *, keep: int) -> Path:
    """Write the checkpoint of a step, and then remove all but the newest `keep`; returns its folder. The manifest may
    have what JSON can hold, and any floats. Raises DataError where the system refuses; then the other checkpoints are
    as they were.
    """
    folder, final = within(run, CHECKPOINTS_DIRECTORY), within(run, CHECKPOINTS_DIRECTORY, f"step-{step}")
    temporary = folder / f".step-{step}.{os.getpid()}.tmp"
    try:
        if not folder.exists():
            folder.mkdir()
            sync_directory(run)  # also the entries of the files that grow
        try:
            temporary.mkdir()
            _write_files(temporary, tensors, manifest)
            remove_checkpoint(final)  # there is one if the run went on from an older one
            temporary.rename(final)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        sync_directory(folder)
        for old in checkpoints_of(run)[keep:]:
            remove_checkpoint(old)
    except OSError as error:
        raise DataError(f"{final}: can't be written: {error.strerror or error}") from error
    return final


def _write_files(folder: Path, tensors: Tensors, manifest: Mapping[str, Any]) -> None:
    """Write the files, the manifest last, and bring them and their names to the disk."""
    digests = {}
    for name, arrays in tensors.items():
        data = weights_as_bytes(arrays)
        _write(folder / name, data)
        digests[name] = hashlib.sha256(data).hexdigest()
    content = {"sha256": _ZEROS, **_as_json(manifest), "files": digests}
    text = json.dumps(content, indent=2, allow_nan=False) + "\n"
    _write(folder / MANIFEST_FILE, text.replace(_ZEROS, hashlib.sha256(text.encode()).hexdigest(), 1).encode())
    sync_directory(folder)


def _write(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def remove_checkpoint(folder: Path) -> None:
    """Remove a checkpoint, if it is there. Its manifest goes first: a folder without a manifest is no checkpoint. If it
    is a link to another folder of the run, only the link is removed.
    """
    if folder.is_symlink():
        folder.unlink()
        return
    (folder / MANIFEST_FILE).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def read_checkpoint(folder: Path) -> tuple[dict[str, Any], dict[str, dict[str, Array]]]:
    """The manifest of a checkpoint, and its arrays by file and name. Raises DataError, naming the file, where one is
    missing, can't be read or isn't what was written.
    """
    content = read_manifest(folder)
    run, place = folder.parent.parent, (CHECKPOINTS_DIRECTORY, folder.name)
    path, tensors = within(run, *place, MANIFEST_FILE), {}
    for name, sha256 in validated(str(path), content.get("files"), _DIGESTS, "files").items():
        file = within(run, *place, name)
        tensors[name] = parse_weights(file, read_file(file), sha256)
    return content, tensors


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a checkpoint, which may have any values that JSON can hold, and any floats. Raises DataError,
    naming the file, where it is missing, can't be read or isn't what was written.
    """
    path = within(folder.parent.parent, CHECKPOINTS_DIRECTORY, folder.name, MANIFEST_FILE)
    data = read_file(path)
    beginning = _BEGINNING.match(data)
    if beginning is None or hashlib.sha256(_with_zeros(data, beginning)).hexdigest().encode() != beginning[1]:
        raise DataError(f"{path}: is corrupt: it isn't what its SHA-256 was taken of")
    try:
        content: dict[str, Any] = _of_json(read_object(path))
    except RecursionError:
        raise DataError(f"{path}: its lists are nested too deep") from None
    return content


def _as_json(value: Any) -> Any:
    """The value for JSON, in which a float that JSON lacks becomes an object such as {"float": "inf"}."""
    if isinstance(value, Mapping):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    return {"float": str(value)} if isinstance(value, float) and not math.isfinite(value) else value


def _of_json(value: Any) -> Any:
    """The reverse of `_as_json`."""
    if isinstance(value, dict):
        if value.keys() == {"float"} and value["float"] in ("inf", "-inf", "nan"):
            return float(value["float"])
        return {key: _of_json(item) for key, item in value.items()}
    return [_of_json(item) for item in value] if isinstance(value, list) else value


def _with_zeros(data: bytes, beginning: re.Match[bytes]) -> bytes:
    return data[: beginning.start(1)] + _ZEROS.encode() + data[beginning.end(1) :]
