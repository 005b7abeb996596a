"""Early stopping when a run goes on: other settings, and what a run that has ended needs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.reliability.kills import end_of
from runs import EVERYTHING, lines, write_config
from slow_cases import crossed
from stopped_runs import stopped

from nn_manual.cli import main
from nn_manual.config import load_config
from nn_manual.errors import ConfigError, DataError
from nn_manual.run.new_run import run
from nn_manual.run.resume import resume
from nn_manual.run_directory.checkpoints import checkpoints_of, read_checkpoint

#: No loss falls by so much: a run ends `patience` epochs after its first one.
NEVER_BETTER = "early_stopping={patience: 1, min_delta: 100}"
ENDED = (
    "early stopping has ended this run after epoch 2; to go on, add early_stopping.patience=N, N above 1, or "
    "early_stopping=null"
)
DONE = (
    "this run has finished; to go on from its end, add epochs=N, N above 2, and early_stopping.patience=N, N above 1, "
    "or early_stopping=null"
)
WITHOUT, LONGER = "early_stopping=null", "early_stopping.patience=3"


@pytest.fixture
def config_path(tmp_path: Path) -> Path:
    return write_config(tmp_path)


def contents(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def remembered(directory: Path) -> object:
    """What early stopping remembers in the newest checkpoint."""
    return read_checkpoint(checkpoints_of(directory)[0])[0]["early_stopping"]


NUM_EPOCHS = {WITHOUT: 6, LONGER: 4}


@pytest.mark.parametrize(("change", "settings"), crossed(list(NUM_EPOCHS), [[], EVERYTHING]))
def test_a_run_that_it_has_ended_goes_on(config_path: Path, tmp_path: Path, change: str, settings: list[str]) -> None:
    settings = [*settings, "epochs=6", NEVER_BETTER]
    run(load_config(config_path, [*settings, change]), tmp_path / "whole")
    run(load_config(config_path, settings), tmp_path / "run")
    assert len(lines(tmp_path / "run" / "metrics.jsonl")) == 2
    resume(tmp_path / "run", [change])
    assert len(lines(tmp_path / "run" / "metrics.jsonl")) == NUM_EPOCHS[change]
    assert end_of(tmp_path / "run") == end_of(tmp_path / "whole")
    assert remembered(tmp_path / "run") == remembered(tmp_path / "whole")


@pytest.mark.parametrize("step", [4, 6])
@pytest.mark.parametrize("before", [WITHOUT, "early_stopping={patience: 5}"])
def test_a_run_under_way_takes_other_settings(config_path: Path, tmp_path: Path, step: int, before: str) -> None:
    """Within the second epoch, and at its end."""
    after = "early_stopping={patience: 2, min_delta: 100}"
    run(load_config(config_path, ["epochs=6", after]), tmp_path / "whole")
    stopped(config_path, tmp_path / "run", step, "epochs=6", before)
    resume(tmp_path / "run", [after])
    assert len(lines(tmp_path / "run" / "metrics.jsonl")) == 3
    assert end_of(tmp_path / "run") == end_of(tmp_path / "whole")
    assert remembered(tmp_path / "run") == remembered(tmp_path / "whole")


def test_settings_that_would_have_ended_it_before_are_refused(config_path: Path, tmp_path: Path) -> None:
    run(load_config(config_path), tmp_path / "run")
    before = contents(tmp_path / "run")
    with pytest.raises(ConfigError) as caught:
        resume(tmp_path / "run", ["epochs=9", NEVER_BETTER])
    assert str(caught.value) == (
        "early_stopping: with patience 1 and min_delta 100, the run would have ended after epoch 2, and it has done 3"
    )
    assert contents(tmp_path / "run") == before


def test_within_the_epoch_behind_its_end_they_are_refused_too(config_path: Path, tmp_path: Path) -> None:
    """It would go on to the end of that epoch, which a run with these settings doesn't have."""
    stopped(config_path, tmp_path / "run", 7, "epochs=6", WITHOUT)  # an epoch has three steps
    before = contents(tmp_path / "run")
    with pytest.raises(ConfigError) as caught:
        resume(tmp_path / "run", [NEVER_BETTER])
    assert str(caught.value) == (
        "early_stopping: with patience 1 and min_delta 100, the run would have ended after epoch 2, and it has begun "
        "epoch 3"
    )
    assert contents(tmp_path / "run") == before


