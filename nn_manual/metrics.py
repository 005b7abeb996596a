"""The run directory's files, written and read.

    config.yaml         the resolved config, text
    metrics.jsonl       one JSON object a line for each epoch
    gradients.jsonl     one JSON object a line for each checked step; empty where the check is off
    model.safetensors   the weights under torch's names

A reader can meet these files while the run still writes them, or after it was killed: a file that is replaced is
whole at every instant, old or new, and a file that grows lacks at most the end of its last line.
Reading executes and imports nothing that lies in a run.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from nn_manual.arrays import Array
from nn_manual.errors import DataError

CONFIG_FILE = "config.yaml"
METRICS_FILE = "metrics.jsonl"
GRADIENTS_FILE = "gradients.jsonl"
WEIGHTS_FILE = "model.safetensors"

#: The type of each column of metrics.jsonl. Losses are means over the epoch, accuracy is a fraction of 1, lr the
#: learning rate of the epoch's last step, seconds the time since the run's start.
METRICS_COLUMNS: dict[str, type] = {
    "epoch": int,
    "step": int,
    "train_loss": float,
    "validation_loss": float,
    "validation_accuracy": float,
    "lr": float,
    "seconds": float,
}
#: The columns that only some runs have: without a validation part both are absent, for regression the accuracy.
OPTIONAL_COLUMNS = frozenset({"validation_loss", "validation_accuracy"})

#: The type of each column of gradients.jsonl: how many tensors were compared, the name of the worst one, and of that
#: one max|ours - torch|, the same divided by max|torch|, the most that this may be, and the error in ULPs.
GRADIENTS_COLUMNS: dict[str, type] = {
    "step": int,
    "tensors": int,
    "worst": str,
    "absolute": float,
    "relative": float,
    "tolerance": float,
    "ulps": float,
}


def check_run_directory(path: Path) -> None:
    """Raise DataError, naming `path`, if it holds anything already or is no directory. One that isn't there is fine."""
    try:
        contents = sorted(os.listdir(path))
    except FileNotFoundError:
        return
    except OSError as error:
        raise DataError(f"{path}: the run directory can't be made: {error.strerror}") from error
    if contents:
        raise DataError(f"{path}: the run directory exists and isn't empty, it holds {contents[0]}")


