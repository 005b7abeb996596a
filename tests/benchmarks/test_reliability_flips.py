"""`benchmark.py reliability flips`: a sample, and that it sees a spoilt checkpoint that is read."""

from __future__ import annotations

import pytest
from benchmarks.reliability import flips

from nn_manual.run_directory import checkpoints
from nn_manual.run_directory.weights import parse_weights


def test_no_spoilt_checkpoint_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert flips.main(num_flips=200, step=40)
    assert " refused, an older one offered" in capsys.readouterr().out


def test_one_that_is_read_is_seen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(checkpoints, "parse_weights", lambda path, data, _: parse_weights(path, data))
    assert not flips.main(num_flips=100, step=100)
    assert "state.safetensors: it was read" in capsys.readouterr().out
