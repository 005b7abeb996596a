"""Opens files that a person names. A device, a FIFO or a socket is refused: it may have no end, or keep us waiting."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

#: What a path can name beside a file and a folder, by the type in its mode.
KINDS = {
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
}

#: The system's name for standard input, which is mostly a pipe or a terminal.
STANDARD_INPUT = "/dev/stdin"


def open_file(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a file to read its bytes. STANDARD_INPUT may also be a pipe or a terminal.

    Raises OSError where the path names a folder, a device, a FIFO or a socket, directly or through links, and where
    the system refuses; ValueError for a path with a NUL in it.
    """
    if problem := not_a_file(path):
        raise OSError(errno.EINVAL, problem, os.fspath(path))
    return open(path, "rb")


def not_a_file(path: str | os.PathLike[str]) -> str | None:
    """The message for a path that names a device, a FIFO or a socket, such as "is a FIFO, not a file"; None for any
    other path, and for standard input. Raises OSError where nothing is there, or the system refuses; ValueError as
    above.
    """
    is_standard_input = os.fspath(path) == STANDARD_INPUT and (stat.S_ISFIFO(os.stat(path).st_mode) or os.isatty(0))
    return None if is_standard_input else not_to_be_replaced(path)


def not_to_be_replaced(path: str | os.PathLike[str]) -> str | None:
    """The same for a path that is to be written: here standard input is no exception."""
    kind = KINDS.get(stat.S_IFMT(os.stat(path).st_mode))
    return None if kind is None else f"is {kind}, not a file"


def module_not_a_file(folder: Path, name: str) -> str | None:
    """The same message behind its path, for a device, a FIFO or a socket that lies in `folder` where Python looks for
    the module `name` or for a package around it; None where there is none. Python would only say that there is no such
    module.
    """
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        path = folder.joinpath(*parts[:count])
        for file in (path / "__init__.py", path.with_name(f"{path.name}.py")):
            with suppress(OSError, ValueError):
                if problem := not_a_file(file):
                    return f"{file}: {problem}"
    return None
