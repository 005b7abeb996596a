"""Finds the files of a run inside of its directory: this may be somebody else's, and a link in it may lead out."""

from __future__ import annotations

import os
from pathlib import Path

from nn_manual.errors import DataError
from nn_manual.opening import not_a_file


def within(directory: Path, *names: str) -> Path:
    """The path of a file or folder in `directory`, which may be missing. Call this before anything of a run is read,
    written or removed: a link in the directory could name any file of this machine.

    Raises DataError, naming the path, where it is behind a link that leads out of the directory, and where it is
    neither a file nor a folder. A link that stays inside is allowed, and so is one that leads to the directory itself.
    """
    path = directory.joinpath(*names)
    real, root = Path(os.path.realpath(path)), Path(os.path.realpath(directory))
    if not real.is_relative_to(root):
        raise DataError(f"{path}: is behind a link that leads out of {directory}, to {real}")
    try:
        problem = not_a_file(path)
    except OSError:  # it is missing, or it can't be opened, either
        return path
    if problem is not None:
        raise DataError(f"{path}: {problem}")
    return path
