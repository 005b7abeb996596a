"""The weights that a run has kept: the best ones, or the last ones."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from nn_manual.arrays import Array
from nn_manual.config import RunConfig, dump_config
from nn_manual.errors import DataError
from nn_manual.optim.averaging import AVERAGE
from nn_manual.run.changes import changes, values_of
from nn_manual.run.manifest import read_run_checkpoint
from nn_manual.run.training_run import BEST_FILE, STATE_FILE
from nn_manual.run_directory.checkpoints import checkpoints_of
from nn_manual.run_directory.metrics import CONFIG_FILE, SUMMARY_FILE, WEIGHTS_FILE, read_summary
from nn_manual.run_directory.schema import Summary
from nn_manual.run_directory.weights import read_weights
from nn_manual.run_directory.within import within

#: Which weights: the best ones on the validation part, or those of the last step.
Checkpoint = Literal["best", "last"]


class Weights(NamedTuple):
    """Weights by torch's names, the file from which they come, and which ones they are."""

    weights: dict[str, Array]
    path: Path
    checkpoint: Checkpoint


def kept_weights(directory: Path, which: Checkpoint | None, config: RunConfig) -> Weights:
    """The weights that are asked for: from the end of the run, or from its newest checkpoint if it has not ended."""
    summary = read_summary(directory)
    if summary is None or "stopped" in summary:
        return _of_checkpoint(directory, which, summary, config)
    best = summary.get("best")
    if _takes_best(directory, which, has_best=best is not None):
        file = within(directory, BEST_FILE)
        return Weights(read_weights(file, best and best["sha256"]), file, "best")
    if "model_sha256" not in summary:
        raise DataError(f'{directory / SUMMARY_FILE}: "model_sha256" is missing')
    file = within(directory, WEIGHTS_FILE)
    return Weights(read_weights(file, summary["model_sha256"]), file, "last")


def _of_checkpoint(
    directory: Path, which: Checkpoint | None, summary: Summary | None, config: RunConfig
) -> Weights:
    """The weights in the newest checkpoint of a run that has not ended."""
    newest = next(iter(checkpoints_of(directory)), None)
    if newest is None:
        if summary is None:
            raise DataError(f"{directory}: the run has not ended, and has no checkpoint yet")
        raise DataError(f"{directory}: stopped before its first checkpoint: {summary['stopped']}")
    kept = read_run_checkpoint(newest)
    if lines := changes(kept.config, values_of(dump_config(config))):
        raise DataError(*(f"{directory / CONFIG_FILE}: {line} since the checkpoint" for line in lines))
    if _takes_best(directory, which, has_best=BEST_FILE in kept.tensors):
        return Weights(kept.tensors[BEST_FILE], newest / BEST_FILE, "best")
    state = kept.tensors.get(STATE_FILE, {})
    weights = {name: array for name, array in state.items() if " " not in name}  # the others are the optimizer's
    start = f"{AVERAGE} "
    weights |= {name.removeprefix(start): array for name, array in state.items() if name.startswith(start)}
    return Weights(weights, newest / STATE_FILE, "last")


def _takes_best(directory: Path, which: Checkpoint | None, *, has_best: bool) -> bool:
    if which == "best" and not has_best:
        raise DataError(f"{directory}: has no best weights, only those of its last step: --checkpoint last")
    return has_best and which != "last"
