"""What is opened, and what is refused by its kind."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from no_files import NO_FILES

from nn_manual.opening import KINDS, module_not_a_file, not_a_file, open_file


@pytest.mark.parametrize(("make", "words"), NO_FILES.values(), ids=NO_FILES)
def test_what_is_no_file(tmp_path: Path, make: Callable[[Path], object], words: str) -> None:
    path = tmp_path / "no file.csv"
    make(path)
    chain = tmp_path / "chain"
    chain.symlink_to(path.name)
    for name in (path, str(path), chain):
        with pytest.raises(OSError, match=f"{words}: '{name}'") as caught:
            open_file(name)
        assert caught.value.strerror == not_a_file(name) == words


def test_a_block_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = os.stat_result((stat.S_IFBLK | 0o600, *range(9)))
    monkeypatch.setattr(os, "stat", lambda _: block)
    assert not_a_file(tmp_path) == "is a block device, not a file"
    assert len(KINDS) == 4


def test_files_folders_and_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12")
    (tmp_path / "b").symlink_to("a")
    for name in "ab":
        with open_file(tmp_path / name) as file:
            assert file.read() == b"12"
    with pytest.raises(IsADirectoryError):
        open_file(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_file(tmp_path / "c")
    (tmp_path / "around").symlink_to("around")
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        open_file(tmp_path / "around")
    with pytest.raises(ValueError, match="embedded null"):
        open_file("a\0")


def test_standard_input_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def mode(kind: int, *, is_terminal: bool = False) -> str | None:
        monkeypatch.setattr(os, "stat", lambda _: os.stat_result((kind | 0o600, *range(9))))
        monkeypatch.setattr(os, "isatty", lambda _: is_terminal)
        return not_a_file("/dev/stdin")

    assert mode(stat.S_IFIFO) is None
    assert mode(stat.S_IFREG) is None
    assert mode(stat.S_IFCHR, is_terminal=True) is None
    assert mode(stat.S_IFCHR) == "is a character device, not a file"  # /dev/zero, say
    assert mode(stat.S_IFSOCK) == "is a socket, not a file"


def test_modules(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    os.mkfifo(tmp_path / "package" / "waiting.py")
    waiting = f"{tmp_path}/package/waiting.py: is a FIFO, not a file"
    assert module_not_a_file(tmp_path, "package.waiting") == waiting
    assert module_not_a_file(tmp_path, "package.waiting.more") == waiting
    (tmp_path / "other").mkdir()
    os.mkfifo(tmp_path / "other" / "__init__.py")
    for name in ("other", "other.right"):
        assert module_not_a_file(tmp_path, name) == f"{tmp_path}/other/__init__.py: is a FIFO, not a file"
    (tmp_path / "right.py").write_text("")
    assert module_not_a_file(tmp_path, "right") is None
    assert module_not_a_file(tmp_path, "missing") is None
    assert module_not_a_file(tmp_path / "a\0", "right") is None
