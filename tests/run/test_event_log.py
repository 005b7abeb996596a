"""The log for TensorBoard has what metrics.jsonl has, each step once, also after a run was cut."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from runs import lines, names, write_config
from stopped_runs import stopped

from nn_manual.cli import main
from nn_manual.config import load_config
from nn_manual.errors import ConfigError, DataError
from nn_manual.run.event_log import EVENTS_FILE, LOG_FOLDER, EventLog
from nn_manual.run.new_run import run
from nn_manual.run.resume import resume
from nn_manual.run.silent import NoWriter, writer_of

UNCHECKED = "gradient_check.every=0"
NOT_INSTALLED = "--log tensorboard, or a run with the folder tensorboard, needs: pip install 'nn_manual[tensorboard]'"


@pytest.fixture
def config_path(tmp_path: Path) -> Path:
    return write_config(tmp_path)


@pytest.fixture
def tensorboard() -> None:
    pytest.importorskip("tensorboard", reason="the extra tensorboard isn't installed: nothing writes or reads a log")


def accumulator(directory: Path) -> Any:
    """What TensorBoard reads of a run."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    return EventAccumulator(str(directory / LOG_FOLDER)).Reload()


def check_log(directory: Path, num_epochs: int) -> None:
    """The log's curves are the columns of metrics.jsonl, in float32."""
    records = lines(directory / "metrics.jsonl")
    assert len(records) == num_epochs
    read = accumulator(directory)
    assert set(read.Tags()["scalars"]) == records[0].keys() - {"step"}
    for name in read.Tags()["scalars"]:
        points = read.Scalars(name)
        assert [point.step for point in points] == [record["step"] for record in records]
        assert [point.value for point in points] == [np.float32(record[name]) for record in records]
    assert names(directory / LOG_FOLDER) == [EVENTS_FILE]


@pytest.mark.usefixtures("tensorboard")
def test_the_curves_are_those_of_metrics(config_path: Path, tmp_path: Path) -> None:
    run(load_config(config_path, [UNCHECKED]), tmp_path / "run", has_log=True)
    check_log(tmp_path / "run", 3)


@pytest.mark.usefixtures("tensorboard")
def test_the_axis_of_time_has_the_seconds_of_the_run(config_path: Path, tmp_path: Path) -> None:
    """Those of the epochs that are written again, too."""
    directory = tmp_path / "run"
    run(load_config(config_path, [UNCHECKED, "epochs=2"]), directory, has_log=True)
    first, last = (record["seconds"] for record in lines(directory / "metrics.jsonl"))
    EventLog(directory).begin()
    before, after = (point.wall_time for point in accumulator(directory).Scalars("lr"))
    assert after - before == pytest.approx(last - first, abs=1e-5)  # an absolute time has 7 digits behind the point


@pytest.mark.parametrize("step", [1, 3, 4, 8])
@pytest.mark.usefixtures("tensorboard")
def test_a_run_that_was_stopped_goes_on_with_its_log(config_path: Path, tmp_path: Path, step: int) -> None:
    directory = tmp_path / "run"
    stopped(config_path, directory, step, UNCHECKED)
    (directory / LOG_FOLDER).mkdir()
    resume(directory)
    check_log(directory, 3)


@pytest.mark.usefixtures("tensorboard")
def test_epochs_of_a_run_that_is_given_up_are_removed(config_path: Path, tmp_path: Path) -> None:
    """A killed run has logged more epochs than its checkpoint knows. A TensorBoard that goes on showing it shows no
    step twice.
    """
    directory = tmp_path / "run"
    run(load_config(config_path, [UNCHECKED, "epochs=4", "checkpoint.every=6 steps"]), directory, has_log=True)
    shown = accumulator(directory)
    assert [point.step for point in shown.Scalars("lr")] == [3, 6, 9, 12]
    shutil.rmtree(directory / "checkpoints" / "step-12")
    resume(directory, ["epochs=5"])
    check_log(directory, 5)
    shown.Reload()
    assert [point.step for point in shown.Scalars("lr")] == [3, 6, 9, 12, 15]


@pytest.mark.usefixtures("tensorboard")
def test_a_log_that_begins_later_has_all_epochs(config_path: Path, tmp_path: Path) -> None:
    directory = tmp_path / "run"
    run(load_config(config_path, [UNCHECKED]), directory)
    assert LOG_FOLDER not in names(directory)
    resume(directory, ["epochs=5"], has_log=True)
    check_log(directory, 5)


