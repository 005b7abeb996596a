"""The checkpoint of a run, read back: its manifest as the schema has it, and what must agree in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from nn_manual.arrays import Array
from nn_manual.errors import DataError
from nn_manual.run_directory.checkpoints import MANIFEST_FILE, read_checkpoint, step_of
from nn_manual.run_directory.schema import Manifest
from nn_manual.run_directory.values import validated
from nn_manual.running.changes import values_of

_MANIFEST = TypeAdapter(Manifest)


class Kept(NamedTuple):
    """What a checkpoint of a run has: the manifest, the arrays by file and name, and the values of the config. `sha256`
    is that of the manifest, which has those of the arrays.
    """

    manifest: dict[str, Any]
    tensors: dict[str, dict[str, Array]]
    config: dict[str, Any]
    sha256: str


def read_kept(checkpoint: Path) -> Kept:
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
    return Kept(manifest, tensors, config, content["sha256"])


def check_place(kept: Kept, num_batches: int) -> None:
    """Raise ValueError unless step, epoch and batch are of one place in a run with so many batches an epoch."""
    manifest: Mapping[str, Any] = kept.manifest
    epoch, batch, num_epochs = manifest["epoch"], manifest["batch"], kept.config["epochs"]
    if manifest["step"] != epoch * num_batches + batch or batch >= num_batches:
        where = f"epoch {epoch} and batch {batch} of {num_batches}"
        raise ValueError(f"step: is {manifest['step']}, and {where} make {epoch * num_batches + batch}")
    if epoch > num_epochs:
        raise ValueError(f"epoch: is {epoch}, of {num_epochs}")
    # The lr is reduced so often whenever it is asked for.
    if (num_reductions := manifest["schedule"].get("num_reductions", 0)) > epoch:
        raise ValueError(f"schedule.num_reductions: is {num_reductions:g}, after epoch {epoch}")
