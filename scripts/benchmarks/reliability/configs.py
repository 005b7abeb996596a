"""A hundred thousand configs drawn at random: each must soon load, or be refused with a place in the file."""

from __future__ import annotations

import os
import re
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from benchmarks.processes import on_all_cores
from benchmarks.reliability.drawn_configs import changed_files, documents, schema_configs
from nn_manual.config import load_config
from nn_manual.errors import ConfigError

SOURCES = {"bytes changed": changed_files(), "grammar of YAML": documents, "keys and types": schema_configs()}
#: Each source of configs is drawn from in so many parts, each with its own seed.
NUM_PARTS = 40
NUM_CONFIGS = 100_000
#: Far more than any of these takes, even on a machine that is busy.
MOST_SECONDS = 20


@dataclass
class Tally:
    """How many configs loaded, how many were refused, the seconds of the slowest and that config, and for each other
    ending the shortest config that had it.
    """

    num_loaded: int = 0
    num_refused: int = 0
    slowest: tuple[float, bytes] = (0.0, b"")
    faults: dict[str, bytes] = field(default_factory=dict)

    def __add__(self, other: Tally) -> Tally:
        both = [*self.faults.items(), *other.faults.items()]
        return Tally(
            self.num_loaded + other.num_loaded,
            self.num_refused + other.num_refused,
            max(self.slowest, other.slowest),
            dict(sorted(both, key=lambda fault: len(fault[1]), reverse=True)),  # of equal keys the last one stays
        )


def main() -> bool:
    """Print the figures. Returns whether each config soon loaded, or was soon refused with a place."""
    num_of_part = -(-NUM_CONFIGS // (len(SOURCES) * NUM_PARTS))
    parts = list(product(SOURCES, range(NUM_PARTS), [num_of_part]))
    tallies = {source: Tally() for source in SOURCES}
    for (source, _, _), tally in zip(parts, on_all_cores(_of_part, parts), strict=True):
        tallies[source] += tally
    print(f"{'configs drawn':20} {'all':>8} {'loaded':>8} {'refused':>8} {'other':>6} {'slowest':>8}")
    for source, tally in tallies.items():
        num_all = tally.num_loaded + tally.num_refused + len(tally.faults)
        print(
            f"{source:20} {num_all:8,} {tally.num_loaded:8,} {tally.num_refused:8,} {len(tally.faults):6} "
            f"{tally.slowest[0]:6.1f} s"
        )
    for tally in tallies.values():
        for fault, content in tally.faults.items():
            print(f"{fault}: {content!r}")
    slow = [tally.slowest[1] for tally in tallies.values() if tally.slowest[0] > MOST_SECONDS]
    for content in slow:
        print(f"took more than {MOST_SECONDS} s: {content!r}")
    return not slow and all(t.num_loaded and t.num_refused and not t.faults for t in tallies.values())


def _of_part(part: tuple[str, int, int]) -> Tally:
    return drawn(*part)


def drawn(source: str, number: int, num_configs: int) -> Tally:
    """What becomes of so many configs of a source; `number` determines them."""
    tallies: list[Tally] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.yaml")

        # Nothing is shrunk: the campaign goes on after a fault, and keeps the shortest config of each kind.
        @seed(number)
        @settings(
            max_examples=num_configs,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(SOURCES[source])
        def load(content: bytes) -> None:
            tallies.append(outcome(path, content))

        load()
    return sum(tallies, Tally())


def outcome(path: Path, content: bytes) -> Tally:
    """What becomes of one config, written to `path`."""
    path.write_bytes(content)
    start = time.process_time()  # of the processor: load beside it is no fault of the config
    fault = ""
    num_loaded = num_refused = 0
    try:
        with warnings.catch_warnings(action="error"):
            load_config(path)
        num_loaded = 1
    except ConfigError as error:
        num_refused = 1
        placed = re.compile(rf"{re.escape(os.fspath(path))}:\d+:\d+: .|and [\d,]+ more errors?$")
        unplaced = [line for line in str(error).split("\n") if not (placed.match(line) and line.isprintable())]
        fault = f"without a place: {unplaced[0]!r}" if unplaced else ""
    except BaseException as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        fault = f"{type(error).__name__} at {frame.filename}:{frame.lineno}: {error}"
    seconds = time.process_time() - start
    return Tally(num_loaded, num_refused, (seconds, content), {fault: content} if fault else {})
