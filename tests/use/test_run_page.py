"""What a notebook shows of a run: what was trained, what came of it, and its curves."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from drawing import write_run
from html_pages import Page, page_of
from trained_runs import SWAPPED, write_trained

from nn_manual import load_run


def run_of(folder: Path, **ended: Any) -> Path:
    """A run of three epochs, in which six steps were checked."""
    run = write_trained(folder, best=SWAPPED)
    config, summary = ((run / name).read_text() for name in ("config.yaml", "summary.json"))
    shutil.copytree(write_run(folder / "recorded"), run, dirs_exist_ok=True)
    (run / "config.yaml").write_text(config)
    (run / "summary.json").write_text(json.dumps(json.loads(summary) | ended))
    return run


def facts(page: Page) -> dict[str, str]:
    return dict(row.cells for row in page.rows)  # type: ignore[misc]  # each has two texts


def test_facts_and_curves(tmp_path: Path) -> None:
    page = page_of(load_run(run_of(tmp_path)))
    assert page.texts == [f"run {tmp_path.name}/run"]
    assert facts(page) == {
        "data": "Arrays",
        "model": "1 layer, 6 parameters, float32",
        "loss": "CrossEntropyLoss",
        "weights": "the best ones, with the lowest validation loss",
        "last epoch, the best": "3, train loss 0.3333, validation loss 0.6667, validation accuracy 83.33%",
        "gradients": "6 checked steps, every tensor equal to torch's",
    }
    (picture,) = page.pictures
    assert str(picture["src"]).startswith("data:image/png;base64,iVBORw0KGgo")
    assert picture["alt"] == f"the curves of {tmp_path.name}/run"
    assert facts(page_of(load_run(tmp_path / "run", "last")))["weights"] == "of the last step"


def test_the_best_epoch_where_it_is_another_than_the_last(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 4, "step": 8, "train_loss": 0.25, "validation_loss": 0.7, "validation_accuracy": 0.5, ')
        file.write('"lr": 0.1, "seconds": 0.5}\n')
    shown = facts(page_of(load_run(run)))
    assert shown["last epoch"] == "4, train loss 0.25, validation loss 0.7, validation accuracy 50.00%"
    assert shown["best epoch"].startswith("3, train loss 0.3333, validation loss 0.6667")


def test_a_gradient_that_was_wrong_is_marked(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    lines = (run / "gradients.jsonl").read_text().splitlines()
    last = json.loads(lines[-1]) | {"mismatch": ["0.grad_weight"]}
    (run / "gradients.jsonl").write_text("\n".join([*lines[:-1], json.dumps(last)]) + "\n")
    assert page_of(load_run(run)).marked == [("gradients", "WRONG in the last of 6 checked steps: 0.grad_weight")]


def test_the_name_of_a_folder_is_escaped(tmp_path: Path) -> None:
    run = run_of(tmp_path).rename(tmp_path / "<i>run & co")
    page = page_of(load_run(run))
    assert page.texts == [f"run {tmp_path.name}/<i>run & co"]
    assert page.pictures[0]["alt"] == f"the curves of {tmp_path.name}/<i>run & co"


def test_a_run_whose_files_are_gone_still_says_what_it_is(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    loaded = load_run(run)
    shutil.rmtree(run)
    page = page_of(loaded)
    assert page.texts == ["run run", f"no curves: {run}: no such run"]
    assert list(facts(page)) == ["data", "model", "loss", "weights"]
    assert page.pictures == []


@pytest.mark.slow
def test_matplotlib_waits_until_a_notebook_asks(tmp_path: Path) -> None:
    """It alone would notice that load_run draws."""
    program = f"""
import sys, nn_manual
run = nn_manual.load_run({str(run_of(tmp_path))!r})
print('matplotlib' in sys.modules, repr(run))
run._repr_html_()
print('matplotlib' in sys.modules, 'matplotlib.pyplot' in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False <TrainedRun: Arrays, 6 parameters, best weights>\nTrue False\n"
