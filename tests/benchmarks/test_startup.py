"""The limits of starts, and a start that is really one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from benchmarks import startup
from benchmarks.startup import Start


@pytest.mark.parametrize(
    ("cold", "warm", "is_missed"), [(5.9, 2.9, False), (6.1, 2.9, True), (5.9, 3.1, True), (0.5, 0.5, False)]
)
def test_a_limit_is_of_the_median_of_differences(cold: float, warm: float, is_missed: bool) -> None:
    """Plain takes 1 s, in a slow round of the machine 100 times as long, as all do then."""
    starts = {
        label: [Start(first, 0), Start(100 * first, 0), Start(first, 0)]
        for label, first in {"plain": 1.0, "compiled, cold": cold, "compiled, warm": warm}.items()
    }
    lines, missed = startup.missed("digits", starts)
    assert missed is is_missed
    assert lines[0].startswith(f"compiled, cold: {cold - 1:.2f} s later than plain, at most 5")
    assert [line.endswith(": MISSED") for line in lines] == [cold - 1 > 5, warm - 1 > 2]


def test_a_start(tmp_path: Path) -> None:
    before = time.perf_counter()
    start = startup._start("plain", "digits", tmp_path)
    assert 0 < start.first < start.last < time.perf_counter() - before


def test_an_unknown_net(capsys: pytest.CaptureFixture[str]) -> None:
    assert startup.main(["gtp"]) == 2
    assert capsys.readouterr().err == "there is no gtp; there are digits, gpt\n"
