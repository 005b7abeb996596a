"""A run's files: what is written reads back to the bit, and nothing half-written is ever found."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from no_files import NO_FILES

from nn_manual.errors import DataError
from nn_manual.run_directory.files import (
    JsonLines,
    create_run_directory,
    remove_temporary,
    sync_directory,
    write_atomically,
    write_json,
)
from nn_manual.run_directory.lock import LOCK_FILE
from nn_manual.run_directory.weights import read_weights

# The run directory


def test_a_run_directory_is_made_with_its_parents(tmp_path: Path) -> None:
    assert create_run_directory(tmp_path / "runs" / "digits" / "now") == tmp_path / "runs" / "digits" / "now"
    assert (tmp_path / "runs" / "digits" / "now").is_dir()


def test_an_empty_directory_is_taken_as_it_is(tmp_path: Path) -> None:
    assert create_run_directory(tmp_path) == tmp_path


def test_a_directory_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(DataError) as caught:
        create_run_directory(tmp_path)
    assert str(caught.value) == f"{tmp_path}: the run directory exists and isn't empty, it holds notes.txt"
    assert caught.value.exit_status == 5
    (tmp_path / "notes.txt").rename(tmp_path / LOCK_FILE)
    assert create_run_directory(tmp_path) == tmp_path


@pytest.mark.parametrize("below", [".", "run"])
def test_a_file_in_the_way_is_refused(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"file.*: the run directory can't be made: (File exists|Not a directory)"):
        create_run_directory(tmp_path / "file" / below)


def test_a_directory_that_may_not_be_made_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Permissions do not bind the administrator, who runs tests in containers.
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(DataError, match=r"run: the run directory can't be made: Permission denied"):
        create_run_directory(tmp_path / "run")


# Atomic files


def test_a_file_is_written_and_overwritten_in_full(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    write_atomically(path, b"first, and longer")
    write_atomically(path, b"second")
    assert path.read_bytes() == b"second"
    assert os.listdir(tmp_path) == ["summary.json"]


def test_a_file_has_the_permissions_that_open_gives(tmp_path: Path) -> None:
    (tmp_path / "opened").touch()
    write_atomically(tmp_path / "written", b"")
    assert (tmp_path / "written").stat().st_mode == (tmp_path / "opened").stat().st_mode


@pytest.mark.parametrize(("owner", "failing"), [(os, "fsync"), (Path, "replace")])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: object, failing: str, error: BaseException
) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(owner, failing, fail)
    with pytest.raises((DataError, KeyboardInterrupt)) as caught:
        write_atomically(path, b"new")
    message = f"{path}: can't be written: No space left on device" if isinstance(error, OSError) else ""
    assert str(caught.value) == message
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.safetensors"]


def test_windows_opens_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, flags: int) -> int:  # noqa: ARG001 - the signature of os.open
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "open", refuse)
    sync_directory(tmp_path)
    write_json(tmp_path / "file.json", {"step": 1})
    assert json.loads((tmp_path / "file.json").read_text()) == {"step": 1}


def test_no_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("as it was")
    (tmp_path / "run").mkdir()
    for name in ("summary.json", f".summary.json.{os.getpid()}.tmp"):
        (tmp_path / "run" / name).symlink_to("../outside")
    write_atomically(tmp_path / "run" / "summary.json", b"{}")
    assert (tmp_path / "outside").read_text() == "as it was"
    assert not (tmp_path / "run" / "summary.json").is_symlink()
    assert os.listdir(tmp_path / "run") == ["summary.json"]


def identity(path: Path) -> tuple[int, ...]:
    """What a file is, without the time of the last access: following a link counts as one."""
    stat = os.lstat(path)
    return stat.st_ino, stat.st_mode, stat.st_size, stat.st_mtime_ns


@pytest.mark.parametrize(("make", "words"), NO_FILES.values(), ids=NO_FILES)
def test_what_is_no_file_is_not_replaced(tmp_path: Path, make: Callable[[Path], object], words: str) -> None:
    path = tmp_path / "loss.png"
    make(path)
    before = sorted(os.listdir(tmp_path)), identity(path)
    with pytest.raises(DataError) as caught:
        write_atomically(path, b"")
    assert str(caught.value) == f"{path}: {words}"
    assert (sorted(os.listdir(tmp_path)), identity(path)) == before


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    """Of a link, the link alone."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").touch()
    run = tmp_path / "run"
    (run / ".step-3.7.tmp" / "folder").mkdir(parents=True)
    (run / ".summary.json.7.tmp").touch()
    (run / ".a.tmp").symlink_to("../outside")
    (run / ".b.tmp").symlink_to("../outside/file")
    (run / ".c.tmp").symlink_to("nowhere")
    (run / "d.tmp").touch()
    remove_temporary(run)
    assert os.listdir(run) == ["d.tmp"]
    assert os.listdir(tmp_path / "outside") == ["file"]