def create_run_directory(path: Path) -> Path:
    """Make the directory `path`, its parents too, and return it. One that exists and is empty is taken as it is.

    Raises DataError, naming `path`, if it holds anything already, is no directory or can't be made.
    """
    check_run_directory(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{path}: the run directory can't be made: {error.strerror}") from error
    return path


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` to the file `path`, so that whoever opens `path` finds all of it or what was there before.

    The bytes go to a temporary file in the same directory (a rename is atomic only within one file system), reach
    the disk, and then take the name. Whatever stops this, KeyboardInterrupt included, the temporary file is
    removed. Raises DataError, naming `path`, where the system refuses.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_directory(path.parent)
    except OSError as error:
        raise DataError(f"{path}: can't be written: {error.strerror}") from error


def _sync_directory(path: Path) -> None:
    """Bring a directory's entries to the disk: without it a power cut can undo a rename."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class JsonLines:
    """A new file that grows by one JSON object a line: `with JsonLines(path) as lines: lines.append({"step": 1})`.

    Floats are written as their repr, so they read back to the same bits. JSON has no infinity and no NaN: both are
    written as null. Lines wait in memory until `flush`, `close`, or until BUFFERED_LINES have gathered, and reach
    the file whole: where the disk refuses, the part of a line that got through is cut off again.

    Opening, flushing and closing raise DataError, naming the file; it is an error if `path` exists.
    """

    #: A line takes about 150 bytes, so 600 KB: enough to make the system calls' share vanish, little enough to lose.
    BUFFERED_LINES = 4096

    # One encoder for all lines: json.dumps with options would build a new one for each.
    _encode = json.JSONEncoder(allow_nan=False).encode

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: list[str] = []
        try:
            self._file = path.open("xb", buffering=0)
        except OSError as error:
            raise DataError(f"{path}: can't be written: {error.strerror}") from error

    def append(self, record: dict[str, Any]) -> None:
        """Add one line. Values are Python's own numbers, strings, or None; TypeError for what JSON does not know."""
        try:
            line = self._encode(record)
        except ValueError:  # an infinity or NaN: rare, so that looking for it costs the other lines nothing
            line = self._encode({key: _finite_or_none(value) for key, value in record.items()})
        self._lines.append(line)
        if len(self._lines) >= self.BUFFERED_LINES:
            self.flush()

    def flush(self) -> None:
        """Hand the lines that wait in memory to the system."""
        # Taken out first: whatever happens below, no line is written twice.
        lines, self._lines = self._lines, []
        remaining = memoryview("".join(f"{line}\n" for line in lines).encode())
        size_before = self._file.tell()
        try:
            while remaining:
                remaining = remaining[self._file.write(remaining) :]
        except OSError as error:
            self._file.truncate(size_before)
            raise DataError(f"{self.path}: can't be written: {error.strerror}") from error

    def close(self) -> None:
        """Flush, and let go of the file."""
        try:
            self.flush()
        finally:
            self._file.close()

    def __enter__(self) -> JsonLines:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _finite_or_none(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True, eq=False)
class Run:
    """What a run directory says. A column is an array with one entry a line: int64, float64, or Python strings."""

    #: The last two parts of the directory's path: `digits/<time>` for a run in its default place.
    name: str
    #: The text of config.yaml.
    config: str
    #: The columns of METRICS_COLUMNS, one entry an epoch; OPTIONAL_COLUMNS only where the run has them.
    metrics: dict[str, Array]
    #: The columns of GRADIENTS_COLUMNS, one entry a checked step; length 0 where the check was off.
    gradients: dict[str, Array]


def read_run(path: Path) -> Run:
    """Read the run directory `path`. The last line of a .jsonl file may lack its end and is then left out.

    Raises DataError, with the file and the line, for a file that is missing or can't be read, a line that isn't a
    JSON object, a key that is missing, and a value of the wrong type. null stands for a float that was not
    finite and is read as NaN. Keys without a meaning here are passed over.
    """
    try:
        config = _read(path / CONFIG_FILE).decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{path / CONFIG_FILE}: is not UTF-8 text: {error}") from error
    # A directory's name is bytes: those that are no UTF-8 would fail to print.
    name = os.fsencode(Path(*path.resolve().parts[-2:])).decode(errors="replace")
    return Run(
        name,
        config,
        _read_columns(path / METRICS_FILE, METRICS_COLUMNS, OPTIONAL_COLUMNS),
        _read_columns(path / GRADIENTS_FILE, GRADIENTS_COLUMNS),
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: can't be read: {error.strerror}") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


# Python's decoder takes NaN and Infinity unless told otherwise.
_decoder = json.JSONDecoder(parse_constant=_refuse_constant)


def _read_records(path: Path) -> list[dict[str, Any]]:
    """The objects of a .jsonl file, one for each line."""
    lines = _read(path).splitlines(keepends=True)
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            record = _decoder.decode(line.decode())
        except (ValueError, RecursionError) as error:  # RecursionError: brackets nested a thousand deep
            if number == len(lines) and not line.endswith(b"\n"):
                break
            raise DataError(f"{path}:{number}: is not JSON: {error}") from error
        if not isinstance(record, dict):
            raise DataError(f"{path}:{number}: expected a JSON object, not {_shown(record)}")
        records.append(record)
    return records


#: For each type of column: what JSON may hold there, the array's dtype, and the name in messages. An integer does
#: for a float (1 for 1.0), and None is the float that was not finite: numpy makes NaN of it.
_COLUMN_TYPES: dict[type, tuple[set[type], type, str]] = {
    int: ({int}, np.int64, "a 64-bit integer"),
    float: ({float, int, type(None)}, np.float64, "a number"),
    str: ({str}, np.object_, "a string"),
}


def _read_columns(path: Path, types: Mapping[str, type], optional: frozenset[str] = frozenset()) -> dict[str, Array]:
    """The columns of a .jsonl file. A column in `optional` is in every line or in none."""
    records = _read_records(path)
    columns: dict[str, Array] = {}
    for key, kind in types.items():
        if key in optional and not any(key in record for record in records):
            continue
        accepted, dtype, description = _COLUMN_TYPES[kind]
        for number, record in enumerate(records, start=1):
            if key not in record:
                raise DataError(f'{path}:{number}: "{key}" is missing')
            value = record[key]
            # type() and not isinstance: true is an instance of int.
            if type(value) not in accepted or (type(value) is int and abs(value) >= 2**63):
                raise DataError(f'{path}:{number}: "{key}" is {_shown(value)}, expected {description}')
        columns[key] = np.array([record[key] for record in records], dtype)
    return columns


def _shown(value: object) -> str:
    """`value` in a message: as JSON, and not more of it than a line holds."""
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


def write_weights(path: Path, weights: Mapping[str, Array]) -> str:
    """Write named arrays as a safetensors file, atomically; returns the SHA-256 of the file, in hexadecimal.

    The names are torch's (`0.weight`), so `safetensors.torch.load_file` gives a state dict. The format has no
    checksum and a flipped bit mostly loads as another number: keep the digest (summary.json's `model_sha256`)
    and hand it to `read_weights`. Raises DataError where the file can't be written.
    """
    import safetensors.numpy

    # safetensors reads an array's memory from its first byte on, whatever its strides.
    data = safetensors.numpy.save({name: np.asarray(array, order="C") for name, array in weights.items()})
    write_atomically(path, data)
    return hashlib.sha256(data).hexdigest()


def read_weights(path: Path, sha256: str | None = None) -> dict[str, Array]:
    """The named arrays of a safetensors file.

    Raises DataError, naming the file, if it can't be read, is not of this format, holds a dtype that numpy lacks,
    or has another SHA-256 than the one given.
    """
    import safetensors
    import safetensors.numpy

    data = _read(path)
    if sha256 is not None and (found := hashlib.sha256(data).hexdigest()) != sha256:
        raise DataError(f"{path}: is corrupt: its SHA-256 is {found}, recorded was {sha256}")
    try:
        return safetensors.numpy.load(data)
    except safetensors.SafetensorError as error:
        raise DataError(f"{path}: is not a whole safetensors file: {error}") from error
    except KeyError as error:  # safetensors.numpy looks the dtype up in a table
        raise DataError(f"{path}: holds the dtype {error}, which numpy does not have") from error
