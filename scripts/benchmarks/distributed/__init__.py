"""What many processes must reach. Each part is a module here, whose `main()` prints its figures and returns whether all
of them are reached.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

#: Their modules, in the order in which they run.
PARTS = ("speed", "arithmetic", "memory", "same_bytes", "kills")


def main(parts: Sequence[str] = (), *, short: bool = False) -> int:
    """Run the parts asked for, by default all, in short to see whether they run: 0, or 1 where a figure is missed, or 2
    for an unknown part.
    """
    unknown = set(parts) - set(PARTS)
    if unknown:
        print(f"unknown part {', '.join(sorted(unknown))}; known: {', '.join(PARTS)}")
        return 2
    passed = [importlib.import_module(f"{__name__}.{part}").main(short=short) for part in parts or PARTS]
    return 0 if all(passed) else 1
