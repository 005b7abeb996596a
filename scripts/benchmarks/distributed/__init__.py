"""What many processes must reach. Each part is a module here: its `main()` prints figures, and returns whether all of
them are reached.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

#: Their modules, in the order in which they run.
PARTS = ("speed", "arithmetic", "memory", "same_bytes", "kills")


def main(parts: Sequence[str] = (), *, short: bool = False) -> int:
    """Run these parts, by default all; in short, to see whether they run. Returns 0, or 1 if a figure is missed, or 2
    for an unknown part.
    """
    unknown = set(parts) - set(PARTS)
    if unknown:
        print(f"unknown part {', '.join(sorted(unknown))}; known: {', '.join(PARTS)}")
        return 2
    passed = [importlib.import_module(f"{__name__}.{part}").main(short=short) for part in parts or PARTS]
    return 0 if all(passed) else 1
