"""Compiled runs from start to end: killed, stopped, gone on with, and ended early."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.reliability.kills import end_of, forked, quick_runs
from runs import CONFIG, EVERYTHING, write_config

from nn_manual.arrays import Array
from nn_manual.compile import plan
from nn_manual.compile.program import KernelCall, Lowered, Program
from nn_manual.config import RunConfig, load_config
from nn_manual.errors import ConfigError, GradientMismatch, Interrupted, NotFiniteError
from nn_manual.run.new_run import run
from nn_manual.run.resume import resume
from nn_manual.run_directory.checkpoints import checkpoints_of, read_checkpoint, step_of
from nn_manual.trainer import compiled_steps as compiled
from nn_manual.use.replay import replay

#: 15 steps an epoch, the last one of a smaller batch.
LONGER = CONFIG.replace("num_examples: 60", "num_examples: 290") + "compiled: true\n"
WITHOUT_BUFFERS = [
    "model=[{Linear: {in_features: 2, out_features: 8}}, Tanh, {Dropout: {p: 0.2}}, "
    "{Linear: {in_features: 8, out_features: 2}}]",
    *EVERYTHING[1:],
]
BY_STEP = [*EVERYTHING[:2], "lr_step=step", "lr_scheduler={StepLR: {step_size: 2}}", "checkpoint.every=4 steps"]
EVERY = {f"every {every}": [f"gradient_check.every={every}"] for every in (0, 1, 4)}


class Clock:
    """Instead of the module `time`. A call of a plan takes `seconds` for each of its steps: others in each call."""

    def __init__(self) -> None:
        self.now, self.seconds = 0.0, itertools.cycle([5e-5, 1.4e-4, 1e-4, 3e-4])

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Calls of a few steps each: their number depends on time, and nothing may depend on it."""
    clock, right = Clock(), plan.Plan.run

    def timed(self: plan.Plan, inputs: Array, *others: Any) -> plan.Done:
        done = right(self, inputs, *others)
        clock.now += next(clock.seconds) * done.num_steps
        return done

    monkeypatch.setattr(plan.Plan, "run", timed)
    monkeypatch.setattr(compiled, "time", clock)
    monkeypatch.setattr(compiled, "SECONDS_OF_CALL", 2e-4)
    return clock


def config_of(folder: Path, *overrides: str) -> RunConfig:
    return load_config(write_config(folder, LONGER), overrides)


class Calls:
    """Notes the calls of plans, each by how many steps it has; `before` is called with the steps of those before."""

    def __init__(self) -> None:
        self.num_steps: list[int] = []
        self.before: Callable[[int], object] = bool

    def note(self, num_steps: int) -> None:
        self.before(sum(self.num_steps))
        self.num_steps.append(num_steps)

    def signal_at(self, step: int, number: signal.Signals) -> None:
        """Let the process get a signal within the call in which a plan has made so many steps, once."""
        total = sum(self.num_steps)

        def before(done: int) -> None:
            if done - total >= step:
                self.before = bool
                os.kill(os.getpid(), number)

        self.before = before


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Calls]:
    noted, right = Calls(), plan.Plan.run

    def counted(self: plan.Plan, inputs: Array, *others: Any) -> plan.Done:
        noted.note(len(inputs))
        return right(self, inputs, *others)

    monkeypatch.setattr(plan.Plan, "run", counted)
    yield noted
    assert noted.num_steps, "nothing was compiled"


@pytest.mark.slow
@pytest.mark.parametrize("settings", [BY_STEP, WITHOUT_BUFFERS], ids=["by step", "without buffers"])
@pytest.mark.parametrize("every", EVERY)
def test_two_equal_runs_are_the_same_bytes(tmp_path: Path, calls: Calls, every: str, settings: list[str]) -> None:
    """However long the calls are."""
    config = config_of(tmp_path, *EVERY[every], *settings)
    run(config, tmp_path / "one")
    one = calls.num_steps[:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "SECONDS_OF_CALL", 1.0)
        run(config, tmp_path / "two")
    assert end_of(tmp_path / "one") == end_of(tmp_path / "two")
    assert sum(one) == sum(calls.num_steps) - sum(one) == 3 * 14
    if every == "every 0" or (every == "every 1" and settings is WITHOUT_BUFFERS):
        assert len(calls.num_steps) < 2 * len(one), "the calls were as long"


