"""Parts on threads: all have ended when the results are there, or when one of them fails."""

from __future__ import annotations

import itertools
import threading
import time

import numpy as np
import pytest

from nn_manual.check.compare.threads import in_threads


def test_each_part_has_a_thread_and_the_first_one_this() -> None:
    together = threading.Barrier(3)  # it lets nobody through before all three are there

    def run(part: int) -> tuple[int, bool]:
        together.wait(timeout=60)
        return 10 * part, threading.current_thread() is threading.main_thread()

    assert in_threads(run, [1, 2, 3]) == [(10, True), (20, False), (30, False)]
    assert in_threads(lambda part: part + 1, [1]) == [2]
    assert in_threads(lambda part: part + 1, list[int]()) == []


@pytest.mark.parametrize("failing", [0, 1])
def test_where_one_fails_the_others_end_first(failing: int) -> None:
    ended = []

    def run(part: int) -> None:
        if part == failing:
            raise ValueError(f"part {part}")
        time.sleep(0.05)
        ended.append(part)

    with pytest.raises(ValueError, match=f"^part {failing}$"):
        in_threads(run, [0, 1, 2])
    assert sorted(ended) == sorted({0, 1, 2} - {failing})


def test_what_numpy_does_about_infinite_numbers_is_the_same_in_each_thread() -> None:
    with np.errstate(over="raise"):
        assert in_threads(lambda _: np.geterr()["over"], [0, 1]) == ["raise", "raise"]


@pytest.mark.parametrize("granted", [0, 1])
def test_where_the_system_grants_no_more_threads_this_one_takes_the_rest(
    granted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, number = threading.Thread.start, itertools.count()

    def start_some(thread: threading.Thread) -> None:
        if next(number) >= granted:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_some)
    is_main = in_threads(lambda part: (part, threading.current_thread() is threading.main_thread()), [0, 1, 2])
    assert is_main == [(0, True), (1, granted == 0), (2, True)]
