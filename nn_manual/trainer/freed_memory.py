"""The memory that one step frees, and the next one takes."""

from __future__ import annotations

import numpy as np

#: The largest block, in bytes, whose end glibc learns from.
MOST_LEARNED = 32_000_000


def keep_freed_memory() -> None:
    """Let glibc keep the memory that one step frees for the next one. By default it gives large blocks back to the
    system, and new pages cost time: a third of a step of a net of 200 layers, and of one with a batch of 6,400, and a
    seventh of a checked step of 64-64-10. To glibc, a block is large if it is larger than all that were freed before,
    up to 32 MiB: so a block of nearly that size is freed here. With another C library this does nothing.
    """
    np.empty(MOST_LEARNED, np.uint8)
