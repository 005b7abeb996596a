"""A step that differed from torch, kept so that it can be run again: on another day, after a fix, on another machine.

    mismatch-step-17/
        config.yaml           the run's, resolved
        tensors.safetensors   parameters, momentum and batch with which the step began, and the gradients between layers
        bundle.yaml           the step, its lr, the versions it ran with, the tensors' SHA-256

Nothing in a bundle is code. The module of a layer of the user's own is looked for in `layer_folder`, as the config says
or an override such as layer_folder=/home/me/layers.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from nn_manual.arrays import Array, carve
from nn_manual.config import RunConfig, dump_config, load_config
from nn_manual.config.files import dump_yaml
from nn_manual.config.tree import Errors, Place, plain, read_tree
from nn_manual.errors import ConfigError, DataError, GradientMismatch
from nn_manual.files import read_file, read_weights, write_atomically, write_weights
from nn_manual.model import Sequential
from nn_manual.trainer import Trainer

if TYPE_CHECKING:  # torch is only loaded for what is checked
    from nn_manual.check.checker import GradientChecker
    from nn_manual.check.report import GradientReport, StepCheck

CONFIG_FILE, TENSORS_FILE, BUNDLE_FILE = "config.yaml", "tensors.safetensors", "bundle.yaml"

#: What the names of a bundle's tensors begin with.
PARAMETER, VELOCITY, GRAD_OUTPUT = "parameter ", "velocity ", "grad_output "


@dataclass(frozen=True)
class Bundle:
    """What bundle.yaml holds. `num_steps` counts the optimizer's steps before; `tolerances` are fractions of the norm."""

    step: int
    num_steps: int
    lr: float
    found: str
    tolerances: dict[str, float]
    versions: dict[str, str]
    sha256: str


@dataclass(frozen=True)
class Replay:
    """A step run again, and what it was the first time. str() tells both."""

    bundle: Bundle
    outcome: GradientReport | StepCheck
    deviations: dict[str, float]

    @property
    def passed(self) -> bool:
        """Whether the step equals torch's now."""
        return not hasattr(self.outcome, "comparisons")

    def __str__(self) -> str:
        now = _versions()
        changed = [f"{name} {was}, now {now[name]}" for name, was in self.bundle.versions.items() if was != now[name]]
        worst = max(self.deviations, key=self.deviations.__getitem__, default="")
        same = "all equal to those recorded"
        if worst and self.deviations[worst] > 0:
            same = f"up to {self.deviations[worst]:.1e} of the norm off those recorded, in {worst}"
        return "\n".join(
            [
                f"step {self.bundle.step}, recorded: {self.bundle.found}",
                *(f"recorded with {change}" for change in changed),
                f"the gradients that the layers were handed: {same}",
                "",
                f"the step equals torch's now, in {len(self.outcome.absolute)} tensors"  # type: ignore[union-attr]  # passed
                if self.passed
                else str(self.outcome),
            ]
        )
