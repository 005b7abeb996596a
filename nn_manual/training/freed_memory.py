"""The memory that one step frees, and the next one takes."""

from __future__ import annotations

import numpy as np

#: The largest block, in bytes, whose end glibc learns from.
MOST_LEARNED = 32_000_000


def keep_freed_memory() -> None:
    """Let glibc keep what one step frees for the next one. It gives large blocks back to the system, each page of which
    costs anew: a third of the time of a step of a net of 200 layers, and of one with a batch of 6,400, a seventh of the
    time of a checked step of 64-64-10. The largest block that was ever freed, up to 32 MiB, is its measure of what is
    large. Elsewhere this does nothing.
    """
    np.empty(MOST_LEARNED, np.uint8)
