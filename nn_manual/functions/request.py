"""What a command line asks of check_function, as text; nothing here needs torch."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from typing import NamedTuple

#: The commas between rows; those within a name stand before another size, as in "sizes N=1,D=1", or another dtype.
BETWEEN_ROWS = re.compile(r",(?!\s*(?:\w+=\d|b?float\d))")


class Request(NamedTuple):
    """The options of `nn-manual check-function`. `backward` makes a pair with the function, `reference` may be absent,
    and `integers` has entries such as "2=C": the second input has integers from 0 on, below C. `timeout` is the most
    seconds that a row may take; None sets no limit.
    """

    function: str
    reference: str | None
    shapes: str
    sizes: str
    backward: str | None = None
    dtypes: tuple[str, ...] = ()
    integers: tuple[str, ...] = ()
    kinds: tuple[str, ...] | None = None
    tolerance: float | None = None
    skip: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    timeout: float | None = None


def request_of(options: argparse.Namespace) -> Request:
    """The request in the options of a command line."""
    return Request(
        options.function,
        options.reference,
        options.shapes,
        options.sizes,
        options.backward,
        tuple(options.dtype),
        tuple(options.integers),
        None if options.kinds is None else tuple(filter(None, options.kinds.split(","))),
        options.tolerance,
        _rows(options.skip),
        _rows(options.only),
        options.timeout,
    )


def _rows(texts: Iterable[str]) -> tuple[str, ...]:
    """The names of rows in an option that was given several times, or has commas between names."""
    return tuple(name.strip() for text in texts for name in BETWEEN_ROWS.split(text) if name.strip())
