"""Runs that end with a gradient that differs."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
from runs import CONFIG, write_config

from nn_manual.config import load_config
from nn_manual.errors import GradientMismatch
from nn_manual.layers import Tanh
from nn_manual.optim import SGD
from nn_manual.run.bundle import read_bundle
from nn_manual.run.new_run import run
from nn_manual.run_directory.weights import write_weights

EVERYTHING = CONFIG + "lr_scheduler: {StepLR: {step_size: 1, gamma: 0.5}}\nclip_grad_norm: 0.1\n"


def wrong_tanh(self: Tanh, saved: Any, grad_output: Any) -> Any:  # noqa: ARG001 - a backward's signature
    return grad_output * (1 - saved)


def wrong_from_step(monkeypatch: pytest.MonkeyPatch, step: int, cls: type, method: str, wrong: Any) -> None:
    """Let a method be right up to a step, by the number of the optimizer's: a step that is made again is as it was."""
    right, right_step = getattr(cls, method), SGD.step
    optimizers = list[SGD]()

    def counted(optimizer: SGD) -> None:
        if not optimizers or optimizer.model.dtype == optimizers[0].model.dtype:  # or it's a copy in float64
            optimizers.append(optimizer)
        right_step(optimizer)

    @functools.wraps(wrong)  # a message names the file of the wrong method
    def switched(*given: Any) -> Any:
        num_steps = optimizers[-1].num_steps if optimizers else 0
        return (wrong if num_steps >= step - 1 else right)(*given)

    monkeypatch.setattr(SGD, "step", counted)
    monkeypatch.setattr(cls, method, switched)


def mismatch(directory: Path, text: str = CONFIG, *overrides: str) -> GradientMismatch:
    """The error of a run whose config stands beside `directory`."""
    with pytest.raises(GradientMismatch) as caught:
        run(load_config(write_config(directory.parent, text), overrides), directory)
    return caught.value


def rewrite(bundle: Path, tensors: dict[str, Any]) -> None:
    """Put other tensors into a bundle, with their checksum."""
    before = read_bundle(bundle / "bundle.yaml").sha256
    sha256 = write_weights(bundle / "tensors.safetensors", tensors)
    described = bundle / "bundle.yaml"
    described.write_text(described.read_text().replace(before, sha256))
