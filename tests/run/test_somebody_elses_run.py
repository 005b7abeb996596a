"""A run directory is data, which anybody may have written: other manifests, and links that lead out."""

from __future__ import annotations

import functools
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.reliability.kills import end_of
from runs import write_config
from stopped_runs import forged, stopped

from nn_manual.config import load_config
from nn_manual.errors import DataError
from nn_manual.run.new_run import run
from nn_manual.run.resume import resume
from nn_manual.run_directory.checkpoints import checkpoints_of, read_checkpoint, write_checkpoint


@pytest.fixture(scope="module")
def stopped_at(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes a run that was stopped after a step, once for all tests: each changes a copy of its own."""
    folder = tmp_path_factory.mktemp("stopped")
    config = write_config(folder)

    @functools.cache
    def directory(step: int, *overrides: str) -> Path:
        made = folder / f"run-{directory.cache_info().misses}"
        stopped(config, made, step, *overrides)
        return made

    return directory


#: What ReduceLROnPlateau remembers.
SCHEDULE = {"best": 1.0, "num_bad_epochs": 0, "cooldown_counter": 0, "num_reductions": 0}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"schedule": []}, 'manifest.json: "schedule" is [], expected an object'),
        ({"sizes": 3}, 'manifest.json: "sizes" is 3, expected an object'),
        ({"sizes": {"../outside": 3}}, 'manifest.json: "sizes.metrics.jsonl" is missing'),
        ({"versions": 1}, 'manifest.json: "versions" is 1, expected an object'),
        ({"blas": None}, 'manifest.json: "blas" is null, expected an object'),
        ({"blas": {"num_threads": 10**9}}, 'manifest.json: "blas.num_threads" is 1000000000, expected at most 4096'),
        ({"config": 3}, 'manifest.json: "config" is 3, expected a string'),
        ({"config": ""}, 'manifest.json: "config" is no config: config:1:1: is empty'),
        ({"config": "epochs: x"}, 'manifest.json: "config" is no config: it has no epochs'),
        ({"config": "[1, 2]"}, 'manifest.json: "config" is no config: it has no epochs'),
        ({"config": "epochs: [1"}, "manifest.json: \"config\" is no config: config:1:11: expected ',' or ']', but got "
         "'<stream end>' while parsing a flow sequence"),
        ({"config": "epochs: 1\0"}, "manifest.json: \"config\" is no config: config:1:10: YAML doesn't allow "
         r"'\x00'"),
        ({"seconds": None}, 'manifest.json: "seconds" is null, expected a number'),
        ({"seconds": {"float": "x"}}, 'manifest.json: "seconds" is {"float": "x"}, expected a number'),
        ({"best": None}, 'manifest.json: "best" is null, expected an object'),
        ({"best": {"epoch": 1}}, 'manifest.json: "best" lacks step, validation_loss'),
        ({"ledger": {}}, 'manifest.json: "ledger" lacks errors, first_step, last_step, not_judged, num_steps, record, '
         "window"),
        ({"step": -1}, 'manifest.json: "step" is -1, expected at least 0'),
        ({"step": 2**70}, f'manifest.json: "step" is {2**70}, expected a 64-bit integer'),
        ({"step": 5.0}, 'manifest.json: "step" is 5.0, expected a 64-bit integer'),
        ({"data": "x"}, 'manifest.json: "data" is "x", expected a string of the form ^[0-9a-f]{64}$'),
        ({"losses": [["x", 1.0]]}, 'manifest.json: "losses.0.0" is "x", expected a number'),
        ({"check": {"not_zero": [True]}}, 'manifest.json: "check.not_zero.0" is true, expected a 64-bit integer'),
        ({"step": 6}, 'manifest.json: "step" is 6, and the folder is step-5'),
        ({"epoch": 2, "last.epoch": 2},
         ": is no checkpoint of this run: step: is 5, and epoch 2 and batch 2 of 3 make 8"),
        ({"early_stopping": {}}, 'manifest.json: "early_stopping.best" is missing'),
    ],
)
def test_a_manifest_of_other_types_or_of_another_place(
    stopped_at: Callable[..., Path], tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    shutil.copytree(stopped_at(5), tmp_path / "run")
    (checkpoint,) = checkpoints_of(tmp_path / "run")
    forged(checkpoint, changes)
    with pytest.raises(DataError) as caught:
        resume(tmp_path / "run")
    assert str(caught.value) == str(checkpoint) + ("" if problem.startswith(":") else "/") + problem


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"schedule": SCHEDULE | {"num_bad_epochs": -1}}, "num_bad_epochs must be an integer of at least 0, not -1.0"),
        ({"schedule": {}}, f"ReduceLROnPlateau keeps {sorted(SCHEDULE)}, not []"),
    ],
)
def test_a_manifest_that_no_run_has_written(
    config_path: Path, tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    plateau = ["lr_scheduler=ReduceLROnPlateau"]
    stopped(config_path, tmp_path / "run", 6, *plateau)
    (checkpoint,) = checkpoints_of(tmp_path / "run")
    forged(checkpoint, changes)
    with pytest.raises(DataError) as caught:
        resume(tmp_path / "run")
    assert str(caught.value) == f"{checkpoint}: is no checkpoint of this run: {problem}"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("batch", 6, "at most 5"),
        ("epoch", 10**12, "at most 3"),
        ("schedule.num_reductions", 2**60, "at most 1"),
        ("early_stopping.num_epochs_since", 2, "at most 1"),
        ("best.epoch", 2, "at most 1"),
        ("best.step", 4, "at most 3"),
        ("tally.num_steps", 6, "at most 5"),
        ("tally.worst.step", 6, "at most 5"),
        ("last.epoch", 99, "1"),
        ("last.step", 99, "3"),
        ("sizes.metrics.jsonl", 0, "at least 1"),
        ("sizes.gradients.jsonl", 0, "at least 1"),
    ],
)
def test_counts_of_another_place(
    stopped_at: Callable[..., Path], tmp_path: Path, key: str, value: int, expected: str
) -> None:
    """An override of the epochs does not hide it, and is not what is refused."""
    shutil.copytree(stopped_at(5, "lr_scheduler=ReduceLROnPlateau"), tmp_path / "run")
    (checkpoint,) = checkpoints_of(tmp_path / "run")
    forged(checkpoint, {key: value})
    shown = f"{value:.15g}" if expected.startswith("at most") else value
    for overrides in ([], ["epochs=2"]):
        with pytest.raises(DataError) as caught:
            resume(tmp_path / "run", overrides)
        assert str(caught.value) == f'{checkpoint}/manifest.json: "{key}" is {shown}, expected {expected}'


@pytest.mark.parametrize(
    ("file", "array", "lacks"),
    [
        ("state.safetensors", "", "state.safetensors"),
        ("state.safetensors", "momentum_buffer 0.bias", "momentum_buffer 0.bias"),
        ("best.safetensors", "", "best.safetensors"),
        ("losses.safetensors", "losses", "losses"),
    ],
)
def test_arrays_that_are_missing(
    stopped_at: Callable[..., Path], tmp_path: Path, file: str, array: str, lacks: str
) -> None:
    shutil.copytree(stopped_at(5), tmp_path / "run")
    (checkpoint,) = checkpoints_of(tmp_path / "run")
    manifest, tensors = read_checkpoint(checkpoint)
    del manifest["sha256"], manifest["files"], (tensors[file] if array else tensors)[array or file]
    write_checkpoint(tmp_path / "run", 5, tensors, manifest, keep=3)
    with pytest.raises(DataError) as caught:
        resume(tmp_path / "run")
    assert str(caught.value) == f"{checkpoint}: is no checkpoint of this run: it has no '{lacks}'"


@pytest.mark.parametrize("array", ["0.weight", "momentum_buffer 0.weight"])
def test_arrays_of_another_dtype(stopped_at: Callable[..., Path], tmp_path: Path, array: str) -> None:
    """The bits of a float32 are an integer, too, of about a thousand millions."""
    shutil.copytree(stopped_at(5), tmp_path / "run")
    (checkpoint,) = checkpoints_of(tmp_path / "run")
    manifest, tensors = read_checkpoint(checkpoint)
    del manifest["sha256"], manifest["files"]
    tensors["state.safetensors"][array] = tensors["state.safetensors"][array].view(np.int32)
    write_checkpoint(tmp_path / "run", 5, tensors, manifest, keep=3)
    with pytest.raises(DataError) as caught:
        resume(tmp_path / "run")
    problem = f"'{array}' is int32, and the model has float32"
    assert str(caught.value) == f"{checkpoint}: is no checkpoint of this run: {problem}"


def test_the_last_epoch_is_there_once_one_has_ended(stopped_at: Callable[..., Path], tmp_path: Path) -> None:
    shutil.copytree(stopped_at(5), tmp_path / "run")
    (checkpoint,) = checkpoints_of(tmp_path / "run")
    forged(checkpoint, {"last": {}})
    with pytest.raises(DataError, match=r'manifest\.json: "last\.epoch" is 0, expected 1\n'):
        resume(tmp_path / "run")
    forged(checkpoint, {"last": {"epoch": 1, "step": 3}})
    with pytest.raises(DataError, match=r'manifest\.json: "last" lacks lr, seconds, train_loss\n'):
        resume(tmp_path / "run")


def test_what_waits_for_a_line_of_the_ledger(
    config_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nn_manual.run_directory.ledger.MOST_STEPS", 8)
    monkeypatch.setattr("nn_manual.run_directory.ledger.MOST_LINES", 2)
    stopped(config_path, tmp_path / "run", 7)
    (checkpoint,) = checkpoints_of(tmp_path / "run")
    ledger = read_checkpoint(checkpoint)[0]["ledger"]
    counts = {"window": 5, "num_steps": 2, "first_step": 6, "last_step": 7}
    assert {key: ledger[key] for key in counts} == counts
    for key, value, most in [("num_steps", 6, 5), ("first_step", 8, 7), ("last_step", 8, 7), ("window", 1, None)]:
        forged(checkpoint, {"ledger": ledger | {key: value}})
        wrong = f'"ledger.{key}" is {value}, expected at most {most}' if most else '"ledger.num_steps" is 2, expected '
        with pytest.raises(DataError, match=re.escape(f"manifest.json: {wrong}")):
            resume(tmp_path / "run")


def test_sizes_at_another_line(config_path: Path, tmp_path: Path) -> None:
    stopped(config_path, tmp_path / "run", 7)
    (checkpoint,) = checkpoints_of(tmp_path / "run")
    metrics = tmp_path / "run" / "metrics.jsonl"
    first, second = metrics.read_bytes().splitlines(keepends=True)
    forged(checkpoint, {"sizes.metrics.jsonl": len(first + second) - 5})
    with pytest.raises(DataError, match=r"metrics\.jsonl: no line ends at byte \d+, where the checkpoint was written$"):
        resume(tmp_path / "run")
    forged(checkpoint, {"sizes.metrics.jsonl": len(first)})
    with pytest.raises(DataError, match=f"jsonl: has 1 line up to byte {len(first)}, expected 2$"):
        resume(tmp_path / "run")


@pytest.mark.parametrize(
    "name", ["metrics.jsonl", "gradients.jsonl", "summary.json", "checkpoints", "checkpoints/step-4", "loss.png",
             "checkpoints/step-4/state.safetensors", "data.json", "config.yaml", "best.safetensors"]
)  # fmt: skip
def test_nothing_outside_is_touched(stopped_at: Callable[..., Path], tmp_path: Path, name: str) -> None:
    """A link in a run directory, which somebody else may have made, leads out."""
    shutil.copytree(stopped_at(4), tmp_path / "run")
    link = tmp_path / "run" / name
    if not link.exists():
        link.touch()
    outside = link.rename(tmp_path / "outside")
    link.symlink_to(outside)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(DataError, match=f"{link.name}(/manifest.json)?: is behind a link that leads out of "):
        resume(tmp_path / "run")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_run_behind_links(config_path: Path, tmp_path: Path) -> None:
    run(load_config(config_path), tmp_path / "whole")
    stopped(config_path, tmp_path / "run", 4)
    (tmp_path / "latest").symlink_to("run")
    (tmp_path / "run" / "metrics.jsonl").rename(tmp_path / "run" / "moved")
    (tmp_path / "run" / "metrics.jsonl").symlink_to("moved")
    resume(tmp_path / "latest")
    assert end_of(tmp_path / "run") == end_of(tmp_path / "whole")


