"""Runs that are killed and go on: each must end bit for bit like the run that was never stopped.

A kill is a SIGKILL at a random step, or at a random byte of a checkpoint that is being written. All processes are
forked from one that has imported everything, so that hundreds of kills take minutes.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from benchmarks.processes import ROOT
from nn_manual.config import RunConfig, load_config
from nn_manual.run import writer
from nn_manual.run.new_run import run
from nn_manual.run.resume import resume
from nn_manual.run.training_run import STATE_FILE
from nn_manual.run_directory import checkpoints
from nn_manual.run_directory.checkpoints import checkpoints_of, read_checkpoint
from nn_manual.run_directory.weights import read_weights
from nn_manual.trainer.steps import Steps

NUM_KILLS = 300
#: How many must have resumed within an epoch.
WITHIN_EPOCH = 200

EVERY = 7
DIGITS = ["epochs=3", f"checkpoint.every={EVERY} steps"]
#: Dropout, batch normalization and Adam on the same data: random numbers, buffers, two vectors.
MIXED = [
    *DIGITS,
    "model=[{Linear: {in_features: 64, out_features: 32}}, {BatchNorm1d: {num_features: 32}}, ReLU, "
    "{Dropout: {p: 0.3}}, {Linear: {in_features: 32, out_features: 10}}]",
    "optimizer={Adam: {lr: 0.01}}",
    "lr_scheduler={ReduceLROnPlateau: {patience: 0, factor: 0.5}}",
]


@dataclass(frozen=True)
class Kill:
    """When a process ends: after a step, or with `byte` of a checkpoint written, the `save`-th that it writes."""

    step: int | None = None
    save: int = 0
    byte: int = 0

    def arm(self) -> None:
        """Make this process end at that place."""
        if self.step is not None:
            _kill_after_step(self.step)
        else:
            _kill_within_save(self.save, self.byte)


def _kill_after_step(step: int) -> None:
    one = Steps.one

    def killed(steps: Steps, *batch: Any, **how: Any) -> Any:
        result = one(steps, *batch, **how)
        if steps.model.num_steps == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    patch.object(Steps, "one", killed).start()


def _kill_within_save(save: int, byte: int) -> None:
    write_files, write = checkpoints._write_files, checkpoints._write
    num_saves, left = 0, byte

    def counted(*arguments: Any) -> None:
        nonlocal num_saves
        num_saves += 1
        write_files(*arguments)
        if num_saves == save:  # all is written, and not renamed
            os.kill(os.getpid(), signal.SIGKILL)

    def cut(path: Path, data: bytes) -> None:
        nonlocal left
        if num_saves == save:
            if left < len(data):
                path.write_bytes(data[:left])
                os.kill(os.getpid(), signal.SIGKILL)
            left -= len(data)
        write(path, data)

    patch.object(checkpoints, "_write_files", counted).start()
    patch.object(checkpoints, "_write", cut).start()


def forked(work: Callable[[], object]) -> int:
    """Do some work in a process of its own, and return what waitpid says of it."""
    process = os.fork()
    if process == 0:
        status = 1
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                work()
            status = 0
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(status)
    return os.waitpid(process, 0)[1]


def end_of(directory: Path) -> dict[str, str]:
    """What must be the same of two runs: the SHA-256 of the weights, of the state in the last checkpoint, of the
    metrics without their seconds, and of the ledger.
    """
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    metrics = json.dumps([{key: value for key, value in line.items() if key != "seconds"} for line in lines])
    summary = json.loads((directory / "summary.json").read_text())
    del summary["seconds"]
    files = {
        "weights": (directory / "model.safetensors").read_bytes(),
        "best": (directory / "best.safetensors").read_bytes(),
        "state": (checkpoints_of(directory)[0] / STATE_FILE).read_bytes(),
        "metrics": metrics.encode(),
        "ledger": (directory / "gradients.jsonl").read_bytes(),
        "summary": json.dumps(summary).encode(),
    }
    return {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


@dataclass(frozen=True)
class Outcome:
    """What became of a run that was killed: whether it went on, whether within an epoch, and what differs at its end.
    """

    was_killed: bool
    resumed: bool
    within_epoch: bool
    differs: list[str]


def outcome(config: RunConfig, kill: Kill, expected: dict[str, str], directory: Path) -> Outcome:
    """Kill a run, go on with it, and compare its end with the end of a run that was never stopped."""

    def killed() -> None:
        kill.arm()
        run(config, directory)

    was_killed = os.WIFSIGNALED(forked(killed))
    found = checkpoints_of(directory)
    within_epoch = bool(found) and read_checkpoint(found[0])[0]["batch"] > 0
    resumed = forked(lambda: resume(directory)) == 0
    if not resumed:
        return Outcome(was_killed, resumed, within_epoch, ["all"])
    end = end_of(directory)
    return Outcome(was_killed, resumed, within_epoch, [name for name in expected if end[name] != expected[name]])


def drawn_kills(number: int, generator: np.random.Generator, num_steps: int, sizes: list[int]) -> list[Kill]:
    """Two thirds of the kills come at a step, after the first checkpoint and before the last step. One third come
    within a save, but not the first; `sizes` has the bytes of each save.
    """
    kills = []
    for index in range(number):
        if index % 3:
            kills.append(Kill(step=int(generator.integers(EVERY, num_steps))))
        else:
            save = int(generator.integers(1, len(sizes)))
            kills.append(Kill(save=save + 1, byte=int(generator.integers(sizes[save] + 1))))
    return kills


def campaign(config: RunConfig, number: int, seed: int, folder: Path) -> list[Outcome]:
    """Many kills of runs of one config. The run that is never stopped must have learned."""
    directory = folder / "whole"
    sizes: list[int] = []
    write_files = checkpoints._write_files

    def measured(path: Path, *arguments: Any) -> None:
        write_files(path, *arguments)
        sizes.append(sum(file.stat().st_size for file in path.iterdir()))

    # This runs here, not in a process of its own, so that the forks need not import anything again.
    with patch.object(checkpoints, "_write_files", measured), contextlib.redirect_stdout(io.StringIO()):
        run(config, directory)
    start = config.new_model().state_dict()
    for name, weights in read_weights(directory / "model.safetensors").items():
        assert np.isfinite(weights).all(), name
        assert not np.array_equal(weights, start[name]), name
    expected = end_of(directory)
    num_steps = json.loads((directory / "summary.json").read_text())["step"]
    outcomes = []
    for kill in drawn_kills(number, np.random.default_rng(seed), num_steps, sizes):
        outcomes.append(outcome(config, kill, expected, folder / "killed"))
        shutil.rmtree(folder / "killed")
    return outcomes


@contextlib.contextmanager
def quick_runs() -> Iterator[None]:
    """The context for runs in forks: without the figure, which takes a second, and with pools of one thread, because a
    fork of a process with larger pools can hang.
    """
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1), patch.object(writer, "plot_runs"):
            yield
    finally:
        torch.set_num_threads(num_threads)


def main(num_kills: int = NUM_KILLS, within_epoch: int = WITHIN_EPOCH) -> bool:
    """Print what became of the runs. Returns whether all of them went on and ended as they should."""
    outcomes = []
    for name, overrides in (("digits.yaml", DIGITS), ("dropout, batch norm, Adam", MIXED)):
        config = load_config(ROOT / "config" / "digits.yaml", overrides)
        with quick_runs(), tempfile.TemporaryDirectory() as folder:
            of_config = campaign(config, num_kills // 2, seed=0, folder=Path(folder))
        print(_line(name, of_config), flush=True)
        outcomes += of_config
    print(_line("all", outcomes))
    right = [o for o in outcomes if o.was_killed and o.resumed and not o.differs]
    return len(right) == len(outcomes) and sum(o.within_epoch for o in outcomes) >= within_epoch


def _line(name: str, outcomes: list[Outcome]) -> str:
    differs = sorted({name for outcome in outcomes for name in outcome.differs})
    return (
        f"{name:28} {sum(o.was_killed for o in outcomes):4} killed, {sum(o.resumed for o in outcomes):4} resumed, "
        f"{sum(o.within_epoch for o in outcomes):4} within an epoch, {sum(not o.differs for o in outcomes):4} identical"
        + (f"; other: {', '.join(differs)}" if differs else "")
    )
