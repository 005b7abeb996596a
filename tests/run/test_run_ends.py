"""Runs that are refused, which leave nothing behind, and what is left of those that end early."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mismatches import wrong_from_step
from runs import CONFIG, GROWING, names, write_config

from nn_manual.config import load_config
from nn_manual.data import Spirals
from nn_manual.errors import ConfigError, DataError, GradientMismatch, NotFiniteError
from nn_manual.layers import Tanh
from nn_manual.model import Sequential
from nn_manual.run import new_run
from nn_manual.run.new_run import run
from nn_manual.run.training_run import TrainingRun
from nn_manual.run_directory.ledger_table import MISMATCH
from nn_manual.run_directory.metrics import read_run


class TestRefused:
    """Before anything is loaded, or at least before a directory is made."""

    def test_a_directory_that_holds_something(
        self, config_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Spirals, "load", lambda *_: pytest.fail("the data was loaded first"))
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "notes.txt").write_text("mine")
        with pytest.raises(DataError, match=r"run: the run directory exists and isn't empty, it holds notes\.txt$"):
            run(load_config(config_path), tmp_path / "run")
        assert names(tmp_path / "run") == ["notes.txt"]

    def test_a_directory_in_which_another_has_trained_since(
        self, config_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """While this one made its model."""

        def slow(*given: Any) -> TrainingRun:
            monkeypatch.setattr(new_run, "TrainingRun", TrainingRun)
            run(load_config(config_path, ["epochs=1"]), tmp_path / "run")
            return TrainingRun(*given)

        monkeypatch.setattr(new_run, "TrainingRun", slow)
        with pytest.raises(DataError, match=r"the run directory exists and isn't empty, it holds best\.safetensors$"):
            run(load_config(config_path), tmp_path / "run")
        assert load_config(tmp_path / "run" / "config.yaml").epochs == 1
        assert json.loads((tmp_path / "run" / "summary.json").read_text())["epoch"] == 1

    def test_no_parameters(self, tmp_path: Path) -> None:
        text = re.sub(r"model:\n(  .*\n)+", "model: [Tanh]\n", CONFIG)
        with pytest.raises(ConfigError, match=r"^model: no layer has parameters"):
            run(load_config(write_config(tmp_path, text)), tmp_path / "run")
        assert not (tmp_path / "run").exists()

    def test_a_model_that_no_memory_holds(self, tmp_path: Path) -> None:
        width = 3 * 10**11  # below what no machine holds, which a config isn't even read with
        config = load_config(write_config(tmp_path, CONFIG.replace("_features: 8", f"_features: {width}")))
        message = rf"small\.yaml:5:5: Linear\(.*out_features={width}.* has {3 * width:,} parameters; .* GiB"
        with pytest.raises(ConfigError, match=message):
            run(config, tmp_path / "run")
        assert not (tmp_path / "run").exists()

    def test_a_memory_of_the_check_that_no_machine_has(self, config_path: Path, tmp_path: Path) -> None:
        config = load_config(config_path, ["gradient_check={every: 1, memory: 999999999 GB}"])
        message = r"^override 'gradient_check=.*': gradient_check\.memory is 999999999 GB, and this machine has .* GB$"
        with pytest.raises(ConfigError, match=message):
            run(config, tmp_path / "run")
        assert not (tmp_path / "run").exists()

    def test_a_nested_model_that_no_memory_holds(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is refused as a flat one is, before any memory is asked for."""
        width, zeros = 10**11, np.zeros

        def few_zeros(size: int, dtype: Any) -> Any:
            assert size < 100, "memory was allocated"
            return zeros(size, dtype)

        monkeypatch.setattr(np, "zeros", few_zeros)
        huge = (
            f"  - Sequential:\n    - Tanh\n    - Sequential: [Linear: {{in_features: 8, out_features: {width}}}]\n"
            f"  - Linear: {{in_features: {width}, out_features: 8}}"
        )
        config = load_config(write_config(tmp_path, CONFIG.replace("  - Tanh", huge)))
        message = r"small\.yaml:8:20: Linear\(in_features=8, .* has 900,000,000,000 parameters; .* GiB"
        with pytest.raises(ConfigError, match=message):
            run(config, tmp_path / "run")
        assert not (tmp_path / "run").exists()


