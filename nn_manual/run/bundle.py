"""A step that differed from torch's, kept so that it can be run again.

    mismatch-step-17/
        config.yaml           the run's, resolved
        bundle.yaml           the step, its lrs, what was found, the versions it ran with, the SHA-256 of the tensors
                              and of the files that the formulas stood in
        tensors.safetensors   what the step began with, and the gradients that its layers passed on
"""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import TypeAdapter

from nn_manual.arrays import Array, Padded, carve, unpadded
from nn_manual.config import RunConfig, dump_config
from nn_manual.config.config_file import dump_yaml
from nn_manual.config.yaml_tree import Errors, Place, plain, read_tree
from nn_manual.errors import ConfigError, DataError, GradientMismatch
from nn_manual.layers.with_lengths import LENGTHS
from nn_manual.messages.text import one_line, shell_word
from nn_manual.run.environment import versions
from nn_manual.run_directory.files import check_exists, read_file, write_atomically
from nn_manual.run_directory.values import SHA256, Count, Finite, NotNegative, Positive, Text, validated
from nn_manual.run_directory.weights import write_weights
from nn_manual.run_directory.within import within
from nn_manual.trainer.trainer import Trainer

if TYPE_CHECKING:  # torch is only loaded for what is checked
    from nn_manual.check.judge.report import GradientReport
    from nn_manual.check.whole_step.checker import GradientChecker

CONFIG_FILE, BUNDLE_FILE, TENSORS_FILE = "config.yaml", "bundle.yaml", "tensors.safetensors"

#: The tensors: INPUT, TARGET, LENGTHS where the sequences have some, and by the names of parameters and layers those
#: that begin with the others.
INPUT, TARGET, PARAMETER, GRAD_OUTPUT = "input", "target", "parameter", "grad_output "


@dataclass(frozen=True)
class Bundle:
    """What bundle.yaml holds. `lrs` are the optimizer's and those of its groups. `momenta` are theirs where a schedule
    moves them, else empty. `found` says what was wrong; `layer` and `tensor` say where it was wrong first, and are
    empty for a step that could not be compared. `tolerances` are fractions of the norm, by dtype; `sources` has the
    SHA-256 of each module that the formulas stood in, by its name. For a slice of a batch, `first_row` is the row of
    the batch at which it begins; for a whole batch, it is None.
    """

    step: Positive
    lrs: list[Finite]
    found: Text
    layer: Text
    tensor: Text
    tolerances: dict[Text, NotNegative]
    versions: dict[Text, Text]
    sources: dict[Text, SHA256]
    sha256: SHA256
    first_row: Count | None = None
    momenta: list[Finite] = field(default_factory=list)


_BUNDLE = TypeAdapter(Bundle)


def check_bundle_exists(directory: Path) -> None:
    """Raise DataError where `directory` isn't there or is no bundle. It may be a run: then the error names the bundles
    in it.
    """
    check_exists(directory, "bundle")
    if any(within(directory, name).exists() for name in (BUNDLE_FILE, TENSORS_FILE)):
        return
    folders = [folder for folder in sorted(directory.iterdir()) if not folder.is_symlink()]
    bundles = [shell_word(folder) for folder in folders if (folder / BUNDLE_FILE).exists()]
    if bundles:
        raise DataError(f"{directory}: is no bundle; did you mean --replay {' or '.join(bundles)}?")
    raise DataError(f"{directory}: is no bundle, and holds none: no step of it differed from torch's")


def read_bundle(path: Path) -> Bundle:
    """The file that `dump_yaml` made of a Bundle. Raises DataError, naming `path`, with the key of a value that is
    wrong.
    """
    errors = Errors()
    try:
        tree = read_tree(read_file(path).decode(), partial(Place, str(path)), errors)
        errors.raise_if_any()
    except (UnicodeDecodeError, ConfigError) as error:
        problem = str(error).partition("\n")[0]
        raise DataError(f"{path}: is no whole description of a bundle: {problem}") from error
    bundle: Bundle = validated(str(path), tree and plain(tree), _BUNDLE)
    return bundle