def test_what_cannot_be_removed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    (tmp_path / ".a.tmp").touch()
    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(DataError, match=r"/\.a\.tmp: can't be removed: Operation not permitted$"):
        remove_temporary(tmp_path)


@pytest.mark.parametrize(
    ("path", "reason"), [("missing/file", "No such file or directory"), (".", "Is a directory"), ("a/b", "Not a dir")]
)
def test_an_impossible_place_is_named(tmp_path: Path, path: str, reason: str) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "full").mkdir()
    target = tmp_path / path if path != "." else tmp_path / "full"
    with pytest.raises(DataError, match=f"{target}: can't be written: {reason}"):
        write_atomically(target, b"")
    assert sorted(os.listdir(tmp_path)) == ["a", "full"]


@pytest.mark.parametrize("path", [".", "/"])
def test_a_folder_without_a_name_is_no_place(path: str) -> None:
    with pytest.raises(DataError) as caught:
        write_atomically(Path(path), b"")
    assert str(caught.value) == f"{path}: can't be written: Is a directory"


OVERWRITE_FOREVER = """
import sys
from collections.abc import Callable
from pathlib import Path
import numpy as np
from nn_manual.run_directory.weights import write_weights
path, value = Path(sys.argv[1]), 0
while True:
    write_weights(path, {"0.weight": np.full(100_000, value)})
    print("written", flush=True)
    value += 1
"""


