"""Checkpoints with a flipped bit, or cut off: none may be read, and an older one must be offered."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.processes import ROOT
from benchmarks.reliability.kills import quick_runs
from nn_manual.config import load_config
from nn_manual.errors import DataError
from nn_manual.run.new_run import run
from nn_manual.run.resume import resume
from nn_manual.run_directory.checkpoints import checkpoints_of

NUM_FLIPS = 5_000
#: A small net: each of its files has a few hundred or thousand bytes.
SETTINGS = [
    "data={Spirals: {num_examples: 60, turns: 0.5, validation_fraction: 0.2}}", "batch_size=16", "epochs=2",
    "model=[{Linear: {in_features: 2, out_features: 4}}, Tanh, {Linear: {in_features: 4, out_features: 2}}]",
    "loss=CrossEntropyLoss", "checkpoint.every=3 steps",
]  # fmt: skip


def spoilt(data: bytes, num_flips: int, generator: np.random.Generator, step: int) -> Iterator[bytes]:
    """A file with one bit flipped, and cut off at each `step`-th length."""
    for place in generator.integers(8 * len(data), size=num_flips):
        flipped = bytearray(data)
        flipped[place // 8] ^= 1 << (place % 8)
        yield bytes(flipped)
    for length in range(0, len(data), step):
        yield data[:length]


def problem_of(directory: Path, offered: Path) -> str:
    """What is wrong with the refusal of a run whose newest checkpoint is spoilt; empty if nothing is."""
    try:
        resume(directory)
    except DataError as error:
        notes = getattr(error, "__notes__", [])
        return "" if notes and str(offered) in notes[-1] else f"no older one was offered: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return "it was read"


def main(num_flips: int = NUM_FLIPS, step: int = 1) -> bool:
    """Print how many spoilt checkpoints were refused. Returns whether all of them were. `step` is that of the lengths.
    """
    generator = np.random.default_rng(0)
    problems: list[str] = []
    num_spoilt = 0
    with quick_runs(), tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "run"
        with contextlib.redirect_stdout(io.StringIO()):
            run(load_config(ROOT / "config" / "digits.yaml", SETTINGS), directory)
        newest, older = checkpoints_of(directory)
        files = sorted(newest.iterdir())
        sizes = [path.stat().st_size for path in files]
        for path, size in zip(files, sizes, strict=True):
            data = path.read_bytes()
            for other in spoilt(data, -(-num_flips * size // sum(sizes)), generator, step):
                path.write_bytes(other)
                problem = problem_of(directory, older)
                problems += [f"{path.name}: {problem}"] if problem else []
                num_spoilt += 1
            path.write_bytes(data)
    print(f"{num_spoilt:,} checkpoints with a flipped bit or cut off: {num_spoilt - len(problems):,} refused, ", end="")
    print("an older one offered")
    for problem in problems[:10]:
        print(problem)
    return not problems
