"""The epochs of a run: its steps and checkpoints, and what is said and kept if something ends it early."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nn_manual.errors import DataError, GradientMismatch, Interrupted, NotFiniteError, out_of_memory
from nn_manual.messages.text import shell_word
from nn_manual.run.keeper import CheckpointKeeper
from nn_manual.run.silent import NoBar, NoWriter
from nn_manual.run.stop_request import StopRequest, stop_request
from nn_manual.run.training_run import TrainingRun
from nn_manual.run.writer import RunWriter
from nn_manual.run_directory import ledger, metrics
from nn_manual.run_directory.checkpoints import checkpoints_of, step_of
from nn_manual.trainer.progress import RunBar


def train(
    training: TrainingRun,
    directory: Path,
    writer: RunWriter | NoWriter,
    manifest: dict[str, Any] | None,
    origin: dict[str, Any],
) -> dict[str, Any]:
    """Train to the end, in a directory that exists, and return the summary. `manifest` is that of the checkpoint to go
    on from; without one, the files of lines are made. Raises what `run` does.
    """
    config = training.config
    _note_processes(training, writer)
    num_checks = config.epochs * training.num_batches // max(config.gradient_check.every, 1)
    window, sizes = ledger.window_size(num_checks), {} if manifest is None else manifest["sizes"]
    try:
        with (
            stop_request() as stop,
            training.trainer.finite.watching(),
            writer.epochs(sizes.get(metrics.METRICS_FILE)) as epochs,
            writer.gradients(window, sizes.get(ledger.GRADIENTS_FILE)) as gradients,
            writer.bar(training) as bar,
        ):
            if manifest is not None:
                gradients.load_state(manifest["ledger"])
            keeper = CheckpointKeeper(training, writer, origin, epochs, gradients)
            try:
                while not training.ended:
                    _train_epoch(training, keeper, stop, bar)
            except DataError:  # a disk that is full takes no more lines
                raise
            except BaseException as end:
                keeper.add_proven()
                if isinstance(end, GradientMismatch):
                    gradients.append_mismatch(training.trainer.num_steps, end.report)
                raise
        with training.trainer.averaged_weights():  # the weights that were evaluated
            summary = writer.finish(training, origin)
    except BaseException as end:
        training.group.claim_last_word()
        if training.trainer.prover is not None:  # who goes on makes the last steps again
            training.trainer.prover.drop()
        _say_how_it_ended(training, directory, writer, origin, end)
        raise
    writer.draw()
    return summary


def _note_processes(training: TrainingRun, writer: RunWriter | NoWriter) -> None:
    """Say how the processes share the work, if there are several."""
    config, group = training.config, training.group
    if group.size > 1:
        how = "one by one: the same bits on any number of processes" if config.bitwise else "as is fastest"
        writer.say(f"{group.size} processes, {config.slices} slices a batch; gradients are added up {how}")


def _train_epoch(training: TrainingRun, keeper: CheckpointKeeper, stop: StopRequest, bar: RunBar | NoBar) -> None:
    """Make the rest of the epoch under way, with its checkpoints, and evaluate. If a signal has asked to stop, write a
    checkpoint and raise Interrupted.
    """
    for step in bar.over(training.steps(), training.epoch):
        training.group.signum = stop.signum or 0  # the others learn of it in the next step
        if step.number < training.trainer.num_steps:  # one call made many steps: only its last one can be a stop
            continue
        keeper.add_proven()
        bar.note_one_by_one(training.trainer.prover)
        if len(training.losses) < training.num_batches:  # after the last batch, the end of the epoch is the place
            _stop_if_asked(stop, keeper)
            keeper.after_step()
    keeper.add_proven()
    record = training.end_epoch()
    keeper.epochs.append(record)
    keeper.epochs.flush()
    keeper.gradients.flush()
    is_best = training.best.get("epoch") == record["epoch"]
    bar.say_epoch(record, is_best=is_best)
    _stop_if_asked(stop, keeper)
    keeper.after_epoch()
    if training.early_stop.has_stopped:
        bar.say(training.early_stop.words(record["epoch"]))


def _stop_if_asked(stop: StopRequest, keeper: CheckpointKeeper) -> None:
    group = keeper.training.group
    signum = stop.signum if group.size == 1 else group.agreed_signum or None
    if signum is not None:
        keeper.write()
        raise Interrupted(signum)


def _say_how_it_ended(
    training: TrainingRun,
    directory: Path,
    writer: RunWriter | NoWriter,
    origin: dict[str, Any],
    end: BaseException,
) -> None:
    """Add notes to the error that ended a run early, keep a step that differed from torch's, and write a summary that
    says why the run ended. Any process may print the notes; the first alone writes.
    """
    config, step = training.config, training.trainer.num_steps
    epoch = max(1, -(-step // training.num_batches))
    # No lr changes what the first step computes before it updates the parameters.
    if isinstance(end, NotFiniteError) and (step > 1 or str(end).startswith("updated ")):
        end.add_note("a smaller lr, or clip_grad_norm, keeps most runs finite")
    end.add_note(f"stopped in epoch {epoch} at step {step}; the run so far lies in {directory}")
    if isinstance(end, GradientMismatch):
        writer.keep_mismatch(training, origin["sources"], end)
    if not isinstance(end, NotFiniteError) or checkpoints_of(directory):  # else it would end there again
        end.add_note(_how_to_resume(directory))
    reason = {GradientMismatch: "gradient mismatch", NotFiniteError: "a value that is not finite"}.get(type(end))
    if out_of_memory(end) is not None:
        reason = "not enough memory"
    words = reason or (str(end).partition("\n")[0] if isinstance(end, Interrupted | DataError) else type(end).__name__)
    if not training.ended:  # else there is a summary, or a resumed run makes it
        writer.write_stopped({"epoch": epoch, "epochs": config.epochs, "step": step, "stopped": words})


def _how_to_resume(directory: Path) -> str:
    """The sentence with the command that goes on with the run."""
    newest = next(map(step_of, checkpoints_of(directory)), None)
    what = "to start it again" if newest is None else f"to go on from step {newest}"
    return f"{what}: nn-manual train --resume {shell_word(directory)}"
