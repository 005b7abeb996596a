"""The weights, the optimizer's state and the losses after 200 steps: the same bytes on 1 to 4 processes."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.distributed.torchruns import train
from benchmarks.processes import ROOT
from nn_manual.arrays import Array
from nn_manual.run_directory.files import read_weights

#: A dropout behind the positions.
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
#: The same, compiled, but for the one whose slices wait for each other.
TRAININGS |= {
    f"{name}, compiled": ([*long, "compiled=true"], [*short, "compiled=true"])
    for name, (long, short) in list(TRAININGS.items())[:3]
}
#: Within rounding, as a fraction of the largest weight, after 200 steps that enlarge it.
ROUNDING = 1e-2


def main(*, short: bool = False) -> bool:
    """Print a line for each config and way. In short, a few steps, on 1 process and on 4."""
    passed = True
    with tempfile.TemporaryDirectory() as folder:
        for name, training in TRAININGS.items():
            config, *overrides = training[short]
            every = f"gradient_check.every={3 if short else 50}"
            given = [str(ROOT / "config" / f"{config}.yaml"), *overrides, every, "slices=12"]
            alone = _results(1, Path(folder, f"{name}-1"), *given, "bitwise=true")
            for size in (4,) if short else (2, 3, 4):
                for way in (["bitwise=true"], ["bitwise=true", "shard_optimizer=true"], [], ["shard_optimizer=true"]):
                    label = f"{name}, {size} processes, {', '.join(way) or 'as is fastest'}"
                    found = _results(size, Path(folder, label.replace(" ", "-")), *given, *way)
                    passed &= _compare(label, alone, found, same="bitwise=true" in way)
    return passed


#: The bytes of all that a training leaves, the same as arrays, and the metrics.
Results = tuple[bytes, dict[str, Array], list[dict[str, float]]]


def _results(size: int, directory: Path, *arguments: str) -> Results:
    """Those of a training by so many processes."""
    if status := train(size, directory, *arguments):
        raise SystemExit(f"{directory}: exit status {status}\n{Path(f'{directory}.log').read_text()[-2000:]}")
    last = max(directory.glob("checkpoints/step-*/state.safetensors"), key=lambda path: path.stat().st_mtime)
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    return last.read_bytes(), read_weights(last), [{**line, "seconds": 0} for line in lines]


def _compare(label: str, alone: Results, found: Results, *, same: bool) -> bool:
    is_same = alone[0] == found[0] and alone[2] == found[2]
    worst = max(
        float(np.abs(array - alone[1][name]).max() / max(np.abs(alone[1][name]).max(), 1e-30))
        for name, array in found[1].items()
    )
    print(f"{label}: {'identical bytes' if is_same else f'worst {worst:.1e} of the largest'}", flush=True)
    return is_same if same else worst < ROUNDING


if __name__ == "__main__":
    main()
