"""What lies where a file is expected, and isn't one: how it is made, and how a message calls it."""

import os
import socket
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path


def _make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server, chdir(path.parent):
        server.bind(path.name)  # of at most 107 bytes, in which a whole path may have no room


def _make_chain(path: Path) -> None:
    first = path.with_name("first link")
    first.symlink_to("/dev/zero")
    path.symlink_to(first.name)


NO_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "FIFO": (os.mkfifo, "is a FIFO, not a file"),
    "socket": (_make_socket, "is a socket, not a file"),
    "device": (lambda path: path.symlink_to("/dev/null"), "is a character device, not a file"),
    "chain": (_make_chain, "is a character device, not a file"),
}
