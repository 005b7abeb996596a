"""What runs and their files survive. Each part is a module here: its `main()` prints figures, and returns whether all
of them are reached.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

#: Their modules, in the order in which they run.
PARTS = ("kills", "failures", "flips", "directories", "configs", "typos", "data_files", "ledger", "cost")


def main(parts: Sequence[str] = (), *, cases: range | None = None) -> int:
    """Run these parts, by default all. Returns 0, or 1 if a figure is missed, or 2 for an unknown part. `cases` are the
    cases of `directories` to run.
    """
    unknown = set(parts) - set(PARTS)
    if unknown:
        print(f"unknown part {', '.join(sorted(unknown))}; known: {', '.join(PARTS)}")
        return 2
    own = {"directories": {"cases": cases}}
    passed = [importlib.import_module(f"{__name__}.{part}").main(**own.get(part, {})) for part in parts or PARTS]
    return 0 if all(passed) else 1
