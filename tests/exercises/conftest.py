"""What holds for all tests of exercises."""

from __future__ import annotations

import pytest

from nn_manual.exercises.causes import explanation


@pytest.fixture(autouse=True)
def _time_to_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cause is searched for as long as it takes, however busy the machine is."""
    monkeypatch.setattr(explanation, "SECONDS", 600)
