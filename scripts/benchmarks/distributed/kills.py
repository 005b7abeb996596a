"""Runs under torchrun --max-restarts in which a random process is killed at a random step: each must end with the bytes
of a run that nobody disturbed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.distributed.torchruns import torchrun, train
from benchmarks.processes import ROOT

NUM_KILLS, NUM_IN_SHORT = 50, 10
CONFIG = [str(ROOT / "config" / "digits.yaml"), "epochs=60", "slices=2", "bitwise=true", "gradient_check.every=0"]
CONFIG += ["checkpoint.every=10 steps", "checkpoint.keep=2"]
NUM_STEPS = 60 * 23


def main(*, short: bool = False) -> bool:
    """Print a line for each kill. In short, there are fewer."""
    rng, num_right, num_kills = random.Random(0), 0, NUM_IN_SHORT if short else NUM_KILLS
    with tempfile.TemporaryDirectory() as folder:
        train(2, Path(folder, "undisturbed"), *CONFIG)
        expected = _bytes(Path(folder, "undisturbed"))
        for number in range(num_kills):
            directory, rank = Path(folder, str(number)), rng.randrange(2)
            after = rng.randrange(10, NUM_STEPS - 300)
            with Path(f"{directory}.log").open("w") as log:
                run = torchrun(2, "nn_manual", "train", *CONFIG, "--run-dir", str(directory), restarts=3, output=log)
                killed = _kill(run, directory, rank, after)
                status = run.wait()
            is_right = status == 0 and _bytes(directory) == expected
            num_right += is_right and killed
            how = f"process {rank} after step {after}" if killed else "nothing: it had ended"
            print(f"killed {how}: {'the same bytes' if is_right else f'WRONG, exit status {status}'}", flush=True)
    print(f"{num_right} of {num_kills} runs ended as the undisturbed one")
    return num_right == num_kills


def _kill(run: subprocess.Popen[str], directory: Path, rank: int, after: int) -> bool:
    """Kill a process of a run at its first checkpoint after a step. Returns whether it was still there."""
    while run.poll() is None:
        steps = [int(path.name[5:]) for path in directory.glob("checkpoints/step-*") if path.name[5:].isdigit()]
        if max(steps, default=0) >= after:
            children = subprocess.run(["pgrep", "-P", str(run.pid)], capture_output=True, text=True, check=False)
            workers = [int(pid) for pid in children.stdout.split()]
            if len(workers) > rank:
                os.kill(workers[rank], signal.SIGKILL)
                return True
        time.sleep(0.005)
    return False


def _bytes(directory: Path) -> list[bytes]:
    last = directory / "checkpoints" / f"step-{NUM_STEPS}" / "state.safetensors"
    return [path.read_bytes() for path in (last, directory / "model.safetensors")]
