"""A run directory's lock: one process at a time has it, and gives it back."""

from __future__ import annotations

import errno
import re
import sys
from pathlib import Path

import filelock  # noqa: F401 - it chooses by sys.platform while it is imported
import pytest

from nn_manual.errors import DataError
from nn_manual.run_directory.lock import lock


@pytest.fixture(params=["as here", "win32"])
def _on_each_system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "win32":
        monkeypatch.setattr(sys, "platform", "win32")
        monkeypatch.setitem(sys.modules, "fcntl", None)


@pytest.mark.usefixtures("_on_each_system")
def test_it_is_taken_once_and_given_back(tmp_path: Path) -> None:
    for _ in range(2):
        with lock(tmp_path):
            message = f"^{re.escape(str(tmp_path))}: another process is training this run$"
            with pytest.raises(DataError, match=message), lock(tmp_path):
                pass


@pytest.mark.usefixtures("_on_each_system")
def test_what_is_raised_inside_comes_out_as_it_is(tmp_path: Path) -> None:
    error = BlockingIOError(errno.EAGAIN, "somebody else's")
    with pytest.raises(BlockingIOError) as caught, lock(tmp_path):
        raise error
    assert caught.value is error


def test_a_system_that_refuses_is_named(tmp_path: Path) -> None:
    path = tmp_path / "nowhere"
    message = f"^{re.escape(str(path))}: can't be locked: No such file or directory$"
    with pytest.raises(DataError, match=message), lock(path):
        pass
