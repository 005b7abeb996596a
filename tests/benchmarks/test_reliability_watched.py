"""What is heard of a process that is watched."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.reliability import watched as watched_module
from benchmarks.reliability.kills import quick_runs
from benchmarks.reliability.watched import Ended, digest_of, watched

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")


def ended(folder: Path, work: Callable[[Path], object]) -> Ended:
    """How some work ends that is given the folder `run` in `folder`, of which it may change all."""
    for name in ("run", "outside", "out", "tmp"):
        (folder / name).mkdir()
    (folder / "outside" / "file").write_text("theirs")
    (folder / "run" / "file").write_text("ours")
    (folder / "run" / "link").symlink_to("../outside/file")
    (folder / "run" / "folder").symlink_to("../outside")

    def status() -> int:
        work(folder / "run")
        return 0

    with quick_runs():
        return watched(status, folder, [], [str(folder / name) for name in ("run", "out", "tmp")])


def in_folder(path: Path, name: str, flags: int) -> None:
    """Open a file by its folder."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    os.close(os.open(name, flags, dir_fd=folder))


@pytest.mark.parametrize(
    ("work", "touched"),
    [
        (lambda run: (run / "link").read_text(), "reads {outside}/file"),
        (lambda run: (run / "../outside/file").read_text(), "reads {outside}/file"),
        (lambda run: (run / "link").open("r+b").close(), "writes {outside}/file"),
        (lambda run: in_folder(run, "link", os.O_RDONLY), "reads {outside}/file"),
        (lambda run: in_folder(run / "folder", "file", os.O_RDONLY | os.O_NOFOLLOW), "reads {outside}"),
        (lambda run: os.listdir(run / "folder"), "lists {outside}"),
        (lambda run: (run / "folder" / "file").unlink(), "os.remove {outside}/file"),
        (lambda run: (run / "file").rename(run / "folder" / "other"), "os.rename {outside}/other"),
        (lambda run: (run / "folder" / "new").mkdir(), "os.mkdir {outside}/new"),
        (lambda run: os.truncate(run / "link", 1), "os.truncate {outside}/file"),
        (lambda run: shutil.rmtree(run / "../outside"), "reads {outside}"),
        (lambda run: os.system(f"cat {run}/file"), "os.system"),
    ],
)
def test_what_lies_outside_is_heard(tmp_path: Path, work: Callable[[Path], object], touched: str) -> None:
    end = ended(tmp_path, work)
    assert end.status == 0
    assert end.touched[0] == repr(touched.format(outside=tmp_path / "outside"))


def all_inside(run: Path) -> None:
    """What a command may do."""
    (run / "made").mkdir()
    (run / "made" / "file").write_text("x")
    (run / "made" / "file").replace(run / "other")
    (run / "inner").symlink_to("file")
    (run / "inner").read_text()
    (run / "link").unlink()
    in_folder(run, "file", os.O_RDWR | os.O_NOFOLLOW)
    os.listdir(run)
    shutil.rmtree(run / "made")
    Path("output").write_text("x")
    Path(os.devnull).write_text("x")
    os.urandom(1)


def test_what_lies_inside_may_be_touched(tmp_path: Path) -> None:
    end = ended(tmp_path, all_inside)
    assert (end.status, end.touched, end.errors) == (0, [], "")


def test_the_end_of_a_process(tmp_path: Path) -> None:
    def work(run: Path) -> None:
        print("said")
        raise KeyError(run.name)

    end = ended(tmp_path, work)
    assert (end.status, end.said) == (1, "said\n")
    assert end.errors.endswith("KeyError: 'run'\n")


def test_one_that_waits_without_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_module, "SECONDS", 0.1)
    os.mkfifo(tmp_path / "fifo")
    assert ended(tmp_path, lambda run: (run.parent / "fifo").read_text()).status is None


def test_one_that_takes_too_much_memory_is_refused(tmp_path: Path) -> None:
    end = ended(tmp_path, lambda _: bytearray(2 * watched_module.MEMORY))
    assert end.errors.endswith("MemoryError\n")


def test_a_digest_is_of_all_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    digests = [digest_of(tmp_path)]
    for change in (
        lambda: (tmp_path / "file").write_text("y"),
        lambda: (tmp_path / "file").chmod(0o600),
        lambda: (tmp_path / "folder").rmdir(),
        lambda: (tmp_path / "link").unlink(),
        lambda: (tmp_path / "link").symlink_to("fifo"),
        lambda: (tmp_path / "fifo").rename(tmp_path / "other"),
    ):
        change()
        digests.append(digest_of(tmp_path))
    assert len(set(digests)) == 7
