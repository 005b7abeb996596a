"""The thread that answers for a process."""

from __future__ import annotations

import threading
import time

import pytest

from nn_manual.step.slices import roll_call
from nn_manual.step.slices.roll_call import RollCall


class SlowStore:
    """A store that answers late, as on a machine with far more processes than cores."""

    def check(self, keys: list[str]) -> bool:  # noqa: ARG002 - the signature of torch's
        time.sleep(0.5)
        return False

    def set(self, key: str, value: str) -> None:
        """It has what it gets."""


def test_the_end_waits_for_a_slow_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread in the store's C++ code aborts the process when Python ends."""
    monkeypatch.setattr(roll_call, "GRACE", 0.05)
    one = RollCall(SlowStore, rank=0, size=2, limit=10.0)
    one.end()
    assert not one._answering.is_alive()


class DictStore:
    """A store in this process."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.has_answer = threading.Event()

    def set(self, key: str, value: str) -> None:
        self.values[key] = value
        if key == "there/0":
            self.has_answer.set()

    def get(self, key: str) -> bytes:
        return self.values[key].encode()

    def check(self, keys: list[str]) -> bool:
        return all(key in self.values for key in keys)


class Clock:
    """Instead of the module `time`: it goes on once this process has answered. After 60 s it never will."""

    def __init__(self, store: DictStore) -> None:
        self.now, self.store = 0.0, store

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.store.has_answer.wait(60)
        self.store.has_answer.set()
        self.now += seconds


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({}, None),  # it hasn't come yet
        ({"came/1": ""}, "process 1 died"),
        ({"came/1": "", "there/1": "0"}, None),
        ({"came/1": "", "last word": "1"}, None),
    ],
)
def test_who_has_come_and_is_there_no_more_has_died(
    others: dict[str, str], message: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DictStore()
    store.values |= others
    monkeypatch.setattr(roll_call, "time", Clock(store))
    one = RollCall(lambda: store, rank=0, size=2, limit=10.0)
    died = one.died()
    one.end()
    assert message == (died and str(died))
