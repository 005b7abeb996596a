"""Every key and name in every file of config/ with a mistake: is it refused on its line, and is the hint right?"""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.processes import ROOT, on_all_cores
from benchmarks.reliability.mistakes import Mistake, duplicated, keys, misspelled, of_another_type, out_of_range
from nn_manual.config import load_config
from nn_manual.errors import ConfigError

CONFIGS = sorted((ROOT / "config").glob("*.yaml"))
#: The least share of typos whose hint names the key that was meant.
LEAST_RIGHT = 0.95


class Outcome(NamedTuple):
    """What became of a mistake: whether its line is in an error, and whether the hint names what was meant."""

    mistake: Mistake
    placed: bool
    hinted: bool
    message: str


def main() -> bool:
    """Print the figures. Returns whether all mistakes are refused on their lines, and enough hints are right."""
    counts: Counter[str] = Counter()
    for config, outcomes in zip(CONFIGS, on_all_cores(_outcomes, CONFIGS), strict=True):
        for outcome in outcomes:
            kind = outcome.mistake.kind
            counts[f"{kind} made"] += 1
            counts[f"{kind} placed"] += outcome.placed
            counts[f"{kind} hinted"] += outcome.hinted
            if not outcome.placed:
                print(f"NOT PLACED: {config.name}:{outcome.mistake.line}: {outcome.mistake.key}: {outcome.message}")
    print(f"{'mistakes in config/':20} {'made':>7} {'placed':>7} {'hint right':>10}")
    for kind in KINDS:
        made, placed, hinted = (counts[f"{kind} {what}"] for what in ("made", "placed", "hinted"))
        print(f"{kind:20} {made:7,} {placed:7,}" + (f" {hinted / made:10.2%}" if kind == "misspelled" else ""))
    all_placed = all(counts[f"{kind} placed"] == counts[f"{kind} made"] > 0 for kind in KINDS)
    return all_placed and counts["misspelled hinted"] >= LEAST_RIGHT * counts["misspelled made"]


def _outcomes(config: Path) -> list[Outcome]:
    return list(outcomes(config))


def outcomes(config: Path, every: int = 1) -> Iterator[Outcome]:
    """What becomes of each mistake in a config, or of each `every`-th one. A typo that makes another valid key doesn't
    count.
    """
    text = config.read_text(encoding="utf-8")
    number = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.yaml")
        for key in keys(text):
            for make in KINDS.values():
                for mistake in make(text, key):
                    number += 1
                    if number % every == 0 and (outcome := _outcome(path, mistake)) is not None:
                        yield outcome


def _outcome(path: str, mistake: Mistake) -> Outcome | None:
    """None for a typo that makes another valid name."""
    Path(path).write_text(mistake.text, encoding="utf-8")
    try:
        load_config(path)
    except ConfigError as error:
        message = str(error)
    else:
        message = "loaded"
    line = rf"{re.escape(path)}:{mistake.line}:"
    if mistake.kind != "misspelled":
        return Outcome(mistake, re.search(f"^{line}", message, re.MULTILINE) is not None, False, message)
    found = re.search(rf"^{line}{mistake.column}: unknown .*", message, re.MULTILINE)
    if found is None and "unknown" not in message:
        return None
    return Outcome(mistake, found is not None, f"did you mean {mistake.key!r}?" in (found or [""])[0], message)


#: What makes each kind of mistake in a key.
KINDS: dict[str, Callable[..., Iterator[Mistake]]] = {
    "misspelled": misspelled,
    "duplicated": duplicated,
    "of another type": of_another_type,
    "out of range": out_of_range,
}