def notes(error: BaseException) -> list[str]:
    return error.__notes__


class TestEndsEarly:
    """What was recorded stays, whole; the error says where it stopped and where it lies."""

    def test_wrong_gradient(self, config_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        right = Tanh.backward
        wrong_from_step(monkeypatch, 8, Tanh, "backward", lambda *given: 2 * right(*given))
        with pytest.raises(GradientMismatch, match=r"wrong first in 1 \(Tanh\): 1\.grad_input") as caught:
            run(load_config(config_path), tmp_path / "run")
        assert notes(caught.value) == [
            f"stopped in epoch 3 at step 8; the run so far lies in {tmp_path / 'run'}",
            f"to run this step again: nn-manual check --replay {tmp_path / 'run' / 'mismatch-step-8'}",
            f"to start it again: nn-manual train --resume {tmp_path / 'run'}",
        ]
        found = names(tmp_path / "run")
        assert found == [*GROWING, "mismatch-step-8", "summary.json"]
        summary = json.loads((tmp_path / "run" / "summary.json").read_text())
        assert summary == {"epoch": 3, "epochs": 3, "step": 8, "stopped": "gradient mismatch"}
        recorded = read_run(tmp_path / "run")
        assert list(recorded.metrics["epoch"]) == [1, 2]
        assert list(recorded.gradients["step"]) == [1, 2, 3, 4, 5, 6, 7, 8]
        assert list(recorded.gradients["mismatch"]) == [*[""] * 7, "1.grad_input"]
        wrong = recorded.ledger.verdict[-1] == MISMATCH
        assert [name for name, is_wrong in zip(recorded.ledger.tensors, wrong, strict=True) if is_wrong] == [
            "1.grad_input", "0.grad_weight", "0.grad_bias"
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("every", "message", "step"),
        [
            (0, "updated 0.weight of 0 (Linear) holds ", 1),
            (1, "updated 0.weight holds ", 1),  # the check looks at the step itself
        ],
    )
    def test_overflow(self, config_path: Path, tmp_path: Path, every: int, message: str, step: int) -> None:
        settings = ["optimizer.SGD.lr=1e39", f"gradient_check.every={every}"]
        with pytest.raises(NotFiniteError, match=f"^{re.escape(message)}") as caught:
            run(load_config(config_path, settings), tmp_path / "run")
        assert notes(caught.value) == [
            "a smaller lr, or clip_grad_norm, keeps most runs finite",
            f"stopped in epoch 1 at step {step}; the run so far lies in {tmp_path / 'run'}",
        ]
        summary = json.loads((tmp_path / "run" / "summary.json").read_text())
        assert summary == {"epoch": 1, "epochs": 3, "step": 1, "stopped": "a value that is not finite"}

    def test_interrupt(self, config_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        calls: list[int] = []

        def interrupting(model: Sequential, input: Any) -> Any:
            calls.append(len(input))
            if len(calls) == 2:  # the validation of the second epoch
                raise KeyboardInterrupt
            return model.forward(input)[0]

        monkeypatch.setattr(Sequential, "__call__", interrupting)
        with pytest.raises(KeyboardInterrupt) as caught:
            run(load_config(config_path), tmp_path / "run")
        assert notes(caught.value)[0] == f"stopped in epoch 2 at step 6; the run so far lies in {tmp_path / 'run'}"
        recorded = read_run(tmp_path / "run")
        assert list(recorded.metrics["epoch"]) == [1]
        assert list(recorded.gradients["step"]) == [1, 2, 3, 4, 5, 6]
