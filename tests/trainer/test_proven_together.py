"""Steps that are proven together, as a user sees them: what is said, what is written, and loops that are left early."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.reliability.kills import end_of
from classifiers import BATCH, classifier, examples, train
from runs import CONFIG, lines, write_config

from nn_manual.arrays import Array
from nn_manual.check.judge.step_check import StepCheck
from nn_manual.config import load_config
from nn_manual.errors import GradientMismatch, Interrupted, NotFiniteError
from nn_manual.layers import Tanh
from nn_manual.run.new_run import run
from nn_manual.trainer.steps import Step, Steps
from nn_manual.trainer.trainer import Trainer
from nn_manual.use.summary import summary

OWN = """
from dataclasses import dataclass

import numpy as np
import torch
from nn_manual.layers import Layer


@dataclass(eq=False)
class Branching(Layer):
    def forward(self, input):
        output = np.tanh(input)
        return output, output

    def backward(self, saved, grad_output):
        return grad_output * (1 - saved * saved)

    def reference(self, input):
        return torch.tanh(input) if input.sum() > 0 else 1 - 2 / (torch.exp(2 * input) + 1)


@dataclass(eq=False)
class ByDifferences(Layer):
    forward, backward = Branching.forward, Branching.backward
"""
OF_VMAP = (
    "1 (Branching) under torch.vmap raised RuntimeError: vmap: It looks like you're attempting to use a Tensor in some "
    "data-dependent control flow"
)
OF_DIFFERENCES = "1 (ByDifferences) is compared with its own forward in float64, the gradients with central differences"
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
NOTE = "note: each step is proven by itself, which takes longer: "


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A config with a layer whose reference branches on its values."""
    (tmp_path / "my_layers.py").write_text(OWN)
    return write_config(tmp_path, CONFIG.replace("  - Tanh\n", "  - my_layers:Branching\n"))


