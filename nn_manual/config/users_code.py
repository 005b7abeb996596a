"""The user's own code while it runs: which line of it raised, and the streams that it may replace."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nn_manual.errors import words_of
from nn_manual.messages.users_lines import last_line


@contextmanager
def kept_streams() -> Iterator[None]:
    """A context for the user's code. After it, standard output and standard error are the same streams as before."""
    before = sys.stdout, sys.stderr
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def placed_words(error: BaseException, folder: Path | None) -> str:
    """file:line and the error. The line is where a module can't be parsed, or else the last line that ran; in `folder`,
    if one of its lines ran.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}"
    place = last_line(error, folder) if folder else None
    if place is None:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{frame.filename}:{frame.lineno}"
    return f"{place}: {words_of(error)}"
