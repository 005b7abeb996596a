"""The nets of config/ beside torch: the time of a training step, and the memory that training takes.

Each measurement has a process of its own. Times are taken in rounds; in a round each contestant does the same number of
steps, one after the other, so that a slow moment of the machine meets both. Ratios are medians of the ratios of the
rounds.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Sequence

from benchmarks.processes import ROOT, run_module

#: By config: torch's time over ours, at least; our memory over torch's, at most.
WANTED = {"gpt": (0.95, 1.2), "lstm": (0.5, 1.2), "convnet": (0.4, 2.0), "digits_convnet": (0.4, 2.0)}
#: The time of a checked step over (ours + torch's), at most, on the GPT.
CHECKED = 1.5


def main() -> None:
    """Print the two tables."""
    print(f"{'milliseconds a step':20} {'threads':>7} {'ours':>8} {'checked':>8} {'torch':>8}  torch / ours", end="")
    print("    checked / (ours + torch)")
    for name, (speed, _) in WANTED.items():
        for threads in (1, 2):
            times = _measured("time", name, threads)
            ours, checked, torch = (times[side] for side in ("ours", "checked", "torch"))
            speedup = median_ratio(torch, ours)
            cost = median_ratio(checked, [a + b for a, b in zip(ours, torch, strict=True)])
            wanted = f"(>= {speed})" if threads == 1 else ""
            limit = f"(<= {CHECKED})" if name == "gpt" and threads == 1 else ""
            medians = " ".join(f"{statistics.median(side):8.2f}" for side in (ours, checked, torch))
            row = f"{name:20} {threads:7} {medians}  {speedup:.2f} {wanted:10}   {cost:.2f} {limit}"
            print(row.rstrip(), flush=True)
    print(f"\n{'MiB above the start':20} {'ours':>8} {'torch':>8}  ours / torch")
    for name, (_, memory) in WANTED.items():
        mine, theirs = (_measured(f"memory of {side}", name, 1)["MiB"][0] for side in ("ours", "torch"))
        print(f"{name:20} {mine:8.1f} {theirs:8.1f}  {mine / theirs:.2f} (<= {memory})", flush=True)


def median_ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """The median of the ratios of the rounds."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def _measured(what: str, name: str, threads: int) -> dict[str, list[float]]:
    """What one process says."""
    done = run_module("benchmarks.one_model", ROOT, what, name, str(threads), stdout=subprocess.PIPE)
    done.check_returncode()
    answer: dict[str, list[float]] = json.loads(done.stdout)
    return answer


if __name__ == "__main__":
    main()
