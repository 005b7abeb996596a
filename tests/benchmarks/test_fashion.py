"""The figures of a whole run, and runs of a few images that are really ones."""

from __future__ import annotations

import gzip
import json
import struct
import time
from pathlib import Path

import numpy as np
import pytest
from benchmarks import fashion, one_fashion, torch_fashion
from benchmarks.fashion import Run


@pytest.mark.parametrize(
    ("compiled", "missed"),
    [
        (Run(0.8, 0.6, 0.896), [False, False, False]),
        (Run(0.9, 0.6, 0.896), [True, False, False]),
        (Run(0.8, 0.7, 0.896), [False, True, False]),
        (Run(0.8, 0.6, 0.894), [False, False, True]),
    ],
)
def test_limits_are_of_the_median_of_ratios(compiled: Run, missed: list[bool]) -> None:
    """torch takes 1 s, in a slow round of the machine 100 times as long, as all do then."""
    slow = Run(100 * compiled.seconds, 100 * compiled.steps, compiled.accuracy)
    runs = {"compiled": [compiled, slow, compiled], "torch": [Run(1, 1, 0.9), Run(100, 100, 0.9), Run(1, 1, 0.9)]}
    lines, is_missed = fashion.verdict(runs)
    assert [line.endswith(": MISSED") for line in lines] == missed
    assert is_missed is any(missed)
    assert lines[0].startswith(f"compiled: {1 / compiled.seconds:.2f} times torch's speed from start to end")


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Files of images whose class shows in one pixel: the training part as it is, the other one with .gz."""
    generator = np.random.default_rng(0)
    for part, count in (("train", 640), ("t10k", 100)):
        labels = generator.integers(0, 10, count, np.uint8)
        pixels = generator.integers(0, 50, (count, 28, 28), np.uint8)
        pixels[np.arange(count), labels, 5] = 255
        for kind, values in (("images-idx3", pixels), ("labels-idx1", labels)):
            content = struct.pack(f">4B{values.ndim}I", 0, 0, 8, values.ndim, *values.shape) + values.tobytes()
            name = f"{part}-{kind}-ubyte"
            if part == "train":
                (tmp_path / name).write_bytes(content)
            else:
                (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content))
    return tmp_path


def test_torch_learns(images: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(torch_fashion, "FOLDER", images)
    before = time.perf_counter()
    torch_fashion.main("10", *fashion.SETTINGS)
    seconds, accuracy = json.loads(capsys.readouterr().out)
    assert 0 < seconds < time.perf_counter() - before
    assert accuracy > 0.7  # a guess is 0.1


def test_the_steps_alone(images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = time.perf_counter()
    one_fashion.main([f"data.FashionMNIST.folder={images}", "epochs=2", "gradient_check.every=0"])
    assert 0 < float(capsys.readouterr().out) < time.perf_counter() - before
