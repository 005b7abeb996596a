"""`benchmark.py reliability data_files`: a sample of the damaged files, two large ones, and that a fault is found."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
from benchmarks.reliability import data_files, large_files, mutated_files

from nn_manual.data import tables, text
from nn_manual.errors import DataError


def test_damaged_files_load_or_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(data_files, "on_all_cores", map)
    assert data_files.campaign(2_100)
    _, *rows = capsys.readouterr().out.splitlines()
    for kind, row in zip(mutated_files.KINDS, rows, strict=False):
        name, num_files, num_loaded, num_refused, *_ = row.split()
        assert (name, num_files) == (kind, "300")
        assert int(num_loaded) + int(num_refused) == 300
        assert min(int(num_loaded), int(num_refused)) > 5


def test_valid_files_are_valid() -> None:
    """What isn't damaged loads: or each would be refused for the same reason."""
    for kind in mutated_files.KINDS:
        outcome = data_files.load_damaged((kind, 0, 0))
        assert (outcome.num_loaded, outcome.faults) == (0, [])


def test_the_same_number_is_the_same_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = itertools.count(2_000_000_000, 60)
    monkeypatch.setattr("time.time", lambda: next(seconds))  # gzip and zip write one, unless they are given another
    for kind in mutated_files.KINDS:
        first, again, other = (mutated_files.damaged(kind, np.random.default_rng(seed)) for seed in (1, 1, 2))
        assert first == again != other


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (ValueError("why"), "ValueError: why"),
        (DataError("no place"), "its message is 'no place'"),
        (RuntimeWarning("overflow"), "RuntimeWarning: overflow"),
    ],
)
def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch, error: Exception, fault: str) -> None:
    right = text.read_text

    def wrong(file: object) -> str:
        content = right(file)  # type: ignore[arg-type]
        if content == mutated_files.valid(".txt").decode().replace("\r\n", "\n"):
            return content
        raise error

    monkeypatch.setattr(text, "read_text", wrong)
    outcome = data_files.load_damaged((".txt", 0, 30))
    assert len(outcome.faults) > 10
    assert {found.partition(": ")[2] for found in outcome.faults} == {fault}


def test_too_much_memory_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = tables.Part.checked

    def wasteful(part: tables.Part, *arguments: object) -> np.ndarray:
        np.zeros(2 << 20)  # 16 MiB
        return right(part, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(tables.Part, "checked", wasteful)
    faults = data_files.load_damaged((".csv", 0, 30)).faults
    assert faults
    assert all("took 16 MiB beside twice the arrays" in fault for fault in faults)


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("kind", ["deflated npz", "npz, first index fastest"])
def test_a_load_takes_at_most_twice_the_arrays(kind: str) -> None:
    num_bytes, peak = large_files.peak_of(kind, standardize=True, num_rows=400_000)
    assert num_bytes == 400_000 * (20 * 4 + 8)
    assert num_bytes < peak <= 2 * num_bytes + large_files.FIXED_BYTES
