"""A step that differed from torch's, run again from its bundle: on another day, after a fix, on another machine.

A bundle has the tensors of a step, and names its formulas. It doesn't have what a layer keeps from step to step. A
mistake that comes from there is not reproduced, and a replay says so.

Nothing in a bundle is code. A layer of the user's own is imported from the folder that config.yaml names, or an
override: `nn-manual check --replay mismatch-step-17 layer_folder=/home/me/layers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nn_manual.arrays import Array, Padded, placeholder
from nn_manual.config import RunConfig, load_config, reported
from nn_manual.data import Examples
from nn_manual.errors import ConfigError, DataError, GradientMismatch
from nn_manual.layers.with_lengths import LENGTHS
from nn_manual.messages.text import counted, one_line
from nn_manual.optim import Optimizer
from nn_manual.optim.scheduler_base import Scheduled
from nn_manual.run.bundle import (
    BUNDLE_FILE,
    CONFIG_FILE,
    GRAD_OUTPUT,
    INPUT,
    PARAMETER,
    TARGET,
    TENSORS_FILE,
    Bundle,
    check_bundle_exists,
    grad_outputs,
    read_bundle,
)
from nn_manual.run.environment import versions
from nn_manual.run.sources import changed_sources, sources_of
from nn_manual.run_directory.weights import read_weights
from nn_manual.run_directory.within import within
from nn_manual.step.slices.cut import ONE_SLICE, Slicing, cut
from nn_manual.trainer.trainer import Trainer

if TYPE_CHECKING:  # torch is only loaded for what is checked
    from nn_manual.check.judge.report import GradientReport


@dataclass(frozen=True)
class Replay:
    """A step that was run again. str() reports what it was and what it is.

    `report` is None where the step equals torch's now. `deviations` say how far the gradients that the layers received
    are from the recorded ones, as fractions of their norm: 0 where they are exactly the same. `changed` names the
    modules whose file has changed. `moved` names a gradient that was computed before the wrong tensor, and that
    deviates by more than rounding.
    """

    bundle: Bundle
    report: GradientReport | None
    deviations: Mapping[str, float]
    changed: tuple[str, ...]
    moved: str | None

    @property
    def passed(self) -> bool:
        """Whether the recorded step equals torch's now, because a formula was changed."""
        return self.report is None and self.not_reproduced is None

    @property
    def not_reproduced(self) -> str | None:
        """Why a step that equals torch's now doesn't count as corrected; None where it does, or is still wrong."""
        if self.report is not None:
            return None
        if self.moved is not None:
            return f"{self.moved} is not the recorded one, though it was computed before {self.bundle.tensor}"
        if not self.changed:
            return (
                "it equals torch's with the very sources that it was wrong with; does a layer keep a state of its own "
                "between steps?"
            )
        return None

    def __str__(self) -> str:
        lines = [f"step {self.bundle.step} was: {self.bundle.found}"]
        was, now = self.bundle.versions, versions()
        lines += [f"{name} was {was.get(name)}, is {now[name]}" for name in now if was.get(name) != now[name]]
        worst = max(self.deviations, key=self.deviations.__getitem__, default="")
        if worst and self.deviations[worst] > 0:
            lines.append(f"{worst} differs by {self.deviations[worst]:.1e} of its norm from the recorded one")
        elif worst:
            lines.append("the gradients between the layers are the recorded ones, bit for bit")
        return "\n".join([*map(one_line, lines), "", self._verdict()])

    def _verdict(self) -> str:
        if self.report is not None:
            return str(self.report)
        since = f", since {' and '.join(self.changed)} changed" if self.passed else ", but not reproduced"
        return one_line(f"step {self.bundle.step} is: equal to torch's{since}")


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # as in a run
def replay(directory: Path, overrides: Sequence[str] = ()) -> Replay:
    """Run the step in the bundle `directory` again: forward, loss, backward, clipping and the optimizer's step, checked
    as in training, and as closely as the steps that are looked at again there.

    Raises DataError for a bundle that is missing, incomplete or corrupt. Raises ConfigError where its config can't be
    read, and where a layer of the user's own isn't found or raises an error outside of the comparison.
    """
    check_bundle_exists(directory)
    bundle = read_bundle(within(directory, BUNDLE_FILE))
    tensors = read_weights(within(directory, TENSORS_FILE), bundle.sha256)
    config = _config(within(directory, CONFIG_FILE), overrides)
    if config.dtype not in bundle.tolerances:
        raise DataError(f"{directory / BUNDLE_FILE}: has no tolerance for {config.dtype}")
    with reported(config, checked=True):
        return _run_again(config, directory, bundle, tensors)


