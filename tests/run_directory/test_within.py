"""Files of a run are found in it: what a link hides behind isn't."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

import pytest

from nn_manual.errors import DataError
from nn_manual.run_directory.within import within


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory with a folder and a file in it, and a file beside it."""
    (tmp_path / "run" / "checkpoints" / "step-3").mkdir(parents=True)
    (tmp_path / "run" / "summary.json").write_text("{}")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    return tmp_path / "run"


def test_what_is_there_and_what_is_not(run: Path) -> None:
    assert within(run, "summary.json") == run / "summary.json"
    assert within(run, "checkpoints", "step-3") == run / "checkpoints" / "step-3"
    assert within(run, "checkpoints", "step-9", "manifest.json") == run / "checkpoints" / "step-9" / "manifest.json"


def test_a_link_that_stays_inside(run: Path) -> None:
    (run / "checkpoints" / "step-9").symlink_to("step-3")
    (run / "data.json").symlink_to(run / "summary.json")
    assert within(run, "checkpoints", "step-9").is_dir()
    assert within(run, "data.json").read_text() == "{}"


def test_a_run_behind_links(run: Path) -> None:
    (run.parent / "latest").symlink_to("run")
    (run / "data.json").symlink_to(run / "summary.json")
    assert within(run.parent / "latest", "data.json") == run.parent / "latest" / "data.json"


@pytest.mark.parametrize(
    ("place", "target", "names"),
    [
        ("metrics.jsonl", "../outside/secret", ("metrics.jsonl",)),
        ("metrics.jsonl", "../outside/missing", ("metrics.jsonl",)),
        ("metrics.jsonl", "../run2", ("metrics.jsonl",)),
        ("checkpoints/step-8", "../../outside", ("checkpoints", "step-8", "secret")),
        ("best", "../outside", ("best", "secret")),
        ("first", "second", ("first",)),  # which leads on
    ],
)
def test_a_link_that_leads_out(run: Path, place: str, target: str, names: tuple[str, ...]) -> None:
    (run / "second").symlink_to(run.parent / "outside" / "secret")
    (run / place).symlink_to(target)
    path = run.joinpath(*names)
    with pytest.raises(DataError, match=f"^{re.escape(str(path))}: is behind a link that leads out of {run}, to /"):
        within(run, *names)


def test_a_name_that_leads_out(run: Path) -> None:
    with pytest.raises(DataError, match=f"secret: is behind a link that leads out of {run}, to "):
        within(run, "../outside/secret")


def test_what_is_no_file(run: Path) -> None:
    os.mkfifo(run / "metrics.jsonl")
    with pytest.raises(DataError, match=r"/run/metrics\.jsonl: is a FIFO, not a file$"):
        within(run, "metrics.jsonl")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(run)  # a socket's path may have 107 bytes
        server.bind("data.json")
        os.chdir(here)
        with pytest.raises(DataError, match=r"/run/data\.json: is a socket, not a file$"):
            within(run, "data.json")


def test_a_link_to_itself(run: Path) -> None:
    (run / "data.json").symlink_to("data.json")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        within(run, "data.json").read_bytes()
