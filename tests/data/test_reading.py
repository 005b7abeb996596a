"""The machine's memory, as far as the system says."""

from __future__ import annotations

import os
import sys

import pytest

from nn_manual.data.reading import check_memory, machine_memory


def test_where_the_system_does_not_say_anything_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.delattr(os, "sysconf")
    assert machine_memory() == sys.maxsize
    check_memory("huge.npz", 2**50)
