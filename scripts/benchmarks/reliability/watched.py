"""A process that is watched: which files it opens, lists and changes, and whether it ends in time.

`sys.addaudithook` reports each file that Python opens, lists, makes, renames or removes. Its path is followed through
links to where it really leads. The hook doesn't see what a library does in C: a digest of the files beside the run
shows what that wrote.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
import signal
import stat
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import matplotlib as mpl

from benchmarks.processes import ROOT, status_of

#: The memory that a case may take beside what the process has at its beginning, and the seconds in which it must end: a
#: case takes a second at most, but a read of a FIFO would wait for ever.
MEMORY, LARGEST_FILE, SECONDS = 1 << 30, 1 << 28, 60
#: Where each event has the path that is changed, and the folder where the path starts. shutil's own events are left
#: out: each file that it removes has an event, too.
CHANGES: dict[str, tuple[tuple[int, int], ...]] = {
    "os.remove": ((0, 1),),
    "os.rmdir": ((0, 1),),
    "os.mkdir": ((0, 2),),
    "os.rename": ((0, 2), (1, 3)),
    "os.link": ((0, 2), (1, 3)),
    "os.symlink": ((1, 2),),
}
#: The same for events that follow a link.
CHANGES_BEHIND_LINKS = {"os.truncate": ((0, -1),), "os.chmod": ((0, 2),), "os.chown": ((0, 3),), "os.utime": ((0, 3),)}
LISTS = {"os.listdir", "os.scandir"}
#: What no command that reads a run needs to do.
NEVER = {"subprocess.Popen", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.chdir", "socket.connect"}
#: What Python and its libraries read; they also write to /dev/null.
OF_THE_SYSTEM = ("/usr", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev/urandom", os.devnull)


@dataclass(frozen=True)
class Ended:
    """How a process ended; the status is None if it had to be killed. `touched` has a line for each file that it should
    not have touched.
    """

    status: int | None
    said: str
    errors: str
    touched: list[str]


class Watch:
    """Notes all files that this process opens, lists and changes. It writes a line to `log` for each file that lies
    neither in `read` nor in `written`, or that is changed and doesn't lie in `written`; also for everything else in
    `folder`.
    """

    def __init__(self, log: int, folder: Path, read: Iterable[str], written: Iterable[str]) -> None:
        self.log = log
        self.written = _real([*written, os.devnull, mpl.get_configdir(), mpl.get_cachedir()])
        own = [str(ROOT), sys.prefix, sys.base_prefix, *filter(None, sys.path)]
        self.read = (*self.written, *_real([*read, *own, *OF_THE_SYSTEM]))
        assert not _is_in(os.path.realpath(folder), self.read), f"what is read in {folder} would not be heard"
        #: The folder where the path of the current os.open starts: the event doesn't say it.
        self._folder = -1

    def begin(self) -> None:
        """Listen from now on: a hook is never taken away."""
        opened = os.open

        def watched(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            self._folder = -1 if dir_fd is None else dir_fd
            try:
                return opened(path, flags, mode, dir_fd=dir_fd)
            finally:
                self._folder = -1

        patch.object(os, "open", watched).start()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            self._opened(arguments[0], arguments[2])
        elif event in LISTS:
            self._look("lists", arguments[0], -1, self.read, follows=True)
        elif event in NEVER:
            self._say(event)
        else:
            for places, follows in ((CHANGES.get(event), False), (CHANGES_BEHIND_LINKS.get(event), True)):
                for path, folder in places or ():
                    count_from = arguments[folder] if folder >= 0 else -1
                    self._look(event, arguments[path], count_from, self.written, follows=follows)

    def _opened(self, path: Any, flags: int) -> None:
        if path is None or isinstance(path, int) or flags & getattr(os, "O_PATH", 0):
            return
        changes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        follows = not flags & os.O_NOFOLLOW and not (flags & os.O_EXCL and flags & os.O_CREAT)
        allowed = self.written if changes else self.read
        self._look("writes" if changes else "reads", path, self._folder, allowed, follows=follows)

    def _look(self, what: str, path: Any, folder: int, allowed: Sequence[str], *, follows: bool) -> None:
        if path is None:
            path = "."
        if isinstance(path, int):
            path = f"/proc/self/fd/{path}"
        try:
            path = os.fsdecode(path)
            if folder >= 0:
                path = os.path.join(f"/proc/self/fd/{folder}", path)
            if follows:
                path = os.path.realpath(path)
            else:
                path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        except ValueError:  # no path at all, as with a NUL
            return
        if not _is_in(path, allowed):
            self._say(f"{what} {path}")

    def _say(self, line: str) -> None:
        os.write(self.log, f"{line!r}\n".encode())


def _real(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(os.path.realpath, paths)))


def _is_in(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def watched(work: Callable[[], int], folder: Path, read: Iterable[str], written: Iterable[str]) -> Ended:
    """Do some work in a process of its own, within SECONDS and MEMORY; what the work returns is the exit status. Its
    streams go to files in `folder`. It runs in `folder`'s `out/`, and its temporary files lie in `tmp/`.
    """
    files = {name: folder / name for name in ("said", "errors", "touched")}
    process = os.fork()
    if process == 0:
        status = 1
        try:
            _begin(folder, files, read, written)
            status = _status(work)
        except BaseException:  # of what stands here, which no case may hide
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    deadline = time.monotonic() + SECONDS
    ended, waited = os.waitpid(process, os.WNOHANG)
    while not ended and time.monotonic() < deadline:
        time.sleep(0.005)
        ended, waited = os.waitpid(process, os.WNOHANG)
    if not ended:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    said, errors, touched = (file.read_bytes().decode(errors="backslashreplace") for file in files.values())
    lines = list(dict.fromkeys(touched.splitlines()))
    return Ended(os.waitstatus_to_exitcode(waited) if ended else None, said, errors, lines)


def _begin(folder: Path, files: dict[str, Path], read: Iterable[str], written: Iterable[str]) -> None:
    """Set up the process: streams, limits, the watch."""
    numbers = [os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for file in files.values()]
    null = os.open(os.devnull, os.O_RDONLY)
    for number, stream in enumerate([null, *numbers[:2]]):
        os.dup2(stream, number)
    sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))  # noqa: SIM115
    sys.dont_write_bytecode = True
    os.chdir(folder / "out")
    tempfile.tempdir = str(folder / "tmp")
    resource.setrlimit(resource.RLIMIT_AS, (status_of("VmSize") + MEMORY,) * 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    Watch(numbers[2], folder, read, written).begin()


def _status(work: Callable[[], int]) -> int:
    """The exit status that Python would give to the end of some work."""
    status = 1
    try:
        status = work()
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    return status


def digest_of(folder: Path) -> str:
    """The SHA-256 of everything in a folder: names, kinds, permissions, contents, and where links lead."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        digest.update(f"{path.relative_to(folder)} {mode}\n".encode())
        if stat.S_ISLNK(mode):
            digest.update(os.fsencode(path.readlink()))
        elif stat.S_ISREG(mode):
            digest.update(path.read_bytes())
    return digest.hexdigest()
