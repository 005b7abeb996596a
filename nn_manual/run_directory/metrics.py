"""The files of a run directory, read together.

    config.yaml         the resolved config, text
    data.json           what was done to the data's numbers, and their names
    metrics.jsonl       one JSON object a line for each epoch
    gradients.jsonl     one JSON object a line for each checked step; empty where the check is off
    model.safetensors   the weights under torch's names
    summary.json        how it ended

These files may be read while the run still writes them, or after it was killed: nn_manual.run_directory.files writes
them so that this is safe. Reading them executes and imports nothing that lies in a run.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from nn_manual.arrays import Array
from nn_manual.errors import DataError
from nn_manual.messages.text import one_line
from nn_manual.run_directory.columns import columns, columns_of
from nn_manual.run_directory.files import check_exists, read_file
from nn_manual.run_directory.ledger import GRADIENTS_FILE
from nn_manual.run_directory.ledger_table import Ledger, read_gradients
from nn_manual.run_directory.records import read_object, read_records
from nn_manual.run_directory.schema import OF_EACH_EPOCH, Epoch, Summary
from nn_manual.run_directory.values import validated
from nn_manual.run_directory.within import within

CONFIG_FILE = "config.yaml"
METRICS_FILE = "metrics.jsonl"
WEIGHTS_FILE = "model.safetensors"
DATA_FILE = "data.json"
SUMMARY_FILE = "summary.json"

METRICS_COLUMNS = columns_of(Epoch)
#: For each loss, the column with the number of examples over which it is a sum.
COUNTS = {"train_loss": "num_train_examples", "validation_loss": "num_validation_examples"}
#: For each loss, the column with the same loss in bits per character.
BITS = {"train_loss": "train_bits_per_character", "validation_loss": "validation_bits_per_character"}
#: The columns that only some runs have: those of validation where there is a validation part, the accuracy where there
#: are classes, the counts where the loss is a sum, the bits where the targets are characters.
OPTIONAL_COLUMNS = METRICS_COLUMNS.keys() - OF_EACH_EPOCH


class Stop(NamedTuple):
    """Where a run stopped before its end: in which epoch, of how many, and why."""

    epoch: int
    num_epochs: int
    reason: str


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """What the files of a run directory say. A column is an array with one entry for each line of its file: int64,
    float64, or Python strings.
    """

    #: The last two parts of the directory's path: `digits/<time>` for a run in its default place.
    name: str
    #: The text of config.yaml.
    config: str
    #: The columns of METRICS_COLUMNS, one entry for each epoch; OPTIONAL_COLUMNS only where the run has them.
    metrics: dict[str, Array]
    #: The columns of GRADIENTS_COLUMNS and VERDICT_COLUMNS, one entry for each line of gradients.jsonl, which is one
    #: checked step or the worst of several. Their length is 0 where the check was off.
    gradients: dict[str, Array]
    #: One row for each line of gradients.jsonl.
    ledger: Ledger
    #: None for a run that has come to its end, is under way or was killed.
    stop: Stop | None = None


def read_run(path: Path) -> RecordedRun:
    """Read the run directory `path`. The last line of a .jsonl file may lack its end: then it is left out.

    Raises DataError, with the file and the line, for a file that is missing or can't be read, a line that isn't a
    JSON object, a key that is missing, a value of the wrong type, and a step whose tensors are not those of the first.
    null stands for a float that was not finite, and is read as NaN. Unknown keys are passed over.
    """
    check_exists(path)
    config_file = within(path, CONFIG_FILE)
    try:
        config = read_file(config_file).decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{config_file}: is not UTF-8 text: {error}") from error
    # A directory's name is bytes: they may be no UTF-8, which can't be printed, or have line ends.
    name = one_line(os.fsencode(Path(*path.resolve().parts[-2:])).decode(errors="replace"))
    metrics = read_metrics(path)
    gradients, ledger = read_gradients(within(path, GRADIENTS_FILE))
    return RecordedRun(name, config, metrics, gradients, ledger, _stop_of(read_summary(path)))


def read_metrics(path: Path) -> dict[str, Array]:
    """The columns of the run directory's metrics.jsonl, one entry for each epoch. Raises what `read_run` does."""
    metrics_file = within(path, METRICS_FILE)
    return columns(metrics_file, read_records(metrics_file), METRICS_COLUMNS, OPTIONAL_COLUMNS)


_SUMMARY = TypeAdapter(Summary)


def read_summary(directory: Path) -> Summary | None:
    """How a run ended; None where it has no summary, because it is under way or was killed. Raises DataError, with the
    key, for a value of another type.
    """
    path = within(directory, SUMMARY_FILE)
    if not path.exists():
        return None
    summary: Summary = validated(str(path), read_object(path), _SUMMARY)
    if "stopped" in summary and (missing := {"epoch", "epochs"} - summary.keys()):
        raise DataError(f'{path}: "{min(missing)}" is missing')
    return summary


def _stop_of(summary: Summary | None) -> Stop | None:
    if summary is None or "stopped" not in summary:
        return None
    return Stop(summary["epoch"], summary["epochs"], summary["stopped"])
