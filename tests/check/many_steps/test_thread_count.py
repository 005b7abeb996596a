"""How many threads prove: the given number, or the faster one of the first proofs."""

from __future__ import annotations

import time

import pytest
import torch

from nn_manual.check.many_steps.thread_count import NUM_TIMED, ThreadCount


def numbers(
    count: ThreadCount, seconds: dict[int, float], monkeypatch: pytest.MonkeyPatch, full: list[bool]
) -> list[int]:
    """The numbers of threads of these proofs, each of which takes so many seconds."""
    now, found = [0.0], []
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    for is_full in full:
        with count.proving(is_full=is_full) as number:
            found.append(number)
            now[0] += seconds[number]
    return found


@pytest.mark.parametrize(("seconds", "fastest"), [({1: 2.0, 2: 1.5}, 2), ({1: 1.0, 2: 1.5}, 1)])
def test_the_faster_number_stays(seconds: dict[int, float], fastest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    found = numbers(ThreadCount(None), seconds, monkeypatch, [True] * (2 * NUM_TIMED) + [True, False])
    assert found == [1, 2] * NUM_TIMED + [fastest] * 2


def test_a_ring_that_isnt_full_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert numbers(ThreadCount(None), {1: 2.0, 2: 1.5}, monkeypatch, [False] * 9) == [1] * 9


@pytest.mark.parametrize(("given", "of_torch", "number"), [(3, 2, 3), (1, 2, 1), (None, 1, 1)])
def test_there_may_be_no_choice(given: int | None, of_torch: int, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: of_torch)
    assert numbers(ThreadCount(given), {number: 1.0}, monkeypatch, [True, False, True]) == [number] * 3
