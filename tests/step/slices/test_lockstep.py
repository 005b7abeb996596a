"""Functions that run in turns: in their order, and together where they meet."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from nn_manual.step.slices.lockstep import Lockstep


@pytest.mark.parametrize("size", [1, 2, 5])
def test_all_meet_in_their_order(size: int) -> None:
    lockstep, log, found = Lockstep(), list[tuple[int, int]](), list[Any]()

    def run(number: int) -> None:
        for round_number in range(3):
            log.append((round_number, number))
            found.append(lockstep.meet(10 * round_number + number, tuple))

    lockstep.run([partial(run, number) for number in range(size)])
    assert log == [(round_number, number) for round_number in range(3) for number in range(size)]
    expected = [tuple(range(10 * round_number, 10 * round_number + size)) for round_number in range(3)]
    assert found == [values for values in expected for _ in range(size)]


@pytest.mark.parametrize("raising", [0, 1, 2])
def test_the_first_error_ends_all(raising: int) -> None:
    lockstep, ended = Lockstep(), list[int]()

    def run(number: int) -> None:
        lockstep.meet(number, list)
        if number == raising:
            raise ValueError(f"of {number}")
        try:
            lockstep.meet(number, list)
        except Exception:  # a layer's own code may catch what it doesn't know
            ended.append(number)

    with pytest.raises(ValueError, match=f"^of {raising}$"):
        lockstep.run([partial(run, number) for number in range(3)])
    assert ended == []


@pytest.mark.parametrize("meetings", [(1, 0), (0, 1), (2, 1), (1, 2)])
def test_functions_that_do_not_meet_as_often_are_an_error(meetings: tuple[int, int]) -> None:
    lockstep = Lockstep()

    def run(number: int) -> None:
        for _ in range(meetings[number]):
            lockstep.meet(number, list)

    with pytest.raises(RuntimeError, match="run different layers"):
        lockstep.run([partial(run, number) for number in range(2)])


def test_what_numpy_is_told_holds_in_all() -> None:
    lockstep, suspects = Lockstep(), list[str]()

    def run() -> None:
        lockstep.meet(0, list)
        np.float32(1e38) * np.float32(10)

    with np.errstate(over="call", call=lambda kind, flag: suspects.append(kind)):  # noqa: ARG005 - numpy's
        lockstep.run([run, run])
    assert suspects == ["overflow", "overflow"]
