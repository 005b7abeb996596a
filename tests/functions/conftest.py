"""On a machine that is slow or busy, no row of long sizes is skipped for the time of the one before it."""

from __future__ import annotations

import math

import pytest

from nn_manual.functions.battery import determinism, dimensions


@pytest.fixture(autouse=True)
def _long_sizes_always_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test sees doesn't depend on seconds. The tests of a slow kernel set their own limit."""
    for module in (determinism, dimensions):
        monkeypatch.setattr(module, "MOST_SECONDS", math.inf)
