"""The files of a run, found where they belong: a run directory may be somebody else's, and is data, not trust."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from nn_manual.errors import DataError

#: What else than a file or a folder a path can name, by the type in its mode.
KINDS = {
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
}


def within(directory: Path, *names: str) -> Path:
    """The path of a file or folder in `directory`, which may be missing. Whoever reads, writes or removes something of
    a run asks for it here: a link in the directory could name any file of this machine.

    Raises DataError, naming the path, where it is behind a link that leads out of the directory, and where it is
    neither a file nor a folder. A link that stays inside is fine, and so is one that leads to the directory itself.
    """
    path = directory.joinpath(*names)
    real, root = Path(os.path.realpath(path)), Path(os.path.realpath(directory))
    if not real.is_relative_to(root):
        raise DataError(f"{path}: is behind a link that leads out of {directory}, to {real}")
    try:
        kind = KINDS.get(stat.S_IFMT(path.stat().st_mode))
    except OSError:  # it is missing, or who opens it will be refused
        return path
    if kind is not None:
        raise DataError(f"{path}: is {kind}, not a file")
    return path
