"""The checkpoint of a run, read back: its manifest as the schema has it, and what must agree in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from nn_manual.arrays import Array
from nn_manual.errors import DataError
from nn_manual.run.changes import values_of
from nn_manual.run_directory.checkpoints import MANIFEST_FILE, read_checkpoint, step_of
from nn_manual.run_directory.schema import Manifest
from nn_manual.run_directory.values import validated

_MANIFEST = TypeAdapter(Manifest)


class RunCheckpoint(NamedTuple):
    """A checkpoint of a run: its manifest, its arrays by file and name, and the values of its config. `sha256` is that
    of the manifest, in which are those of the arrays.
    """

    manifest: dict[str, Any]
    tensors: dict[str, dict[str, Array]]
    config: dict[str, Any]
    sha256: str


def read_run_checkpoint(checkpoint: Path) -> RunCheckpoint:
    """The checkpoint in this folder. Raises DataError, with the file, and the key of a value that is wrong."""
    content, tensors = read_checkpoint(checkpoint)
    place = str(checkpoint / MANIFEST_FILE)
    manifest = validated(place, content, _MANIFEST)
    if manifest["step"] != step_of(checkpoint):
        raise DataError(f'{place}: "step" is {manifest["step"]}, and the folder is {checkpoint.name}')
    try:
        config = values_of(manifest["config"])
    except ValueError as error:
        raise DataError(f'{place}: "config" {error}') from error
    _check_counts(place, manifest, config["epochs"])
    return RunCheckpoint(manifest, tensors, config, content["sha256"])


def _check_counts(place: str, manifest: Mapping[str, Any], num_epochs: int) -> None:
    """Raise DataError for a count that is impossible at this place in a run of `num_epochs` epochs."""
    step, epoch, batch = (manifest[key] for key in ("step", "epoch", "batch"))
    tally, ledger, best = (manifest[key] for key in ("tally", "ledger", "best"))
    num_waiting = ledger.get("num_steps", 0)
    most = {
        "batch": (batch, step),
        "epoch": (epoch, min(num_epochs, step - batch)),  # each has a step at least
        # Whenever the lr is asked for, a loop reduces it this many times.
        "schedule.num_reductions": (manifest["schedule"].get("num_reductions", 0), epoch),
        "early_stopping.num_epochs_since": (manifest["early_stopping"]["num_epochs_since"], epoch),
        "best.epoch": (best.get("epoch", 0), epoch),
        "best.step": (best.get("step", 0), step - batch),
        "tally.num_steps": (tally["num_steps"], step),
        "tally.worst.step": (tally["worst"].get("step", 0), step),
        "ledger.last_step": (ledger.get("last_step", 0), step),
        "ledger.first_step": (ledger.get("first_step", 0), ledger.get("last_step", 0)),
        "ledger.num_steps": (num_waiting, min(ledger["window"], tally["num_steps"])),
    }
    for key, (count, at_most) in most.items():
        if count > at_most:
            raise DataError(f'{place}: "{key}" is {count:.15g}, expected at most {at_most}')
    for key, expected in (("epoch", epoch), ("step", step - batch)):
        if (found := manifest["last"].get(key, 0)) != expected:
            raise DataError(f'{place}: "last.{key}" is {found}, expected {expected}')
    has_lines = {"metrics.jsonl": epoch > 0, "gradients.jsonl": tally["num_steps"] > num_waiting}
    for name, expected in has_lines.items():
        if expected and not manifest["sizes"][name]:
            raise DataError(f'{place}: "sizes.{name}" is 0, expected at least 1')


def check_place(kept: RunCheckpoint, num_batches: int) -> None:
    """Raise ValueError unless step, epoch and batch name the same place in a run with `num_batches` an epoch."""
    step, epoch, batch = (kept.manifest[key] for key in ("step", "epoch", "batch"))
    if step != epoch * num_batches + batch or batch >= num_batches:
        where = f"epoch {epoch} and batch {batch} of {num_batches}"
        raise ValueError(f"step: is {step}, and {where} make {epoch * num_batches + batch}")
