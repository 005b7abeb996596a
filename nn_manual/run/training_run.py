"""A run under way: what it trains, what it has measured, how far it is, and what a checkpoint keeps of it."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

import numpy as np

from nn_manual.arrays import Array, carve
from nn_manual.config import RunConfig
from nn_manual.data import Split, num_batches
from nn_manual.model import Sequential
from nn_manual.run.recorded_loss import recorded_loss
from nn_manual.step.slices.cut import Slicing
from nn_manual.step.slices.process_group import ALONE, ProcessGroup
from nn_manual.trainer.early_stop import EarlyStop
from nn_manual.trainer.epoch_record import epoch_record
from nn_manual.trainer.progress import CheckedSteps, GradientTally
from nn_manual.trainer.steps import Step
from nn_manual.trainer.trainer import Trainer

#: The files of arrays in a checkpoint: the state from which the run goes on, the weights with the lowest validation
#: loss, and within an epoch the losses of its steps. Their mean needs all of them, as it is made when the epoch ends.
STATE_FILE, BEST_FILE, LOSSES_FILE = "state.safetensors", "best.safetensors", "losses.safetensors"

#: The arrays of a file, or one array.
_Kept = TypeVar("_Kept")


class TrainingRun:
    """One run of a config, from its start or from a checkpoint.

        while not training.ended:
            for step in training.steps():
                ...
            training.end_epoch()              # the line of metrics.jsonl

    Between two steps, `manifest()` and `tensors()` are all that `load` of another TrainingRun of the config needs to go
    on from there, bit for bit. Some batch of the epoch must be left, or the epoch must have ended.
    """

    def __init__(self, config: RunConfig, split: Split, model: Sequential, group: ProcessGroup = ALONE) -> None:
        self.split, self.group = split, group
        num_slices = config.slices or group.size
        slicing = Slicing(num_slices, group, config.bitwise, config.shard_optimizer, config.sync_batch_norm)
        self.trainer = Trainer(
            model,
            config.loss,
            config.new_optimizer(model),
            clip_grad_norm=config.clip_grad_norm,
            clip_grad_value=config.clip_grad_value,
            lr_scheduler=config.new_scheduler(),
            lr_step=config.lr_step,
            check_every=config.gradient_check.every,
            check_memory=config.gradient_check.num_bytes,
            check_threads=config.gradient_check.threads,
            compiled=config.compiled,
            blas=config.blas,
            threads=config.threads,
            loop_threads=config.loop_threads,
            slicing=slicing,
        )
        #: The config with the BLAS and the threads that were measured, if they had to be.
        self.config = config.with_choice(self.trainer.prepare(split.train, config.batch_size))
        if config.checkpoint.of_steps:
            self.trainer.stop_every = config.checkpoint.count
        self.early_stop, self.checked = early_stop_of(config), CheckedSteps()
        #: The epochs that have ended, and the loss and its denominator of each step of the one under way.
        self.epoch, self.losses = 0, list[tuple[float, float]]()
        #: The last line of metrics.jsonl.
        self.record: dict[str, Any] = {}
        #: The lowest validation loss, where it was, and the weights there.
        self.best: dict[str, Any] = {}
        self.best_weights: dict[str, Array] = {}
        #: What was compared and never proven up to the last checkpoint, and the part of this for which a run fails.
        self.unproven, self.vacuous = list[str](), list[str]()
        #: What the check remembers of the steps before this process, if there were any.
        self._check_before: dict[str, Any] | None = None
        self._seconds_before, self._start = 0.0, time.perf_counter()

    @property
    def tally(self) -> GradientTally:
        """What is counted of the steps that are proven."""
        return self.checked.tally

    @property
    def ended(self) -> bool:
        """Whether no epoch is left, or early stopping has ended the run."""
        return not self.losses and (self.epoch >= self.config.epochs or self.early_stop.has_stopped)

    @property
    def num_batches(self) -> int:
        """The steps of an epoch."""
        return num_batches(len(self.split.train.input), self.config.batch_size)

    @property
    def seconds(self) -> float:
        """How long the run has taken, with the time before its checkpoint."""
        return self._seconds_before + time.perf_counter() - self._start

    def steps(self) -> Iterator[Step]:
        """The steps that are left of the epoch under way. Each is made when it is asked for."""
        config = self.config
        steps = self.trainer.epoch(
            self.split.train, config.batch_size, seed=config.seed, epoch=self.epoch, first=len(self.losses)
        )
        for step in steps:
            self.losses.append((step.loss, step.denominator))
            self.checked.add(step)
            yield step

    def end_epoch(self) -> dict[str, Any]:
        """Evaluate, and return the line of metrics.jsonl."""
        recorded = partial(recorded_loss, config=self.config)
        record = epoch_record(self.trainer, self.epoch, self.losses, *self.split[:2], recorded=recorded)
        if "validation_loss" in record:
            self._keep_best(record)
            self.early_stop.after(record["validation_loss"])
        self.record = {**record, "lr": self.trainer.optimizer.lr, "seconds": self.seconds}
        self.epoch, self.losses = self.epoch + 1, []
        self._note_together()
        return self.record

    def _note_together(self) -> None:
        if self.trainer.prover is not None and self.trainer.prover.groups.most:  # else a checkpoint's number stays
            self.tally.num_together = self.trainer.prover.groups.most
        elif not self.trainer.slicing.is_plain and self.tally.num_steps:
            self.tally.num_together = 1

    def _keep_best(self, record: Mapping[str, Any]) -> None:
        if record["validation_loss"] < self.best.get("validation_loss", math.inf):
            self.best = {name: record[name] for name in ("epoch", "step", "validation_loss")}
            with self.trainer.averaged_weights():
                weights = self.trainer.model.state_dict(aliases=False)
                self.best_weights = {name: array.copy() for name, array in weights.items()}

    def tensors(self) -> dict[str, dict[str, Array]]:
        """The arrays of a checkpoint, by file and name: weights and buffers by torch's names, and the optimizer's
        vectors by the vector's name and the parameter's.
        """
        model, optimizer = self.trainer.model, self.trainer.optimizer
        state = model.state_dict(aliases=False)
        with self.trainer.whole_vectors():
            for kind, vector in optimizer.vectors.items():
                views = vars(carve(vector, model.parameter_shapes()))
                state |= {f"{kind} {name}": view for name, view in views.items()}
        files = {STATE_FILE: state} | ({BEST_FILE: self.best_weights} if self.best else {})
        return files | ({LOSSES_FILE: {"losses": np.array(self.losses)}} if self.losses else {})

    def manifest(self) -> dict[str, Any]:
        """What a checkpoint keeps beside the arrays: values that JSON can hold, and any floats. Of several processes,
        only the first knows what was never proven: another one may have had no slice of any compared step.
        """
        trainer, checker = self.trainer, self.trainer.checker
        self._note_together()
        if checker is not None and self.tally.num_steps:
            self.unproven, self.vacuous = list(checker.unproven()), list(checker.vacuous())
        return {
            "step": trainer.num_steps,
            "epoch": self.epoch,
            "batch": len(self.losses),
            "seconds": self.seconds,
            "last": self.record,
            "schedule": trainer.lr_scheduler.state() if trainer.lr_scheduler else {},
            "early_stopping": self.early_stop.state(),
            "tally": self.tally.state(),
            "check": checker.state() if checker is not None else self._check_before,
            "unproven": self.unproven,
            "vacuous": self.vacuous,
            "best": self.best,
        }

    def load(self, manifest: Mapping[str, Any], tensors: Mapping[str, Mapping[str, Array]]) -> None:
        """Go on from a checkpoint. Raises TypeError or ValueError for one that isn't of this config."""
        trainer, step = self.trainer, manifest["step"]
        state = dict(_of(tensors, STATE_FILE))
        counted = vars(trainer.model.buffer)
        for name, array in state.items():  # else bits would be read as other numbers, and numbers converted
            expected = counted[name].dtype if name in counted else trainer.model.dtype
            if array.dtype != expected:
                raise ValueError(f"{name!r} is {array.dtype}, and the model has {expected}")
        vectors: dict[str, Array] = {}
        for kind in trainer.optimizer.vectors:
            names = [f"{kind} {name}" for name in trainer.model.parameter_shapes()]
            vectors[kind] = np.concatenate([_of(state, name).ravel() for name in names])
            for name in names:
                del state[name]
        trainer.model.load_state_dict(state)
        with trainer.whole_vectors(changed=True):
            trainer.optimizer.load_state({"num_steps": np.array(step), **vectors})
        trainer.num_steps = trainer.model.num_steps = step
        if trainer.lr_scheduler is not None:
            trainer.lr_scheduler.load_state(manifest["schedule"])
        self.early_stop.load_state(manifest["early_stopping"])
        self.tally.load_state(manifest["tally"])
        self._check_before = check = manifest["check"]
        if trainer.checker is not None and check is not None:
            trainer.checker.load_state(check)
        self.epoch, self.record, self.best = manifest["epoch"], manifest["last"], manifest["best"]
        self.losses = _losses_of(manifest, tensors)
        self.unproven = manifest["unproven"]
        self.vacuous = manifest.get("vacuous", self.unproven)  # older runs don't say
        if check is not None and not self.unproven:  # before the end of an older run, only the check says
            self.vacuous = check["unproven"]
            self.unproven = [*self.vacuous, *(check.get("zero_in_theory") or ())]
        self._seconds_before = manifest["seconds"]
        self.best_weights = dict(_of(tensors, BEST_FILE)) if self.best else {}


def early_stop_of(config: RunConfig) -> EarlyStop:
    """What ends a run of the config early."""
    settings = config.early_stopping
    return EarlyStop(None) if settings is None else EarlyStop(settings.patience, settings.min_delta)


def _of(kept: Mapping[str, _Kept], name: str) -> _Kept:
    if name not in kept:
        raise ValueError(f"it has no {name!r}")
    return kept[name]


def _losses_of(manifest: Mapping[str, Any], tensors: Mapping[str, Mapping[str, Array]]) -> list[tuple[float, float]]:
    """The loss and its denominator of each step of the epoch under way. Older checkpoints have them in the manifest.
    Raises ValueError where there are more or fewer of them than steps.
    """
    kept = _of(tensors[LOSSES_FILE], "losses").tolist() if LOSSES_FILE in tensors else manifest.get("losses", [])
    if len(kept) != manifest["batch"]:
        raise ValueError(f"losses: there are {len(kept)}, and batch is {manifest['batch']}")
    return [(loss, denominator) for loss, denominator in kept]