#: Which steps are checked, and all else.
RUNS = {
    "unchecked": ["gradient_check.every=0", *EVERYTHING],
    "all checked": ["gradient_check.every=1", *BY_STEP],
    "many in a call": ["gradient_check={every: 1, memory: 60 kB}", *WITHOUT_BUFFERS],
    "every 4th": ["gradient_check.every=4", *EVERYTHING],
    "one by one": ["gradient_check={every: 4, memory: 0 kB}", *BY_STEP],
}


@pytest.mark.slow
@pytest.mark.parametrize("settings", RUNS)
def test_a_run_that_is_stopped_goes_on(tmp_path: Path, calls: Calls, settings: str) -> None:
    """A checkpoint is written when the call has ended, and the end is that of a run that nobody stopped."""
    config = config_of(tmp_path, "epochs=2", *RUNS[settings])
    run(config, tmp_path / "whole")
    for step, number in ((0, signal.SIGINT), (5, signal.SIGTERM), (17, signal.SIGINT)):
        directory = tmp_path / f"stopped after {step}"
        calls.signal_at(step, number)
        with pytest.raises(Interrupted) as interrupted:
            run(config, directory)
        assert interrupted.value.exit_status == 128 + number
        newest = checkpoints_of(directory)[0]
        assert step < (step_of(newest) or 0) < 30
        assert read_checkpoint(newest)[0]["batch"] == (step_of(newest) or 0) % 15
        resume(directory)
        assert end_of(directory) == end_of(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "step"), [("all checked", 6), ("many in a call", 9), ("every 4th", 1), ("one by one", 18)]
)
def test_a_run_that_is_killed_goes_on(tmp_path: Path, calls: Calls, settings: str, step: int) -> None:
    """From its last checkpoint, or from the start."""
    config = config_of(tmp_path, "epochs=2", *RUNS[settings], "checkpoint.every=4 steps")
    directory = tmp_path / "run"

    def killed() -> None:
        calls.signal_at(step, signal.SIGKILL)
        run(config, directory)

    with quick_runs():
        run(config, tmp_path / "whole")
        assert os.WTERMSIG(forked(killed)) == signal.SIGKILL
        assert len(checkpoints_of(directory)) == min(3, step // 4)
        assert forked(lambda: resume(directory)) == 0
    assert end_of(directory) == end_of(tmp_path / "whole")


def test_calls_of_long_steps_have_few(
    tmp_path: Path, calls: Calls, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a signal is heard as soon as in a plain run, from the first call on."""
    monkeypatch.setattr(compiled, "SECONDS_OF_CALL", 0.04)
    clock.seconds = itertools.cycle([0.012])
    run(config_of(tmp_path, "epochs=1", "gradient_check.every=0"), tmp_path / "run")
    assert calls.num_steps[0] == 1
    assert max(calls.num_steps) == 3


def test_a_call_ends_at_each_checkpoint(tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nowhere else, but at the end of an epoch."""
    monkeypatch.setattr(compiled, "SECONDS_OF_CALL", 1.0)
    run(config_of(tmp_path, "gradient_check.every=0", "checkpoint={every: 4 steps, keep: 20}"), tmp_path / "run")
    assert sorted(step_of(path) or 0 for path in checkpoints_of(tmp_path / "run")) == [*range(4, 45, 4), 45]
    assert calls.num_steps == [1, 3, 4, 4, 2, 1, 4, 4, 4, 1, 2, 4, 4, 4]  # steps 15, 30 and 45 have smaller batches


@pytest.mark.parametrize("every", [0, 1])
def test_a_step_that_isnt_finite(
    tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """The formulas say which layer, tensor and index, as in a plain run, and with its exit status."""
    monkeypatch.setattr(compiled, "SECONDS_OF_CALL", 10.0)
    settings = ["model.1=ReLU", "optimizer.SGD.lr=3e38", "optimizer.SGD.momentum=0", *EVERY[f"every {every}"]]
    messages = []
    for name, overrides in {"plain": ["compiled=false"], "compiled": []}.items():
        with pytest.raises(NotFiniteError) as error:
            run(config_of(tmp_path, *settings, *overrides), tmp_path / name)
        messages.append((str(error.value), error.value.exit_status))
    assert messages == [("2.output of 2 (Linear) holds inf at index (0, 0) at step 2", 4)] * 2
    assert calls.num_steps == [1, 1 if every else 13]


def test_what_an_update_makes_infinite(tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows in the step after it, which moves nothing."""
    monkeypatch.setattr(compiled, "SECONDS_OF_CALL", 10.0)
    settings = ["model.1=ReLU", "optimizer.SGD.lr=1e20", "optimizer.SGD.momentum=0", *EVERY["every 0"]]
    with pytest.raises(NotFiniteError) as error:
        run(config_of(tmp_path, *settings), tmp_path / "run")
    assert str(error.value) == "updated 0.bias of 0 (Linear) holds -inf at index (6,) since step 2, found at step 3"
    assert calls.num_steps == [1, 13]


@pytest.mark.parametrize("label", [0, 63])
def test_a_label_out_of_range(
    tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch, label: int
) -> None:
    """Is refused before anything is traced: a formula that takes it would read past the end."""
    run(config_of(tmp_path, "epochs=1"), tmp_path / "that something is compiled")
    before = len(calls.num_steps)
    targets = np.arange(64) % 2
    targets[label] = 2  # the model has two outputs
    np.savez(tmp_path / "data.npz", input=np.ones((64, 2), np.float32), target=targets)
    data = "data={Arrays: {file: data.npz, input: input, target: target, task: classification, validation_fraction: 0}}"
    monkeypatch.chdir(tmp_path)
    messages = []
    for is_compiled in ("true", "false"):
        with pytest.raises(ConfigError) as error:
            run(config_of(tmp_path, data, f"compiled={is_compiled}"), tmp_path / is_compiled)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert len(calls.num_steps) == before


@pytest.fixture
def wrong_sign(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Plans whose tanh has 1 + output**2 in the place of its slope, until `undo`."""

    right = Lowered.program

    def wrong(self: Lowered, **settings: bool) -> Program:
        made = right(self, **settings)
        calls = list(made.calls)
        for i, call in enumerate(calls):
            if isinstance(call, KernelCall):
                calls[i] = call._replace(kernel=call.kernel.replace(" = f4(1.0) - ", " = f4(1.0) + "))
        assert sum(ours != theirs for ours, theirs in zip(made.calls, calls, strict=True)) == 1
        return made._replace(calls=calls)

    monkeypatch.setattr(Lowered, "program", wrong)
    return monkeypatch


@pytest.mark.slow
@pytest.mark.parametrize("memory", ["64 MB", "0 kB"])
@pytest.mark.parametrize("every", [1, 4])
def test_a_wrong_sign_in_machine_code(
    tmp_path: Path, calls: Calls, wrong_sign: pytest.MonkeyPatch, every: int, memory: str
) -> None:
    """torch finds it in the first step that is checked, and names the layer. The step is the same when it is run again,
    and right once the machine code is.
    """
    config = config_of(tmp_path, *EVERY[f"every {every}"], f"gradient_check.memory={memory}")
    with pytest.raises(GradientMismatch) as mismatch:
        run(config, tmp_path / "run")
    first = mismatch.value.report.failures[0]
    assert (first.layer, first.name) == ("1 (Tanh)", "1.grad_input")
    bundle = tmp_path / "run" / f"mismatch-step-{every}"
    again = replay(bundle)
    assert again.report is not None
    assert again.report.comparisons == mismatch.value.report.comparisons
    assert set(again.deviations.values()) == {0.0}
    wrong_sign.undo()
    assert replay(bundle).report is None
    assert sum(calls.num_steps) == every + 1