def test_a_run_that_has_finished_ends_earlier_from_an_earlier_checkpoint(config_path: Path, tmp_path: Path) -> None:
    every = "checkpoint={every: 3 steps, keep: 9}"
    run(load_config(config_path, ["epochs=4", WITHOUT, every]), tmp_path / "run")
    (tmp_path / "run" / "loss.png").write_bytes(b"figure")
    run(load_config(config_path, ["epochs=4", NEVER_BETTER, every]), tmp_path / "whole")
    resume(tmp_path / "run" / "checkpoints" / "step-6", [NEVER_BETTER])
    assert len(lines(tmp_path / "run" / "metrics.jsonl")) == 2
    assert end_of(tmp_path / "run") == end_of(tmp_path / "whole")


def test_lines_in_another_order_are_not_followed(config_path: Path, tmp_path: Path) -> None:
    run(load_config(config_path, [WITHOUT]), tmp_path / "run")
    path = tmp_path / "run" / "metrics.jsonl"
    first, *others = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*others, first]))
    with pytest.raises(DataError, match=r"metrics\.jsonl: its epochs are not 1, 2, 3, \.\.\.$"):
        resume(tmp_path / "run", ["epochs=9", "early_stopping.patience=7"])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["epochs=6"], ENDED),
        (["epochs=2"], DONE),
    ],
)
@pytest.mark.parametrize("overrides", [["epochs=9"], ["early_stopping.patience=1", "checkpoint.keep=2"]])
def test_without_a_change_it_says_what_to_add(
    config_path: Path,
    tmp_path: Path,
    settings: list[str],
    words: str,
    overrides: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(load_config(config_path, [*settings, NEVER_BETTER]), tmp_path / "run")
    (tmp_path / "run" / "loss.png").write_bytes(b"figure")
    before = contents(tmp_path / "run")
    capsys.readouterr()
    assert main(["train", "--resume", str(tmp_path / "run")]) == 0
    assert capsys.readouterr() == (f"{tmp_path / 'run'}: {words}\n", "")
    assert main(["train", "--resume", str(tmp_path / "run"), *overrides]) == 2
    words = ENDED if overrides == ["epochs=9"] else words
    assert capsys.readouterr() == ("", f"nn-manual: {tmp_path / 'run'}: {words}\n")
    assert contents(tmp_path / "run") == before


def test_a_run_that_has_done_its_epochs_says_what_to_add(
    config_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(load_config(config_path), tmp_path / "run")
    (tmp_path / "run" / "loss.png").write_bytes(b"figure")
    capsys.readouterr()
    assert main(["train", "--resume", str(tmp_path / "run")]) == 0
    said = f"{tmp_path / 'run'}: this run has finished; to go on from its end, add epochs=N, N above 3\n"
    assert capsys.readouterr() == (said, "")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("early_stopping.patience=0", "patience must be at least 1, not 0"),
        ("early_stopping.patience=two", "patience must be an integer, not the text 'two'"),
        ("early_stopping=off", "early_stopping takes keys and values, not the text 'off'"),
    ],
)
def test_a_bad_value_is_one_message(
    config_path: Path, tmp_path: Path, value: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(load_config(config_path, [NEVER_BETTER]), tmp_path / "run")
    before = contents(tmp_path / "run")
    capsys.readouterr()
    assert main(["train", "--resume", str(tmp_path / "run"), value]) == 2
    assert capsys.readouterr() == ("", f"nn-manual: override '{value}': {message}\n")
    assert contents(tmp_path / "run") == before


def test_losses_that_are_not_the_runs_are_refused(config_path: Path, tmp_path: Path) -> None:
    run(load_config(config_path, ["epochs=6", NEVER_BETTER]), tmp_path / "run")
    path = tmp_path / "run" / "metrics.jsonl"
    lowest = min(line["validation_loss"] for line in lines(path))
    other = lowest - 0.01
    text = path.read_text().replace(repr(lowest), repr(other).ljust(len(repr(lowest)), "0")[: len(repr(lowest))])
    path.write_text(text)
    found = min(line["validation_loss"] for line in lines(path))
    message = f"{path}: its lowest validation loss is {found}, the run's {lowest}"
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        resume(tmp_path / "run", [WITHOUT])
