"""For all readers of data files: errors that name the file or the nearest name, and the machine's memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from nn_manual.errors import DataError, raise_if_out_of_memory
from nn_manual.messages.text import nearest, one_line, quoted

#: A message lists names up to this many characters: a table can have hundreds of columns.
LISTED_NAMES = 200

#: Files are read, and numbers are converted, in slices of so many numbers: 1 MiB of float64.
SLICE_SIZE = 1 << 17

#: One byte of deflate, which gzip and zip use, becomes at most so many bytes: 258 for each 2 bits.
MOST_A_BYTE = 1032


@contextmanager
def reading(place: Path | str, *corrupt: type[Exception]) -> Iterator[None]:
    """Raise DataError, which names `place`, for an error of the operating system and for the types in `corrupt`. A
    MemoryError gets a note that names `place`.
    """
    try:
        yield
    except OSError as error:
        raise_if_out_of_memory(error)
        raise DataError(f"{place}: {error.strerror or error}") from error
    except MemoryError as error:
        if not hasattr(error, "__notes__"):  # a note that is there names an array in the archive, which says more
            error.add_note(f"while {place} was read")
        raise
    except corrupt as error:
        raise DataError(f"{place}: {one_line(str(error), LISTED_NAMES) or 'ends too early'}") from error


def machine_memory() -> int:
    """The bytes of memory that this machine has. Windows doesn't tell Python: there, as many as an address can name."""
    if sys.platform == "win32":
        return sys.maxsize
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_memory(place: Path | str, num_bytes: int) -> None:
    """Raise DataError if the numbers at `place` take more memory than the machine has.

    The system might grant so much memory, and kill the process when it uses it.
    """
    if num_bytes > machine_memory():
        raise DataError(
            f"{place}: its numbers take {num_bytes / 2**30:,.0f} GiB, and this machine has "
            f"{machine_memory() / 2**30:,.0f}"
        )


def check_name(place: Path | str, kind: str, name: str, names: Sequence[str]) -> None:
    """Raise DataError unless `name` is in `names`. The message has the nearest one or, if none is near, the first."""
    if name in names:
        return
    meant, listed = nearest(name, names), one_line(", ".join(map(quoted, names)), LISTED_NAMES)
    advice = f"did you mean {quoted(meant)}?" if meant is not None else f"it has {listed or 'none'}"
    raise DataError(f"{place}: has no {kind} {quoted(name)}; {advice}")
