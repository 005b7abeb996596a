"""`benchmark.py check alarms`: the runs that are searched for false alarms, and what is said of one that is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import check
from nets import replace_method
from runs import write_config

from nn_manual import Sequential
from nn_manual.config import RunConfig
from nn_manual.data.base import Split
from nn_manual.running.run import load


def test_every_config_is_searched_for_false_alarms() -> None:
    folder = Path(__file__).parents[2] / "config"
    assert sorted(folder.glob("*.yaml")) == check.CONFIGS
    assert len(check.CONFIGS) >= 5


def test_a_false_alarm_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "CONFIGS", [write_config(tmp_path)])
    monkeypatch.setattr(check, "NUM_ELEMENTS", 2_000)
    assert check.false_alarms()
    *rows, last = capsys.readouterr().out.rstrip().splitlines()
    assert [row.split()[:2] + row.split()[4:] for row in rows[1:]] == [
        ["small", "float32", "0", "0"],
        ["small", "float64", "0", "0"],
    ]
    assert all(int(row.split()[3].replace(",", "")) >= 2_000 for row in rows[1:])
    assert last.startswith("0 mismatches")

    def wrong(config: RunConfig) -> tuple[Split, Sequential]:
        split, model = load(config)
        replace_method(model.layers[1], "backward", lambda right, *arguments: 1.001 * right(*arguments))
        return split, model

    monkeypatch.setattr(check, "load", wrong)
    assert not check.false_alarms()
    assert capsys.readouterr().out.rstrip().splitlines()[-1].startswith("18 mismatches")
