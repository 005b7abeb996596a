"""A small config, and runs of it without a figure."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import write_config

from nn_manual.running import run as run_module


@pytest.fixture
def config_path(tmp_path: Path) -> Path:
    return write_config(tmp_path)


@pytest.fixture
def without_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes most of the time of a run that is this short."""
    monkeypatch.setattr(run_module, "plot_runs", lambda runs, output: None)  # noqa: ARG005 - plot_runs' signature
