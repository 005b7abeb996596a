"""How much work something is, without a clock: the same on any processor, and whatever else runs there."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable


def num_calls(work: Callable[[], object]) -> int:
    """How many functions are called, of Python and of C."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:  # noqa: ARG001 - sys.setprofile's signature
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def most_bytes(work: Callable[[], object]) -> int:
    """How much memory is in use at once."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
