"""`benchmark.py check alarms`: the runs that are searched for false alarms, and what is said of one that is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import alarms
from nets import replace_method
from runs import write_config

from nn_manual import Sequential
from nn_manual.config import RunConfig
from nn_manual.data.base import Split
from nn_manual.run.loading import load
from nn_manual.step.slices.gradient_sum import InOrder


def test_every_config_is_searched_for_false_alarms() -> None:
    folder = Path(__file__).parents[2] / "config"
    assert sorted(folder.glob("*.yaml")) == alarms.CONFIGS
    assert len(alarms.CONFIGS) >= 5


def test_a_false_alarm_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(alarms, "on_all_cores", map)
    monkeypatch.setattr(alarms, "CONFIGS", [write_config(tmp_path)])
    monkeypatch.setattr(alarms, "NUM_ELEMENTS", 2_000)
    assert alarms.false_alarms()
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

    monkeypatch.setattr(alarms, "load", wrong)
    assert not alarms.false_alarms()
    assert capsys.readouterr().out.rstrip().splitlines()[-1].startswith("18 mismatches")


def test_a_false_alarm_in_slices_is_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(alarms, "on_all_cores", map)
    monkeypatch.setattr(alarms, "STEPS_IN_SLICES", 3)
    assert alarms.random_alarms(range(2, 4), only_slices=True)
    assert capsys.readouterr().out.startswith("random nets in slices: 2 of them, 6 steps, 0 mismatches, ")
    monkeypatch.setattr(InOrder, "add", lambda *_: None)  # the gradient of the last slice stays
    assert not alarms.random_alarms(range(2, 4), only_slices=True)
    assert " 2 mismatches, " in capsys.readouterr().out


def test_few_steps_are_beyond_the_tolerance_by_rounding(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(alarms, "NUM_STEPS_OF_APPEALS", 300)
    assert alarms.appeals()
    rows = capsys.readouterr().out.splitlines()
    assert [row.split(":")[0] for row in rows[:2]] == ["appeals, float32", "appeals, float64"]
    assert all(row.endswith(" of 300 steps") for row in rows[:2])
    monkeypatch.setattr(alarms, "FEW_APPEALS", 0)  # the first step of all goes to the judge
    assert not alarms.appeals()
