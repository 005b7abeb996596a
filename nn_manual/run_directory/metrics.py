"""What a run directory says.

    config.yaml         the resolved config, text
    metrics.jsonl       one JSON object a line for each epoch
    gradients.jsonl     one JSON object a line for each checked step; empty where the check is off
    model.safetensors   the weights under torch's names

A reader can meet these files while the run still writes them, or after it was killed:
nn_manual.run_directory.files writes them.
Reading executes and imports nothing that lies in a run.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from nn_manual.arrays import Array
from nn_manual.errors import DataError
from nn_manual.run_directory.files import read_file

CONFIG_FILE = "config.yaml"
METRICS_FILE = "metrics.jsonl"
GRADIENTS_FILE = "gradients.jsonl"
WEIGHTS_FILE = "model.safetensors"

#: The type of each column of metrics.jsonl. Losses are means over the epoch's examples; a loss whose reduction is sum
#: is their sum, and the line has the number of examples, too. Accuracy is a fraction of 1, lr the learning rate of the
#: epoch's last step, seconds the time since the run's start.
METRICS_COLUMNS: dict[str, type] = {
    "epoch": int,
    "step": int,
    "train_loss": float,
    "num_train_examples": int,
    "validation_loss": float,
    "num_validation_examples": int,
    "validation_accuracy": float,
    "lr": float,
    "seconds": float,
}
#: For each loss, the column that has how many examples it is the sum of.
COUNTS = {"train_loss": "num_train_examples", "validation_loss": "num_validation_examples"}
#: The columns that only some runs have: those of validation where there is a validation part, the accuracy where there
#: are classes, the counts where the loss is a sum.
OPTIONAL_COLUMNS = frozenset({"validation_loss", "validation_accuracy", *COUNTS.values()})

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
#: The key of gradients.jsonl that holds the ledger: {tensor: [percent, ULPs]}, every tensor in the order in which a
#: mistake would spread.
ERRORS = "errors"


@dataclass(frozen=True, eq=False)
class Ledger:
    """How far each tensor of each checked step was from torch's: two arrays (steps, tensors), float64.

    A 0 says that all elements were equal, and nothing else is written as 0.
    """

    tensors: tuple[str, ...]
    #: max|ours - torch|, in percent of what the tolerance allows; above 100 only where it was rounding.
    percent: Array
    #: The same in units of the last place at the tensor's largest magnitude.
    ulps: Array


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
    #: One row a checked step.
    ledger: Ledger


def read_run(path: Path) -> Run:
    """Read the run directory `path`. The last line of a .jsonl file may lack its end and is then left out.

    Raises DataError, with the file and the line, for a file that is missing or can't be read, a line that isn't a
    JSON object, a key that is missing, a value of the wrong type, and a step whose tensors are not those of the first.
    null stands for a float that was not finite and is read as NaN. Keys without a meaning here are passed over.
    """
    try:
        config = read_file(path / CONFIG_FILE).decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{path / CONFIG_FILE}: is not UTF-8 text: {error}") from error
    # A directory's name is bytes: those that are no UTF-8 would fail to print.
    name = os.fsencode(Path(*path.resolve().parts[-2:])).decode(errors="replace")
    records = list(_read_records(path / METRICS_FILE))
    metrics = _columns(path / METRICS_FILE, records, METRICS_COLUMNS, OPTIONAL_COLUMNS)
    return Run(name, config, metrics, *_read_gradients(path / GRADIENTS_FILE))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


# Python's decoder takes NaN and Infinity unless told otherwise.
_decoder = json.JSONDecoder(parse_constant=_refuse_constant)


def _read_records(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a .jsonl file, one for each line."""
    for number, line in enumerate(io.BytesIO(read_file(path)), start=1):
        try:
            record = _decoder.decode(line.decode())
        except (ValueError, RecursionError) as error:  # RecursionError: brackets nested a thousand deep
            if not line.endswith(b"\n"):  # the last line, and torn
                return
            raise DataError(f"{path}:{number}: is not JSON: {error}") from error
        if not isinstance(record, dict):
            raise DataError(f"{path}:{number}: expected a JSON object, not {_shown(record)}")
        yield record


def _read_gradients(path: Path) -> tuple[dict[str, Array], Ledger]:
    """The columns of gradients.jsonl, and its ledger."""
    records: list[dict[str, Any]] = []
    rows: list[Array] = []
    tensors: tuple[str, ...] = ()
    for number, record in enumerate(_read_records(path), start=1):
        if ERRORS not in record:
            raise DataError(f'{path}:{number}: "{ERRORS}" is missing')
        # Out of the record, and an array at once: a long run's ledger takes gigabytes as Python's lists of floats.
        errors = record.pop(ERRORS)
        row = _ledger_row(errors)
        if row is None:
            raise DataError(f'{path}:{number}: "{ERRORS}" is {_shown(errors)}, expected {{tensor: [percent, ULPs]}}')
        tensors = tensors if records else tuple(errors)
        if tuple(errors) != tensors:
            raise DataError(f'{path}:{number}: "{ERRORS}" has other tensors than the first line')
        records.append(record)
        rows.append(row)
    percent, ulps = np.array(rows, np.float64).reshape(len(rows), len(tensors), 2).transpose(2, 0, 1)
    return _columns(path, records, GRADIENTS_COLUMNS), Ledger(tensors, percent, ulps)


def _ledger_row(errors: object) -> Array | None:
    """The values of {tensor: [percent, ULPs]} as an array (tensors, 2); None where `errors` is something else."""
    # Each of these runs over all tensors without a line of Python: the file has one for each step.
    if not isinstance(errors, dict) or not set(map(type, errors.values())) <= {list}:
        return None
    numbers = list(chain.from_iterable(errors.values()))
    if not set(map(len, errors.values())) <= {2} or not set(map(type, numbers)) <= {float, int}:
        return None
    try:
        return np.array(numbers, np.float64).reshape(-1, 2)
    except OverflowError:  # an integer beyond 1.8e308
        return None


#: For each type of column: what JSON may hold there, the array's dtype, and the name in messages. An integer does
#: for a float (1 for 1.0), and None is the float that was not finite: numpy makes NaN of it.
_COLUMN_TYPES: dict[type, tuple[set[type], type, str]] = {
    int: ({int}, np.int64, "a 64-bit integer"),
    float: ({float, int, type(None)}, np.float64, "a number"),
    str: ({str}, np.object_, "a string"),
}


def _columns(
    path: Path,
    records: Sequence[Mapping[str, Any]],
    types: Mapping[str, type],
    optional: frozenset[str] = frozenset(),
) -> dict[str, Array]:
    """The columns of a .jsonl file's records. A column in `optional` is in every record or in none."""
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
