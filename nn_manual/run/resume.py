"""A run that goes on from a checkpoint, and ends as if it had never stopped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nn_manual.config import RunConfig, dump_config, load_config, reported
from nn_manual.errors import ConfigError, DataError, raise_if_out_of_memory
from nn_manual.messages.text import counted, one_line, shell_word
from nn_manual.run.agreement import agree
from nn_manual.run.changes import MAY_CHANGE, changes, differences, values_of
from nn_manual.run.early_stop_on_resume import follow_again, how_to_go_on
from nn_manual.run.environment import blas, set_blas_threads
from nn_manual.run.epochs import train
from nn_manual.run.event_log import EventLog
from nn_manual.run.init_from import start_from_file
from nn_manual.run.keeper import origin_of
from nn_manual.run.loading import check_machine, load, quiet
from nn_manual.run.manifest import RunCheckpoint, check_place, read_run_checkpoint
from nn_manual.run.needed_memory import note_of_memory
from nn_manual.run.silent import NoWriter, writer_of
from nn_manual.run.sources import changed_sources
from nn_manual.run.training_run import TrainingRun
from nn_manual.run.writer import FIGURE_FILE, RunWriter
from nn_manual.run_directory import files, metrics
from nn_manual.run_directory.checkpoints import (
    CHECKPOINTS_DIRECTORY,
    MANIFEST_FILE,
    checkpoints_of,
    step_of,
)
from nn_manual.run_directory.within import within
from nn_manual.step.slices.process_group import ALONE, ProcessGroup


@quiet
def resume(
    path: Path, overrides: Sequence[str] = (), group: ProcessGroup = ALONE, *, has_log: bool = False
) -> tuple[Path, dict[str, Any] | None]:
    """Go on with the run directory `path` from its newest checkpoint, or from the checkpoint `path`; later checkpoints
    are then removed. Without a checkpoint, the run starts anew. Returns the run directory and the summary. For a run
    that had finished, it says what to add to go on, and returns None instead of the summary. If the run has a log for
    TensorBoard, the log goes on; with `has_log` there is one from then on, with all epochs.

    On the same machine, with the same versions, the run ends like one that never stopped: with the same weights, state
    of the optimizer, ledger and metrics, except for their seconds. Where a version or a file has changed, a note on
    standard error says so. Raises ConfigError for a difference of the config in other keys than MAY_CHANGE and
    PLACES_OF_DATA, DataError for a directory that is no run, a checkpoint that can't be read and other data, and what
    `run` raises. All processes of a `group` call this; they may be more or fewer than those that wrote the checkpoint.
    """
    directory, _ = _place(path)
    writer = writer_of(directory, group, has_log=has_log or EventLog.is_in(directory))
    with writer.lock():
        directory, checkpoint = _place(path)  # again, under the lock: another process may have written since
        writer.remove_temporary()
        kept = None if checkpoint is None else _read(checkpoint)
        config_file = within(directory, metrics.CONFIG_FILE)
        config = load_config(config_file, overrides, folder=Path.cwd()).with_slices(group.size)
        _check_config(config, config_file, kept)
        if checkpoint is None and _is_finished(directory):
            if overrides:
                raise DataError(f"{directory}: this run has finished, and has no checkpoint to go on from")
            writer.say(f"{one_line(str(directory))}: this run has finished, and has no checkpoint to go on from")
            return directory, None
        check_machine(config, goes_on=True)
        if kept is not None:
            _take_threads(kept.manifest["blas"].get("num_threads"))
        with reported(config, checked=config.gradient_check.every == 1):
            split, model = load(config)
            if checkpoint is None:
                for note in start_from_file(config, split, model):
                    writer.note(note)
            if needs := note_of_memory(config, split.train.input.shape):
                writer.note(needs)
            name, state = str(checkpoint and checkpoint.name), str(kept and kept.sha256)
            agree(config, split, model, group, checkpoint=name, state=state)
            group.connect()
            training = TrainingRun(config, split, model, group)
            config, origin = training.config, origin_of(training.config, split)
            if checkpoint is not None and kept is not None:
                _load(training, kept, checkpoint)
                _compare(origin, kept.manifest, checkpoint, writer)
                _check_sizes(directory, kept.manifest["sizes"], training.epoch)
                if kept.config.get("early_stopping") != values_of(dump_config(config))["early_stopping"]:
                    follow_again(training, directory)
            if training.ended and _is_finished(directory, training.epoch) and within(directory, FIGURE_FILE).exists():
                ended = f"{one_line(str(directory))}: {how_to_go_on(training)}"
                is_changed = kept is not None and any(differences(kept.config, values_of(dump_config(config))))
                if training.early_stop.has_stopped and is_changed:
                    raise ConfigError(ended)
                writer.say(ended)
                return directory, None
            writer.cut_back(checkpoint)
            writer.write_config(config, split)
            writer.remember(group)
            where = "from the start" if checkpoint is None else f"from step {training.trainer.num_steps:,}"
            writer.say(f"going on {where} of {config.epochs * training.num_batches:,}")
            return directory, train(training, directory, writer, kept and kept.manifest, origin)


def _is_finished(directory: Path, epoch: int | None = None) -> bool:
    """Whether the run has finished; after this epoch, if one is given: an earlier checkpoint may end it earlier."""
    summary = metrics.read_summary(directory)
    return summary is not None and "stopped" not in summary and epoch in (None, summary.get("epoch"))


def _take_threads(num_threads: int | None) -> None:
    """Let the BLAS use as many threads as in the run: their number decides the last bits of a product."""
    if num_threads is not None and num_threads != blas().get("num_threads"):
        set_blas_threads(num_threads)


def _place(path: Path) -> tuple[Path, Path | None]:
    """The run directory, and the checkpoint in it. Raises DataError where there is no run."""
    absolute = path.absolute()  # within the folder of the checkpoints, a user may write `step-9` alone
    is_among_checkpoints = step_of(path) is not None and absolute.parent.name == CHECKPOINTS_DIRECTORY
    if is_among_checkpoints and (path / MANIFEST_FILE).exists():
        return absolute.parent.parent, absolute
    files.check_exists(path, "run" if step_of(path) is None else "checkpoint")
    if not within(path, metrics.CONFIG_FILE).is_file():
        kind, file = ("checkpoint", MANIFEST_FILE) if is_among_checkpoints else ("run", metrics.CONFIG_FILE)
        raise DataError(f"{path}: no such {kind}: it has no {file}")
    return path, next(iter(checkpoints_of(path)), None)


def _read(checkpoint: Path) -> RunCheckpoint:
    """Read a checkpoint. An error offers the checkpoint before it."""
    try:
        return read_run_checkpoint(checkpoint)
    except DataError as error:
        raise _offering(error, checkpoint) from error


def _offering(error: DataError, checkpoint: Path) -> DataError:
    """The error with a note that says from where else the run can go on."""
    run, step = checkpoint.parent.parent, step_of(checkpoint) or 0
    older = [other for other in checkpoints_of(run) if (step_of(other) or 0) < step]
    if older:
        error.add_note(f"to go on from the one before it: nn-manual train --resume {shell_word(older[0])}")
    elif _is_finished(run):
        error.add_note("there is none before it: a new run with the same config ends in the same way")
    else:
        error.add_note(f"there is none before it; without {checkpoint} the run starts anew")
    return error


def _check_config(config: RunConfig, config_file: Path, kept: RunCheckpoint | None) -> None:
    """Raise ConfigError where the config differs, in a key that must not change, from that of the checkpoint, or of the
    run if there is no checkpoint.
    """
    was = values_of(dump_config(load_config(config_file))) if kept is None else kept.config
    if lines := changes(was, values_of(dump_config(config))):
        raise ConfigError(*lines, f"a run that goes on may only change {', '.join(MAY_CHANGE)}, and where data lie")
    num_epochs = 0 if kept is None else kept.manifest["epoch"]
    if config.epochs <= num_epochs and config.epochs != was["epochs"]:
        raise ConfigError(f"epochs must be above {num_epochs}, which the run has done, not {config.epochs}")


def _load(training: TrainingRun, kept: RunCheckpoint, checkpoint: Path) -> None:
    try:
        check_place(kept, training.num_batches)
        training.load(kept.manifest, kept.tensors)
    except (TypeError, ValueError, OverflowError) as error:
        problem = f"{checkpoint}: is no checkpoint of this run: {error}"
        raise _offering(DataError(problem), checkpoint) from error


def _check_sizes(directory: Path, sizes: dict[str, int], num_epochs: int) -> None:
    """Raise DataError where a file that grows with the run is shorter than it was, or has lines of other epochs."""
    for name, size in sizes.items():
        path = within(directory, name)
        try:
            found = path.stat().st_size
            with path.open("rb") as file:
                start = 0 if name == metrics.METRICS_FILE else file.seek(max(size - 1, 0))
                content = file.read(min(size, found) - start) if start < found else b""
        except OSError as error:
            raise_if_out_of_memory(error)
            raise DataError(f"{path}: can't be read: {error.strerror}") from error
        if found < size:
            raise DataError(f"{path}: has {counted(found, 'byte')}, and had {size:,} when the checkpoint was written")
        if size and not content.endswith(b"\n"):
            raise DataError(f"{path}: no line ends at byte {size}, where the checkpoint was written")
        if name == metrics.METRICS_FILE and (num_lines := content.count(b"\n")) != num_epochs:
            raise DataError(f"{path}: has {counted(num_lines, 'line')} up to byte {size}, expected {num_epochs}")


def _compare(
    origin: dict[str, Any], manifest: dict[str, Any], checkpoint: Path, writer: RunWriter | NoWriter
) -> None:
    """Raise DataError for other data. Note on standard error what else has changed."""
    if origin["data"] != manifest["data"]:
        raise DataError(f"{checkpoint}: the data are not those that the run was trained on")
    for kind in ("versions", "blas"):
        for name, was in manifest[kind].items():
            if (now := origin[kind].get(name)) != was:
                writer.note(f"note: {name} was {was}, is {now}: the last bits may differ")
    if changed := changed_sources(manifest["sources"], origin["sources"]):
        writer.note(f"note: {', '.join(changed)} changed since the run began")
