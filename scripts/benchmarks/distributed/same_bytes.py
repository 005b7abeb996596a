"""The weights, the optimizer's state and the losses after 200 steps on 1 to 4 processes: the same bytes with `bitwise`,
and without it the same within rounding.

This is measured in float64. In float32, training itself makes rounding large: when one weight of convnet.yaml begins
one unit in the last place higher, the weights differ by 3e-2 of the largest after 200 steps. A difference that isn't
rounding is as large in float64 as in float32.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.distributed.torchruns import train
from benchmarks.processes import ROOT
from nn_manual.arrays import Array
from nn_manual.run_directory.weights import read_weights

#: A dropout after the positions.
DROPOUT = "model.1={Sequential: [LearnedPositions: {num_positions: 64, embedding_dim: 128}, Dropout: {p: 0.1}]}"
#: What is trained: a file in config/ and overrides that give some 200 steps, and the same for a few.
TRAININGS = {
    "digits": (["digits", "epochs=9"], ["digits", "epochs=1"]),
    "gpt": (
        ["gpt", "epochs=3", DROPOUT, "data.Text.stride=480"],
        ["gpt", "epochs=1", DROPOUT, "data.Text.stride=5000"],
    ),
    "convnet": (["convnet", "epochs=1", "batch_size=300"], ["digits_convnet", "epochs=1"]),
    "convnet, synchronised": (
        ["convnet", "epochs=1", "batch_size=300", "sync_batch_norm=true"],
        ["digits_convnet", "epochs=1", "sync_batch_norm=true"],
    ),
}
#: The same, compiled, except the one whose slices wait for each other.
TRAININGS |= {
    f"{name}, compiled": ([*long, "compiled=true"], [*short, "compiled=true"])
    for name, (long, short) in list(TRAININGS.items())[:3]
}
#: The largest difference by rounding in float64, as a fraction of the largest number of an array: 200 steps make
#: rounding a million times as large, and there is room for a hundred times more.
ROUNDING = 1e-8
#: Beside steps of the whole batch.
OF_WHOLE = 1e-12
#: The ways in which the gradients are added up, and what each is trained with.
BITWISE, FASTEST = ["bitwise=true"], ["dtype=float64"]
SHARDED = "shard_optimizer=true"


def main(*, short: bool = False) -> bool:
    """Print a line for each config and way. In short, a few steps, on 1 process and on 4."""
    passed = True
    with tempfile.TemporaryDirectory() as folder:
        for name, training in TRAININGS.items():
            config, *overrides = training[short]
            every = f"gradient_check.every={3 if short else 50}"
            whole = [str(ROOT / "config" / f"{config}.yaml"), *overrides, every]
            given = [*whole, "slices=12"]
            for way in (BITWISE, FASTEST):
                alone = _results(1, Path(folder, f"{name}-{way[0]}-1"), *given, *way)
                for size in (4,) if short else (2, 3, 4):
                    for also in ([], [SHARDED]):
                        label = ", ".join([name, f"{size} processes", *way, *also])
                        found = _results(size, Path(folder, label.replace(" ", "-")), *given, *way, *also)
                        passed &= _compare(label, alone, found, 0 if way is BITWISE else ROUNDING)
            if "convnet" not in name:  # its batch normalization takes the statistics of a slice
                label = f"{name}, the whole batch, {FASTEST[0]}"
                passed &= _compare(label, alone, _results(1, Path(folder, f"{name}-whole"), *whole, *FASTEST), OF_WHOLE)
    return passed


#: The bytes of everything that a training leaves, the same as arrays, and the metrics.
Results = tuple[bytes, dict[str, Array], list[dict[str, float]]]


def _results(size: int, directory: Path, *arguments: str) -> Results:
    """The results of a training by so many processes."""
    if status := train(size, directory, *arguments):
        raise SystemExit(f"{directory}: exit status {status}\n{Path(f'{directory}.log').read_text()[-2000:]}")
    last = max(directory.glob("checkpoints/step-*/state.safetensors"), key=lambda path: path.stat().st_mtime)
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return last.read_bytes(), read_weights(last), [{**line, "seconds": 0} for line in lines]


def _compare(label: str, alone: Results, found: Results, most: float) -> bool:
    """Print how far the results are apart. Returns whether that is at most so much: 0 means the same bytes."""
    is_same = alone[0] == found[0] and alone[2] == found[2]
    worst = max(
        float(np.abs(array - alone[1][name]).max() / max(np.abs(alone[1][name]).max(), 1e-30))
        for name, array in found[1].items()
    )
    passed = is_same or (most > 0 and worst <= most)
    outcome = "identical bytes" if is_same else f"worst {worst:.1e} of the largest, at most {most:g}"
    print(f"{label}: {outcome}{'' if passed else ': MISSED'}", flush=True)
    return passed


if __name__ == "__main__":
    main()