class TestALayerThatCanNotBeStacked:
    @pytest.mark.parametrize(("name", "reason"), [("Branching", OF_VMAP), ("ByDifferences", OF_DIFFERENCES)])
    def test_is_named_once(
        self, own: Path, tmp_path: Path, name: str, reason: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        found = run(load_config(own, [f"model.1=my_layers:{name}"]), tmp_path / "run")
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(NOTE + reason)
        assert (found["gradient_check"]["steps"], found["gradient_check"]["together"]) == (9, 1)

    def test_is_named_by_summary(self, own: Path) -> None:
        stated = " ".join(line.strip() for line in summary(load_config(own)).splitlines())
        said = "gradient check: every step, each proven by itself in 0.0084 MB, and torch itself 270 MB"
        assert stated.endswith(f"{said}: {OF_VMAP}")

    def test_its_values_are_proven_all_the_same(self, own: Path, tmp_path: Path) -> None:
        (tmp_path / "my_layers.py").write_text(OWN.replace("1 - saved * saved", "1 - saved"))
        with pytest.raises(GradientMismatch, match=r"wrong first in 1 \(Branching\): 1.grad_input"):
            run(load_config(own), tmp_path / "run")


@pytest.mark.parametrize(
    ("setting", "together"),
    [("every=1", 256), ("memory=45 kB", 4), ("memory=1 kB", 1), ("memory=0 kB", 1), ("every=0", 0)],
)
def test_the_summary_of_a_run(
    tmp_path: Path, setting: str, together: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """For want of memory alone nothing is said: who set it knows."""
    found = run(load_config(write_config(tmp_path), [f"gradient_check.{setting}"]), tmp_path / "run")
    assert found["gradient_check"]["together"] == together
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("memory", ["1 MB", "45 kB", "1 kB"])
@pytest.mark.parametrize("every", [1, 3])
def test_the_memory_changes_neither_weights_nor_metrics(tmp_path: Path, memory: str, every: int) -> None:
    config = write_config(tmp_path)
    run(load_config(config, [f"gradient_check.every={every}"]), tmp_path / "whole")
    run(load_config(config, [f"gradient_check={{every: {every}, memory: {memory}}}"]), tmp_path / "other")
    whole, other = (end_of(tmp_path / name) for name in ("whole", "other"))
    same = {"weights", "best", "state", "metrics"} | ({"ledger"} if memory != "1 kB" else set())
    assert {name: whole[name] for name in same} == {name: other[name] for name in same}


@pytest.mark.slow
class TestALoopThatIsLeftEarly:
    """Of 4 steps an epoch, the first is proven at once."""

    def test_the_next_call_proves_what_waits(self) -> None:
        for call in (
            lambda trainer: trainer.flush(),
            lambda trainer: train(trainer, 1),
            lambda trainer: trainer.train_step(*examples(8)),
            lambda trainer: trainer.evaluate(examples()),
        ):
            trainer = classifier()
            checks = [check_of(step) for step in left_after(trainer, 3)]
            assert [check.proven for check in checks] == [True, False, False]
            call(trainer)
            assert all(check.proven for check in checks)

    def test_what_is_wrong_is_raised_by_the_next_call(self, monkeypatch: pytest.MonkeyPatch) -> None:
        trainer = classifier()
        right, num_calls = Tanh.backward, 0

        def wrong(layer: Tanh, saved: Array, grad_output: Array) -> Array:
            nonlocal num_calls
            num_calls += 1
            return right(layer, saved, grad_output) * (2 if num_calls == 2 else 1)

        monkeypatch.setattr(Tanh, "backward", wrong)
        left_after(trainer, 3)
        with pytest.raises(GradientMismatch, match=r"wrong first in 1 \(Tanh\): 1.grad_input"):
            trainer.evaluate(examples())
        assert (trainer.num_steps, trainer.model.num_steps, trainer.optimizer.num_steps) == (2, 2, 2)

    def test_by_an_exception_of_the_users(self) -> None:
        trainer, steps = classifier(), list[Step]()
        with pytest.raises(ZeroDivisionError):
            steps.extend(step for step in trainer.epoch(examples(), BATCH, seed=0, epoch=0) if 1 / (3 - step.number))
        assert [step.number for step in steps] == [1, 2]
        assert not check_of(steps[-1]).proven
        with pytest.raises(RuntimeError, match=r"^this step is not proven yet: it is when its epoch ends, or after "):
            check_of(steps[-1]).found  # noqa: B018 - what raises
        trainer.flush()
        assert check_of(steps[-1]).severity.max() <= 1

    @pytest.mark.parametrize(
        ("num_steps", "end", "said"),
        [
            (1, "", ""),  # proven at once
            (2, "", "step 2"),
            (4, "", ""),  # a smaller batch: what waits is proven first
            (3, "", "steps 2 to 3"),
            (3, "raise SystemExit(7)", "steps 2 to 3"),
            (3, "del trainer; print('on')", "steps 2 to 3"),
            (3, "trainer.flush()", ""),
            (3, "trainer.evaluate(examples())", ""),
            (3, "train(trainer, 1)", ""),
        ],
    )
    def test_what_is_never_proven_is_named_at_the_end(self, num_steps: int, end: str, said: str) -> None:
        program = (
            "from classifiers import *\n"
            "trainer = classifier()\n"
            "for step in trainer.epoch(examples(), BATCH, seed=0, epoch=0):\n"
            f"    if step.number == {num_steps}: break\n"
            f"{end}\n"
        )
        done = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True)
        assert done.returncode == (7 if "7" in end else 0)
        line = f"nn_manual: {said} never proven: call trainer.flush() after a loop that is left early\n"
        assert done.stderr == (line if said else "")


def left_after(trainer: Trainer, num_steps: int) -> list[Step]:
    """The first steps of an epoch, which nobody goes on with."""
    return list(itertools.islice(trainer.epoch(examples(), BATCH, seed=0, epoch=0), num_steps))


def check_of(step: Step) -> StepCheck:
    assert step.check is not None
    return step.check


def test_a_run_that_an_error_ends_gives_up_what_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who goes on makes these steps again."""
    made = list[Steps]()
    make = Steps.make

    def full(steps: Steps, *batch: Any, **watch: Any) -> float:
        if steps.model.num_steps == 6:
            made.append(steps)
            raise Interrupted(signal.SIGINT)
        return make(steps, *batch, **watch)

    monkeypatch.setattr(Steps, "make", full)
    with pytest.raises(Interrupted):
        run(load_config(write_config(tmp_path)), tmp_path / "run")
    monkeypatch.undo()
    assert made.pop().prover is not None
    gc.collect()
    assert "never proven" not in capsys.readouterr().err
    assert [line["step"] for line in lines(tmp_path / "run" / "gradients.jsonl")] == [1, 2, 3]


def test_the_ledger_of_a_run_that_a_number_ends_has_all_steps_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They waited when it came."""
    make = Steps.make

    def overflowing(steps: Steps, *batch: Any, **watch: Any) -> float:
        value = make(steps, *batch, **watch)
        if steps.model.num_steps == 6:
            raise NotFiniteError("the loss is inf")
        return value

    monkeypatch.setattr(Steps, "make", overflowing)
    with pytest.raises(NotFiniteError, match=r"^the loss is inf at step 6\n"):
        run(load_config(write_config(tmp_path)), tmp_path / "run")
    assert [line["step"] for line in lines(tmp_path / "run" / "gradients.jsonl")] == [1, 2, 3, 4, 5]
