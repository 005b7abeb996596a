"""Another system in the place of Linux, as far as Python shows it.

Names that it lacks are taken away, and what it refuses is refused. A process runs `become` before it imports nn_manual.
"""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

#: What chooses by sys.platform while it is imported: it is to stay with the system that is there.
LIBRARIES = (
    "asyncio", "ctypes.util", "filelock", "matplotlib.backends.backend_agg", "matplotlib.pyplot", "multiprocessing",
    "multiprocessing.connection", "numba", "numpy", "safetensors.numpy", "scipy.linalg", "scipy.special",
    "sklearn.datasets", "subprocess", "threadpoolctl", "torch", "torch._functorch.vmap", "torch.nn.functional",
    "torch.optim", "tqdm.auto",
)  # fmt: skip

#: What Python lacks on each system.
MISSING: dict[str, dict[ModuleType, tuple[str, ...]]] = {
    "win32": {
        signal: ("SIGHUP", "SIGPIPE", "SIGQUIT", "SIGUSR1", "pthread_sigmask", "setitimer", "pause"),
        os: ("fork", "getuid", "geteuid", "mkfifo", "sched_getaffinity", "sysconf", "openpty"),
    },
    "darwin": {os: ("sched_getaffinity",)},
}
#: Modules that Windows doesn't have.
POSIX_MODULES = ("fcntl", "grp", "pwd", "resource", "termios")


def become(platform: str) -> None:
    """Let this process look as on `platform`, win32 or darwin."""
    for library in LIBRARIES:
        importlib.import_module(library)
    sys.modules["threadpoolctl"].sys = SimpleNamespace(**vars(sys))  # type: ignore[attr-defined] # it asks when called
    for module, names in MISSING[platform].items():
        for name in names:
            delattr(module, name)
    if platform == "win32":
        for name in POSIX_MODULES:
            sys.modules[name] = None  # type: ignore[assignment] # so Python's import says that there is none
        _refuse_as_windows()
    sys.platform = platform


def _refuse_as_windows() -> None:
    """Refuse what Windows refuses: to open a folder, to replace or remove what is open, to rename to a name that is
    taken.
    """
    shutil._use_fd_functions = False  # type: ignore[attr-defined] # as shutil has it there: it opens no folders
    tempfile.TemporaryFile = tempfile.NamedTemporaryFile  # type: ignore[assignment] # as tempfile has it there
    open_before, rename = os.open, os.rename

    def opened(path: Any, *arguments: Any, **options: Any) -> int:
        if os.path.isdir(path):
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return open_before(path, *arguments, **options)

    def renamed(source: Any, target: Any) -> None:
        if os.path.lexists(target):
            raise FileExistsError(17, "File exists", os.fspath(source))
        rename(source, target)

    os.open = opened
    os.rename = renamed  # type: ignore[assignment] # without the folders' descriptors, which Windows doesn't have
    for name in ("rename", "replace", "remove", "unlink", "rmdir"):
        setattr(os, name, _unless_open(getattr(os, name)))


def _is_probe(path: Any) -> bool:
    """Whether it is a file with which filelock tries what this system can: it is to stay with the one that is there."""
    return Path(path).name.startswith(".filelock-")


def _unless_open(function: Callable[..., None]) -> Callable[..., None]:
    """The function, refused for files that this process has open or mapped, and for folders around them."""

    def guarded(*paths: Any, **options: Any) -> None:
        ours = {os.path.realpath(path) for path in paths if not _is_probe(path)}
        for held in _held():
            if ours & {held, *map(str, Path(held).parents)}:
                raise PermissionError(13, "Access is denied", os.fspath(paths[0]))
        function(*paths, **options)

    return guarded


def _held() -> list[str]:
    """The files that this process has open or mapped."""
    mapped = [line.split(maxsplit=5)[5:] for line in Path("/proc/self/maps").read_text().splitlines()]
    found = [path[0] for path in mapped if path]
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:  # of the listing itself
            continue
    return found
