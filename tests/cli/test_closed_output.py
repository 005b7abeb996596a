"""Standard output that a function of the user's has closed."""

from __future__ import annotations

import io
import sys

import pytest

from nn_manual.cli import main


def test_it_is_said_without_a_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stdout", closed)
    assert main(["list", "losses"]) == 5
    assert capsys.readouterr().err == "nn-manual: standard output was closed by what ran here\n"