@pytest.mark.slow
def test_a_process_killed_while_overwriting_leaves_a_whole_file(tmp_path: Path) -> None:
    """It alone kills a process that writes one file again and again."""
    path = tmp_path / "model.safetensors"
    for iteration in range(8):
        command = [sys.executable, "-c", OVERWRITE_FOREVER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert [process.stdout.readline() for _ in range(2)] == 2 * [b"written\n"]
            time.sleep(0.013 * iteration)  # each time at another point of the next files
            process.send_signal(signal.SIGKILL)
        weight = read_weights(path)["0.weight"]
        assert weight.shape == (100_000,)
        assert np.all(weight == weight[0])
        assert weight[0] >= 1  # it was overwriting


# JSON lines


def test_lines_read_back_to_the_bit(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with JsonLines(path) as lines:
        lines.append({"epoch": 1, "train_loss": 0.1 + 0.2, "worst": "0.weight"})
        lines.append({"epoch": 2, "loss": 5e-324})
    first, second = path.read_text().splitlines()
    assert first == '{"epoch": 1, "train_loss": 0.30000000000000004, "worst": "0.weight"}'
    assert second == '{"epoch": 2, "loss": 5e-324}'


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_null(tmp_path: Path, value: float) -> None:
    with JsonLines(tmp_path / "lines") as lines:
        lines.append({"epoch": 1, "train_loss": value, "name": "a"})
    assert (tmp_path / "lines").read_text() == '{"epoch": 1, "train_loss": null, "name": "a"}\n'


def test_a_listener_hears_each_record_that_is_appended(tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []
    with JsonLines(tmp_path / "lines.jsonl", listener=heard.append) as lines:
        lines.append({"epoch": 1})
        lines.append({"epoch": 2})
    assert heard == [{"epoch": 1}, {"epoch": 2}]


def test_what_is_encoded_later_is_encoded_when_the_line_is_written(tmp_path: Path) -> None:
    text = "too early"
    with JsonLines(tmp_path / "lines") as lines:
        lines.append_later(lambda: text)
        lines.append({"step": 2, "relative": math.inf})
        text = '{"step": 1}'
    assert (tmp_path / "lines").read_text() == '{"step": 1}\n{"step": 2, "relative": null}\n'


def test_lines_wait_in_memory_and_reach_the_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JsonLines, "BUFFERED_LINES", 3)
    path = tmp_path / "lines"
    with JsonLines(path) as lines:
        seen = []
        for step in range(5):
            lines.append({"step": step})
            seen.append(path.read_bytes().count(b"\n"))
        assert seen == [0, 0, 3, 3, 3]
        lines.flush()
        assert path.read_bytes().endswith(b'{"step": 4}\n')
        lines.append({"step": 5})
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [0, 1, 2, 3, 4, 5]


def test_an_exception_in_the_block_still_writes_what_was_appended(tmp_path: Path) -> None:
    def interrupted() -> None:
        with JsonLines(tmp_path / "lines") as lines:
            lines.append({"step": 1})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "lines").read_text() == '{"step": 1}\n'


def test_a_number_that_json_does_not_know_is_a_mistake_of_the_caller(tmp_path: Path) -> None:
    with JsonLines(tmp_path / "lines") as lines, pytest.raises(TypeError, match="float32 is not JSON serializable"):
        lines.append({"loss": np.float32(1)})
    assert (tmp_path / "lines").read_bytes() == b""


def test_lines_come_after_what_is_left_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text('{"step": 1}\n{"step": 3}\n')
    with JsonLines(path, 12) as lines:
        lines.append({"step": 2})
    assert path.read_text() == '{"step": 1}\n{"step": 2}\n'


def test_lines_do_not_come_into_a_file_that_is_another_runs_too(tmp_path: Path) -> None:
    """A copy of a run by `cp -al` has hard links to its files."""
    path, copy = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    path.write_bytes(b'{"step": 1}\n{"step": 2}\n')
    copy.hardlink_to(path)
    with JsonLines(copy, size=12) as lines:
        lines.append({"step": 3})
    assert path.read_bytes() == b'{"step": 1}\n{"step": 2}\n'
    assert copy.read_bytes() == b'{"step": 1}\n{"step": 3}\n'


def test_after_a_write_that_was_refused_the_file_goes_on_where_it_was(tmp_path: Path) -> None:
    class Full:
        """Takes half a line, then none."""

        def __init__(self, file: Any) -> None:
            self.file, self.num_writes = file, 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

        def write(self, data: bytes) -> int:
            self.num_writes += 1
            if self.num_writes == 2:
                raise OSError(28, "No space left on device")
            return int(self.file.write(data[: len(data) // 2] if self.num_writes == 1 else data))

    with JsonLines(tmp_path / "lines") as lines:
        lines.append({"a": 1})
        lines.flush()
        full: Any = Full(lines._file)
        lines._file = full
        lines.append({"b": 2})
        with pytest.raises(DataError, match="No space left"):
            lines.flush()
        lines.append({"c": 3})
    assert (tmp_path / "lines").read_text() == '{"a": 1}\n{"c": 3}\n'


def test_a_file_that_exists_is_not_appended_to(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("kept")
    with pytest.raises(DataError, match="lines: can't be written: File exists"):
        JsonLines(tmp_path / "lines")
    assert (tmp_path / "lines").read_text() == "kept"


FILL_THE_DISK = """
import resource, signal, sys
from collections.abc import Callable
from pathlib import Path
from nn_manual.errors import DataError
from nn_manual.run_directory.files import JsonLines
sys.dont_write_bytecode = True  # files of compiled modules would be cut off, too
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write returns an error instead
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    with JsonLines(Path(sys.argv[1])) as lines:
        for step in range(3):
            lines.append({"step": step})
        lines.flush()
        for step in range(100):
            lines.append({"step": step})
except DataError as error:
    print(error)
"""


def test_a_full_disk_cuts_no_line_in_two(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    result = subprocess.run(
        [sys.executable, "-c", FILL_THE_DISK, str(path)], capture_output=True, text=True, check=True
    )
    assert result.stdout == f"{path}: can't be written: File too large\n"
    assert result.stderr == ""
    assert path.read_text() == '{"step": 0}\n{"step": 1}\n{"step": 2}\n'