def _run_again(config: RunConfig, directory: Path, bundle: Bundle, tensors: Mapping[str, Array]) -> Replay:
    trainer = _trainer(config, directory, bundle, tensors)
    trainer.num_steps = bundle.step - 1
    trainer.model.first_row = bundle.first_row or 0
    report = None
    input = tensors[INPUT]
    batch = Examples(Padded(input, tensors[LENGTHS]) if LENGTHS in tensors else input, tensors[TARGET])
    try:
        for _ in trainer.epoch(batch, len(batch.input), seed=config.seed, epoch=0):
            pass
    except GradientMismatch as mismatch:
        report = mismatch.report
    assert trainer.checker is not None
    if report is None and trainer.slicing.is_plain:  # a run looks closely at some steps, and may have found it there
        seen = trainer.checker.look_closely()
        report = None if seen.agrees else seen
    replayed = grad_outputs(trainer.checker)
    recorded = {name: tensor for name, tensor in tensors.items() if name.startswith(GRAD_OUTPUT) and name in replayed}
    deviations = {name: _deviation(replayed[name], tensor) for name, tensor in recorded.items()}
    now = sources_of(config)
    changed = tuple(changed_sources(bundle.sources, now))
    earlier = _computed_before(bundle, [calls.label for calls in trainer.checker.recorded.layers])
    moved = [name for name in earlier if not deviations.get(name, 0) <= bundle.tolerances[config.dtype]]
    return Replay(bundle, report, deviations, changed, moved[0] if moved else None)


def _computed_before(bundle: Bundle, labels: list[str]) -> list[str]:
    """The names of the gradients that were passed on before the wrong tensor was computed, the last layer's first. If
    that tensor is a gradient of a layer, these are what this layer and all after it received.
    """
    if bundle.layer not in labels or bundle.tensor.endswith(".output"):
        return []
    return [GRAD_OUTPUT + label for label in reversed(labels[labels.index(bundle.layer) :])]


def _config(path: Path, overrides: Sequence[str]) -> RunConfig:
    if not path.is_file():
        raise DataError(f"{path}: is missing from the bundle")
    try:
        return load_config(path, overrides, folder=Path.cwd())
    except ConfigError as error:
        if "no module" in str(error):
            error.add_note("if classes of your own lie elsewhere now, say where: add layer_folder=/path/to/them")
        raise


def _trainer(config: RunConfig, directory: Path, bundle: Bundle, tensors: Mapping[str, Array]) -> Trainer:
    """The run's trainer, at the start of the step. Raises DataError where the tensors don't fit the config."""
    model = config.new_model()
    optimizer = config.new_optimizer(model)
    optimizer.num_steps = bundle.step - 1
    _set_scheduled(optimizer, bundle, directory)  # before the check is made: it takes the momentum as a setting
    try:
        for name, vector in optimizer.vectors.items():
            # load_state_dict checks names, shapes and dtypes. An optimizer keeps nothing about buffers.
            model.load_state_dict(_named(tensors, f"{name} ") | vars(model.buffer))
            vector[...] = model.param_arena
        model.load_state_dict(_named(tensors, f"{PARAMETER} "))
        missing = {INPUT, TARGET} - tensors.keys()
        if missing:
            raise ValueError(f"there is no {' and no '.join(sorted(missing))}")
        model.check_dtype(tensors[INPUT])
        if LENGTHS in tensors:
            Padded(tensors[INPUT], tensors[LENGTHS])
        elif model.lengths_heeded_by:
            raise ValueError(f"there is no {LENGTHS}")
        prediction_shape = model.output_shape(tensors[INPUT].shape)
        config.loss.check_target(placeholder(prediction_shape, model.dtype), tensors[TARGET])
    except (ValueError, TypeError) as error:
        raise DataError(f"{directory / TENSORS_FILE}: doesn't fit {CONFIG_FILE}: {error}") from error
    # A wrong slice is replayed as a batch of its own; a wrong sum of slices takes all of them.
    is_slice, num_slices = bundle.first_row is not None, config.slices or 1
    sizes = {rows.stop - rows.start for rows in cut(config.batch_size, num_slices if is_slice else 1)}
    compiled = config.compiled and len(tensors[INPUT]) in sizes  # a smaller last batch never is
    return Trainer(
        model,
        config.loss,
        optimizer,
        clip_grad_norm=config.clip_grad_norm,
        clip_grad_value=config.clip_grad_value,
        compiled=compiled,
        blas=config.blas if compiled else None,
        threads=config.threads if compiled else None,
        loop_threads=config.loop_threads if compiled else None,
        slicing=ONE_SLICE if is_slice else Slicing(num_slices, sync_batch_norm=config.sync_batch_norm),
    )


def _set_scheduled(optimizer: Optimizer, bundle: Bundle, directory: Path) -> None:
    """Give the optimizer and its groups the lrs of the step, and the momenta if a schedule moved them. Raises DataError
    where their numbers differ.
    """
    members = optimizer.members
    momenta: Sequence[float | None] = bundle.momenta or [member.scheduled.momentum for member in members]
    for count, nouns in ((len(bundle.lrs), ("lr", "lrs")), (len(momenta), ("momentum", "momenta"))):
        if count != len(members):
            given = counted(count, *nouns)
            raise DataError(f"{directory / BUNDLE_FILE}: has {given}, {CONFIG_FILE} asks for {len(members)}")
    for member, lr, momentum in zip(members, bundle.lrs, momenta, strict=True):
        member.scheduled = Scheduled(lr, momentum)


def _named(tensors: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _deviation(replayed: Array, recorded: Array) -> float:
    """max|replayed - recorded| as a fraction of max|recorded|; infinite where the shapes differ."""
    if np.array_equal(replayed, recorded, equal_nan=True):
        return 0.0
    if replayed.shape != recorded.shape:
        return float("inf")
    return float(np.abs(replayed - recorded).max() / np.abs(recorded).max())
