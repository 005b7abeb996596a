"""A run whose steps are proven together has the files of one whose steps are proven one by one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mismatches import wrong_from_step
from runs import CONFIG, lines, write_config
from slow_cases import crossed

from nn_manual import Linear
from nn_manual.config import load_config
from nn_manual.errors import GradientMismatch, NotFiniteError
from nn_manual.run.new_run import run
from nn_manual.run_directory.metrics import WEIGHTS_FILE

ONE_BY_ONE = "gradient_check.memory=0 kB"
ROOT = Path(__file__).parents[2]


def without_seconds(directory: Path) -> list[dict[str, Any]]:
    epochs = lines(directory / "metrics.jsonl")
    return [{name: value for name, value in epoch.items() if name != "seconds"} for epoch in epochs]


def test_digits(tmp_path: Path) -> None:
    """The main job: weights and curves byte for byte; two runs with one seed have one ledger."""
    for name, overrides in {"one": [ONE_BY_ONE], "many": [], "again": []}.items():
        run(load_config(ROOT / "config" / "digits.yaml", ["epochs=3", *overrides]), tmp_path / name)
    assert without_seconds(tmp_path / "many") == without_seconds(tmp_path / "one")
    weights, ledgers = (
        {name: (tmp_path / name / file).read_bytes() for name in ("one", "many", "again")}
        for file in (WEIGHTS_FILE, "gradients.jsonl")
    )
    assert weights["one"] == weights["many"] == weights["again"]
    assert ledgers["many"] == ledgers["again"]
    one, many = ([json.loads(line) for line in ledgers[name].splitlines()] for name in ("one", "many"))
    assert [(line["step"], line["tensors"], list(line["errors"])) for line in one] == [
        (line["step"], line["tensors"], list(line["errors"])) for line in many
    ]
    assert ledgers["one"] != ledgers["many"], "proven one by one all the same"


def steps_of(directory: Path) -> list[int]:
    return [json.loads(line)["step"] for line in (directory / "gradients.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(("step", "factor"), crossed([1, 2, 5], [1.01, np.nan]))
def test_a_run_that_ends_early(tmp_path: Path, step: int, factor: float) -> None:
    """Words, summary and the steps of the ledger are the same."""
    right = Linear.backward_parameters

    def wrong(layer: Linear, saved: Any, grad_output: Any) -> None:
        right(layer, saved, grad_output)
        layer.grad.weight *= np.float32(factor)

    ends = []
    for name, overrides in {"one": [ONE_BY_ONE], "many": []}.items():
        path = write_config(tmp_path, CONFIG)
        with pytest.MonkeyPatch.context() as patch:
            wrong_from_step(patch, step, Linear, "backward_parameters", wrong)
            with pytest.raises((GradientMismatch, NotFiniteError)) as raised:
                run(load_config(path, overrides), tmp_path / name)
        summary = (tmp_path / name / "summary.json").read_text()
        notes = [note.replace(str(tmp_path / name), "RUN") for note in raised.value.__notes__]
        ends.append((type(raised.value), str(raised.value), notes, summary, steps_of(tmp_path / name)))
    assert ends[0] == ends[1]
    assert f'"step": {step}' in ends[0][3]


def test_the_ledger_of_a_run_that_overflows_has_the_steps_before(tmp_path: Path) -> None:
    """They were proven, and none of them is lost."""
    text = CONFIG.replace("CrossEntropyLoss", "MSELoss").replace("lr: 0.5", "lr: 5.0")
    text = re.sub(r"data: .*", "data: {LinearTeacher: {num_examples: 160, in_features: 2, out_features: 2}}", text)
    text = text.replace("  - Tanh\n", "")
    ends = []
    for name, overrides in {"one": [ONE_BY_ONE], "many": []}.items():
        path = write_config(tmp_path, text)
        with pytest.raises(NotFiniteError) as raised:
            run(load_config(path, ["epochs=20", *overrides]), tmp_path / name)
        ends.append((str(raised.value), (tmp_path / name / "summary.json").read_text(), steps_of(tmp_path / name)))
    assert ends[0] == ends[1]
    assert len(ends[0][2]) % 8 > 1, "some waited"
