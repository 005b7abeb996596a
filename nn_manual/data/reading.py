"""What the readers of data files share: errors that name the file, and the nearest name."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten

from nn_manual.errors import DataError

#: A message lists names up to this many characters: a table can have hundreds of columns.
LISTED_NAMES = 200


@contextmanager
def reading(file: Path, *corrupt: type[Exception]) -> Iterator[None]:
    """Raise DataError, naming `file`, for what the operating system refuses and for the types in `corrupt`."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{file}: {error.strerror or error}") from error
    except corrupt as error:
        raise DataError(f"{file}: {error}") from error


def check_name(file: Path, kind: str, name: str, names: Sequence[str]) -> None:
    """Raise DataError, with the nearest of `names` or else the first of them, unless `name` is among them."""
    if name in names:
        return
    nearest = difflib.get_close_matches(name, names, n=1)
    listed = shorten(", ".join(map(repr, names)), LISTED_NAMES)
    advice = f"did you mean {nearest[0]!r}?" if nearest else f"it has {listed}"
    raise DataError(f"{file}: has no {kind} {name!r}; {advice}")