@pytest.mark.usefixtures("tensorboard")
def test_a_copy_made_of_links_stays_as_it_is(config_path: Path, tmp_path: Path) -> None:
    directory, copy = tmp_path / "run", tmp_path / "copy"
    run(load_config(config_path, [UNCHECKED]), directory, has_log=True)
    shutil.copytree(directory, copy, copy_function=os.link)
    resume(directory, ["epochs=4"])
    check_log(directory, 4)
    check_log(copy, 3)


@pytest.mark.usefixtures("tensorboard")
def test_what_is_not_finite(tmp_path: Path) -> None:
    line = '{"epoch": 1, "step": 3, "train_loss": null, "lr": 0.5, "seconds": 0.25}\n'
    (tmp_path / "metrics.jsonl").write_text(line)
    EventLog(tmp_path).begin()
    EventLog(tmp_path).add({"epoch": 2, "step": 6, "train_loss": math.inf, "lr": 0.5, "seconds": 0.5})
    first, second = (point.value for point in accumulator(tmp_path).Scalars("train_loss"))
    assert math.isnan(first)
    assert second == math.inf


@pytest.mark.usefixtures("tensorboard")
def test_a_log_that_cannot_be_written(config_path: Path, tmp_path: Path) -> None:
    config = load_config(config_path, [UNCHECKED])
    for name in ("file", "folder", "link"):
        run(config, tmp_path / name)
    (tmp_path / "file" / LOG_FOLDER).touch()
    with pytest.raises(DataError, match=r"(?m)/file/tensorboard: can't be made: File exists$"):
        resume(tmp_path / "file", ["epochs=4"], has_log=True)
    assert (tmp_path / "file" / "model.safetensors").exists()  # the run is whole
    (tmp_path / "folder" / LOG_FOLDER / EVENTS_FILE).mkdir(parents=True)
    with pytest.raises(DataError, match=rf"(?m)/folder/tensorboard/{EVENTS_FILE}: is no file, so "):
        resume(tmp_path / "folder", ["epochs=4"])
    (tmp_path / "link" / LOG_FOLDER).symlink_to(tmp_path / "file")
    with pytest.raises(DataError, match=r"/link/tensorboard: is behind a link that leads out of "):
        resume(tmp_path / "link", ["epochs=4"])


def test_without_tensorboard_nothing_is_written(
    config_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto", None)
    directory = tmp_path / "run"
    assert main(["train", str(config_path), UNCHECKED, "--log", "tensorboard", "--run-dir", str(directory)]) == 2
    assert capsys.readouterr() == ("", f"nn-manual: {NOT_INSTALLED}\n")
    assert not directory.exists()
    run(load_config(config_path, [UNCHECKED]), directory)
    (directory / LOG_FOLDER).mkdir()
    capsys.readouterr()
    with pytest.raises(ConfigError) as caught:
        resume(directory, ["epochs=4"])
    assert str(caught.value) == NOT_INSTALLED
    assert len(lines(directory / "metrics.jsonl")) == 3
    for rank in range(2):
        group: Any = SimpleNamespace(rank=rank)
        with pytest.raises(ConfigError):
            writer_of(directory, group, has_log=True)


@pytest.mark.usefixtures("tensorboard")
def test_the_first_process_alone_has_a_log(tmp_path: Path) -> None:
    groups: list[Any] = [SimpleNamespace(rank=rank) for rank in range(2)]
    first, other = (writer_of(tmp_path / "run", group, has_log=True) for group in groups)
    assert isinstance(other, NoWriter)
    for writer in (other, first):
        assert not (tmp_path / "run").exists()
        writer.create()
        with writer.epochs(None) as epochs:
            epochs.append({"epoch": 1, "step": 3, "train_loss": 0.5, "lr": 0.1, "seconds": 0.25})
    check_log(tmp_path / "run", 1)


@pytest.mark.slow
@pytest.mark.parametrize("log", [[], ["--log", "tensorboard"]])
@pytest.mark.usefixtures("tensorboard")
def test_what_a_training_loads(config_path: Path, tmp_path: Path, log: list[str]) -> None:
    """It alone looks at what a training without a log imports."""
    program = (
        "import sys, nn_manual.cli; nn_manual.cli.main(sys.argv[1:]);"
        "print([name in sys.modules for name in ('torch', 'tensorflow', 'tensorboard')])"
    )
    command = [sys.executable, "-W", "error", "-c", program, "train", str(config_path), UNCHECKED, *log]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (done.stdout.splitlines()[-1], done.stderr) == (f"[False, False, {bool(log)}]", "")
