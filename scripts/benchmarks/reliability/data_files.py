"""Damaged data files: each must load, or be refused by a DataError of one line, in at most twice the memory of its
arrays.

Memory is measured in two ways. The damaged files are small. There tracemalloc sees everything that Python, numpy, zlib
and csv allocate, touched or not, so it finds arrays that a header declares but the file doesn't have. Large files, each
read in a process of its own, show what a load needs beside its arrays: the peak of the resident memory.
"""

from __future__ import annotations

import gzip
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.processes import on_all_cores
from benchmarks.reliability.large_files import FIXED_BYTES, bytes_of, memory
from benchmarks.reliability.mutated_files import KINDS, LABELS, damaged, valid
from nn_manual.data import MNIST, Arrays, Dataset, Text
from nn_manual.errors import DataError

NUM_FILES = 100_000
#: How many files are one piece of work, which takes some seconds.
NUM_AT_ONCE = 1_000
#: A load of such a file takes a millisecond.
SLOW_SECONDS = 5.0
#: The longest message: a line or two of names and values, beside the path.
LONGEST_MESSAGE = 1000
#: The exit status of DataError, as docs/command_line.md has it.
EXIT_STATUS = 5


@dataclass
class Outcome:
    """What became of the files of one kind."""

    kind: str
    num_loaded: int = 0
    num_refused: int = 0
    beyond: int = -(1 << 40)
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.kind:14} {self.num_loaded + self.num_refused:8,} {self.num_loaded:8,} {self.num_refused:8,} "
            f"{self.beyond / 2**20:10.2f} MiB {self.seconds * 1000:8.0f} ms {len(self.faults):7}"
        )


def main() -> bool:
    """Print what became of all files, and the memory of large ones. Returns whether everything is as it must be."""
    passed = campaign(NUM_FILES)
    return memory() and passed


def campaign(num_files: int) -> bool:
    """Load so many damaged files, the same number of each kind."""
    heads = {"all": 8, "loaded": 8, "refused": 8, "beyond 2x": 14, "slowest": 11, "faults": 7}
    print(f"{'damaged files':14}", *(f"{head:>{width}}" for head, width in heads.items()))
    pieces = list(_pieces(num_files))
    outcomes = {kind: Outcome(kind) for kind in KINDS}
    for part in on_all_cores(load_damaged, pieces):
        whole = outcomes[part.kind]
        whole.num_loaded += part.num_loaded
        whole.num_refused += part.num_refused
        whole.beyond, whole.seconds = max(whole.beyond, part.beyond), max(whole.seconds, part.seconds)
        whole.faults += part.faults
    for outcome in outcomes.values():
        print(outcome)
    print(f"beyond 2x: the most memory beside twice the arrays; {FIXED_BYTES >> 20} MiB are allowed\n")
    faults = [fault for outcome in outcomes.values() for fault in outcome.faults]
    for fault in faults:
        print(f"FAULT: {fault}")
    return not faults


def _pieces(num_files: int) -> Iterator[tuple[str, int, int]]:
    """Kind, first number and count of each piece of work."""
    for index, kind in enumerate(KINDS):
        count = num_files // len(KINDS) + (index < num_files % len(KINDS))
        for first in range(0, count, NUM_AT_ONCE):
            yield kind, first, min(NUM_AT_ONCE, count - first)


def load_damaged(piece: tuple[str, int, int]) -> Outcome:
    """Load some damaged files of one kind, each with the seed that its number is."""
    kind, first, count = piece
    outcome = Outcome(kind)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        file = write_valid(Path(folder), kind)
        dataset(file, np.random.default_rng(0)).load(0, np.dtype(np.float32))  # what the first load alone imports
        tracemalloc.start()
        for number in range(first, first + count):
            random = np.random.default_rng((number, list(KINDS).index(kind)))
            file.write_bytes(damaged(kind, random))
            _load(dataset(file, random), file, outcome, f"{kind} {number}", np.dtype(random.choice(["f4", "f8"])))
        tracemalloc.stop()
    return outcome


def write_valid(folder: Path, kind: str) -> Path:
    """Write the valid file of this kind, and the files that belong to it. Returns the one to damage."""
    if not kind.startswith("idx"):
        file = folder / f"file{kind}"
    else:
        suffix = kind.removeprefix("idx")
        for part in ("train", "t10k"):
            (folder / f"{part}-images-idx3-ubyte{suffix}").write_bytes(valid(kind))
            labels = gzip.compress(LABELS, mtime=0) if suffix else LABELS
            (folder / f"{part}-labels-idx1-ubyte{suffix}").write_bytes(labels)
        file = folder / f"train-images-idx3-ubyte{suffix}"
    file.write_bytes(valid(kind))
    return file


def dataset(file: Path, random: np.random.Generator) -> Dataset:
    """The data set that reads such a file, with some of the settings that it takes."""
    if "idx3" in file.name:
        return MNIST(file.parent)
    if file.suffix == ".txt":
        return Text(file, context=8, stride=int(random.integers(1, 9)))
    task, standardize = ("classification", "regression")[random.integers(2)], random.random() < 0.5
    integers = random.random() < 0.3 and not (standardize and task == "classification")
    input = "x" if file.suffix == ".npz" else ["a", "b"]
    return Arrays(file, "y", task, input, standardize, integer_input=integers)  # type: ignore[arg-type]


def _load(data: Dataset, file: Path, outcome: Outcome, name: str, dtype: np.dtype[np.floating]) -> None:
    """Load one file, and note what came of it."""
    num_bytes, fault = 0, ""
    before, start = tracemalloc.get_traced_memory()[0], time.perf_counter()
    tracemalloc.reset_peak()
    try:
        split = data.load(0, dtype)
        num_bytes = bytes_of(split)
        outcome.num_loaded += 1
        if not all(np.isfinite(array).all() for part in (split.train, split.validation) for array in part):
            fault = "loaded what isn't finite"
    except DataError as error:
        outcome.num_refused += 1
        text = str(error)
        if not text.isprintable() or len(text) > LONGEST_MESSAGE or not text.startswith(str(file.parent)):
            fault = f"its message is {text!r}"
        if error.exit_status != EXIT_STATUS:
            fault = f"exit status {error.exit_status}"
    except Exception as error:  # which is what the campaign is after
        fault = f"{type(error).__name__}: {error}"
    outcome.seconds = max(outcome.seconds, seconds := time.perf_counter() - start)
    beyond = tracemalloc.get_traced_memory()[1] - before - 2 * num_bytes
    outcome.beyond = max(outcome.beyond, beyond)
    if seconds > SLOW_SECONDS:
        fault = f"took {seconds:.0f} s"
    if beyond > FIXED_BYTES:
        fault = f"took {beyond / 2**20:,.0f} MiB beside twice the arrays"
    if fault:
        outcome.faults.append(f"{name}: {fault}")
