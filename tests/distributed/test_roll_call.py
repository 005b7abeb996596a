"""The thread that answers for a process."""

from __future__ import annotations

import time

import pytest

from nn_manual.distributed import roll_call
from nn_manual.distributed.roll_call import RollCall


class SlowStore:
    """A store that answers late, as on a machine with far more processes than cores."""

    def check(self, keys: list[str]) -> bool:  # noqa: ARG002 - the signature of torch's
        time.sleep(0.5)
        return False


def test_the_end_waits_for_a_slow_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread in the store's C++ code aborts the process when Python ends."""
    monkeypatch.setattr(roll_call, "GRACE", 0.05)
    one = RollCall(SlowStore, rank=0, size=2, limit=10.0)
    one.end()
    assert not one._answering.is_alive()
