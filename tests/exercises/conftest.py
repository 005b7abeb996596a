"""What several tests of exercises use."""

from __future__ import annotations

import pytest

from nn_manual.exercises.causes import explanation


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cause is searched for as long as it takes, however busy the machine is."""
    monkeypatch.setattr(explanation, "SECONDS", 600)
