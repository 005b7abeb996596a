"""The files of a run, found where they belong: a run directory may be somebody else's, and is data, not trust."""

from __future__ import annotations

import os
from pathlib import Path

from nn_manual.errors import DataError
from nn_manual.opening import not_a_file


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
        problem = not_a_file(path)
    except OSError:  # it is missing, or who opens it will be refused
        return path
    if problem is not None:
        raise DataError(f"{path}: {problem}")
    return path