def keep(
    directory: Path, config: RunConfig, sources: dict[str, str], trainer: Trainer, mismatch: GradientMismatch
) -> str:
    """Write the bundle of the step that raised `mismatch` into `directory`, whole or not at all. Returns the sentence
    that says how to replay it, or why there is no bundle. `sources` are those of the run's start.
    """
    if mismatch.batch is None:
        return "it can't be replayed: it was not found in a step"
    assert trainer.checker is not None  # it has raised
    name = f"mismatch-step-{trainer.num_steps}"
    temporary = directory / f".{name}.{os.getpid()}.tmp"
    try:
        final = within(directory, name)
        temporary.mkdir()
        _write(temporary, config, sources, trainer, trainer.checker, mismatch)
        shutil.rmtree(final, ignore_errors=True)  # of a run that went on, and is wrong there again
        temporary.replace(final)
    except (DataError, OSError) as error:
        return f"it can't be replayed: {error}"
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return f"to run this step again: nn-manual check --replay {shell_word(final)}"


def _write(
    directory: Path,
    config: RunConfig,
    sources: dict[str, str],
    trainer: Trainer,
    checker: GradientChecker,
    mismatch: GradientMismatch,
) -> None:
    """Write the three files."""
    from nn_manual.check.compare.tolerances import SUM_OF_PRODUCTS

    report: GradientReport = mismatch.report
    layer, tensor = ("", "") if report.problem else (report.failures[0].layer, report.failures[0].name)
    found = report.problem or f"wrong first in {layer}: {tensor}"
    scheduled = [member.scheduled for member in trainer.optimizer.members]
    moves_momentum = trainer.lr_scheduler is not None and trainer.lr_scheduler.moves_momentum
    bundle = Bundle(
        step=trainer.num_steps,
        lrs=[each.lr for each in scheduled],
        momenta=[each.momentum for each in scheduled if moves_momentum and each.momentum is not None],
        found=one_line(" ".join(found.split())),  # what a layer raises may be any text
        layer=layer,
        tensor=tensor,
        tolerances=SUM_OF_PRODUCTS,
        versions=versions(),
        sources=sources,
        sha256=write_weights(directory / TENSORS_FILE, _tensors(checker, mismatch)),
        first_row=mismatch.first_row,
    )
    write_atomically(directory / CONFIG_FILE, dump_config(config).encode())
    write_atomically(directory / BUNDLE_FILE, dump_yaml(asdict(bundle)).encode())


def _tensors(checker: GradientChecker, mismatch: GradientMismatch) -> dict[str, Array]:
    """What the step began with, as the check has kept it: the model and the optimizer have moved since."""
    assert mismatch.batch is not None
    assert checker.update is not None  # a trainer's checker has an optimizer
    input, target = mismatch.batch
    tensors = {INPUT: unpadded(input), TARGET: target}
    if isinstance(input, Padded):
        tensors[LENGTHS] = input.lengths
    shapes = checker.model.parameter_shapes()
    for prefix, vector in {PARAMETER: checker.update.start.param, **checker.update.start.vectors}.items():
        tensors |= {f"{prefix} {name}": view for name, view in vars(carve(vector, shapes)).items()}
    buffers = {f"{PARAMETER} {name}": buffer for name, buffer in checker.recorded.buffers_before.items()}
    own = checker.recorded.first.input
    is_recorded = own is not None and len(own) == len(input)  # else it was the last slice of the batch
    return tensors | buffers | (grad_outputs(checker) if is_recorded else {})


def grad_outputs(checker: GradientChecker) -> dict[str, Array]:
    """The gradient that each layer of the recorded step received, for the layers that backward has reached."""
    grads = {calls.label: calls.grad_output for calls in checker.recorded.layers}
    return {GRAD_OUTPUT + label: grad for label, grad in grads.items() if isinstance(grad, np.ndarray)}
