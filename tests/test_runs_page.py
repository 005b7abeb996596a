"""docs/runs.md: its files and keys are those that a run writes, and its code runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import CONFIG, lines, write_config

from nn_manual.check.judge.report import GradientReport
from nn_manual.check.many_steps.ring import MOST_STEPS
from nn_manual.config import load_config
from nn_manual.errors import GradientMismatch
from nn_manual.layers import Tanh
from nn_manual.plotting import plot_runs
from nn_manual.run import writer
from nn_manual.run.new_run import run
from nn_manual.run_directory import ledger
from nn_manual.run_directory.checkpoints import checkpoints_of
from nn_manual.run_directory.ledger_table import GRADIENTS_COLUMNS, VERDICT_COLUMNS
from nn_manual.run_directory.metrics import METRICS_COLUMNS

PAGE = Path("docs/runs.md").read_text(encoding="utf-8")


def keys_of(heading: str) -> list[list[str]]:
    """The first column of each table in a section: all names in it."""
    (section,) = re.findall(rf"^{re.escape(heading)}\n(.*?)(?=^#|\Z)", PAGE, re.DOTALL | re.MULTILINE)
    tables = re.findall(r"^\|---.*\n((?:\|.*\n)+)", section, re.MULTILINE)
    return [re.findall(r"`([^`]+)`", " ".join(row.split("|")[1] for row in table.splitlines())) for table in tables]


def leaves(content: dict[str, Any], *whole: str) -> list[str]:
    """The dotted paths of an object's values; of those in `whole`, only their own."""
    return [
        f"{key}.{path}" if path else key
        for key, value in content.items()
        for path in (leaves(value, *whole) if isinstance(value, dict) and key not in whole else [""])
    ]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that came to its end, and one that a mismatch ended."""
    folder = tmp_path_factory.mktemp("runs")
    config = write_config(folder, CONFIG)
    right = Tanh.backward
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "plot_runs", plot_runs)
        run(load_config(config, ["checkpoint={every: 1 steps, keep: 2}"]), folder / "finished")
        patch.setattr(Tanh, "backward", lambda self, saved, grad_output: 2 * right(self, saved, grad_output))
        with pytest.raises(GradientMismatch):
            run(load_config(config), folder / "mismatch")
    return folder


def test_the_files(runs: Path) -> None:
    found = {
        re.sub(r"step-\d+", "step-N", str(path.relative_to(path.parents[len(path.relative_to(runs).parts) - 2])))
        for path in runs.rglob("*")
        if path.is_file() and path.parent != runs
    }
    found = {re.sub(r"(mismatch-step-N/).*", r"\1", name) for name in found}
    ((*stated,),) = keys_of("# What a run leaves behind")
    assert set(stated) - {"nn-manual train config.yaml"} == found | {"tensorboard/"}  # which a run has if asked to


def test_metrics() -> None:
    assert keys_of("## metrics.jsonl") == [list(METRICS_COLUMNS)]


def test_gradients(tmp_path: Path, runs: Path) -> None:
    (stated,) = keys_of("## gradients.jsonl")
    assert set(GRADIENTS_COLUMNS) | set(VERDICT_COLUMNS) <= set(stated)
    with ledger.LedgerLines(tmp_path / "g", 3) as written:
        for rounding in (frozenset[str](), frozenset({"loss"})):
            written.append_step(1, Step(rounding))
        written.append_mismatch(2, GradientReport((), problem="never run"))
    found = [*lines(tmp_path / "g"), *lines(runs / "mismatch" / "gradients.jsonl")]
    assert {key for line in found for key in line} == set(stated)


class Step:
    tensors = ("loss",)
    tolerances = absolute = relative = severity = ulps = np.ones(1)
    not_judged = frozenset({"loss"})

    def __init__(self, rounding: frozenset[str]) -> None:
        self.rounding = rounding


def test_the_limit_above_which_a_line_stands_for_several_steps() -> None:
    assert f"more than {ledger.MOST_STEPS:,} checked steps" in " ".join(PAGE.split())


def test_how_many_steps_are_proven_together_at_most() -> None:
    assert f"proven together, up to {MOST_STEPS} at once" in " ".join(PAGE.split())
    assert f"up to {MOST_STEPS} steps at once" in Path("docs/your_own_layer.md").read_text(encoding="utf-8")
    assert f"proven together, at most {MOST_STEPS};" in Path("docs/configs.md").read_text(encoding="utf-8")


def test_the_manifest(runs: Path) -> None:
    (stated,) = keys_of("## Checkpoints")
    manifest = json.loads((checkpoints_of(runs / "finished")[0] / "manifest.json").read_text())
    assert list(manifest) == stated


def test_the_summary(runs: Path) -> None:
    finished, stopped = keys_of("## summary.json")
    summary = json.loads((runs / "finished" / "summary.json").read_text())
    (*_, last) = lines(runs / "finished" / "metrics.jsonl")
    assert [key for key in leaves(summary, "worst") if key not in last] == finished
    assert list(json.loads((runs / "mismatch" / "summary.json").read_text())) == stopped


def test_the_transform() -> None:
    (stated,) = keys_of("## data.json")
    config = load_config(Path("config/diabetes.yaml"))
    transform = config.data.load(0, np.dtype(np.float32)).transform
    of_tables = transform._replace(categories=(("a", ("b",)),), filled=np.ones(1), has_named_classes=True).as_json()
    assert leaves(transform.as_json()) + list(of_tables)[3:] == stated


def test_the_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    config = load_config(Path("config/digits.yaml"), ["epochs=1"])
    monkeypatch.chdir(tmp_path)
    run(config, Path("runs/slow"))
    capsys.readouterr()
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(block, "runs.md", "exec"), {})
    loss, tensor = capsys.readouterr().out.split("\n", 1)
    assert float(loss) == lines(Path("runs/slow/metrics.jsonl"))[0]["validation_loss"]
    summary = json.loads(Path("runs/slow/summary.json").read_text())
    assert tensor.strip() == summary["gradient_check"]["worst"]["worst"]
