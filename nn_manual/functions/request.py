"""What a command line asks of check_function, as text; nothing here needs torch."""

from __future__ import annotations

import argparse
from typing import NamedTuple


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
        tuple(options.skip),
        tuple(options.only),
        options.timeout,
    )
