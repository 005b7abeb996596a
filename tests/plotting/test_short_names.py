"""Names that are cut: what differs stays."""

from __future__ import annotations

import pytest

from nn_manual.plotting.short_names import shorten


def test_what_fits_stays() -> None:
    assert shorten(["abc", "abcd"], 4) == ["abc", "abcd"]


def test_a_long_name_loses_its_middle() -> None:
    assert shorten(["encoder.layers.12.attention.grad_weight"], 24) == ["encoder.laye…grad_weight"]


@pytest.mark.parametrize(
    ("names", "shortened"),
    [
        (["runs/lr=0.1/2026-01-01", "runs/lr=0.5/2026-01-01"], ["runs/lr=0.1…1", "runs/lr=0.5…1"]),
        (["a_first_of_these_runs", "b_first_of_these_runs"], ["a_firs…e_runs", "b_firs…e_runs"]),
        (["runs/digits-0000000001", "runs/digits-0000000002"], ["runs/d…000001", "runs/d…000002"]),
        (["12345678901234567890", "12345678901234567890"], ["123456…567890"] * 2),
        (["aaaaaaaaaaXbbbbbbbbbb", "aaaaaaaaaaYbbbbbbbbbb"], ["a…Xbbbbbbbbbb", "a…Ybbbbbbbbbb"]),
    ],
)
def test_what_differs_stays(names: list[str], shortened: list[str]) -> None:
    assert shorten(names, 13) == shortened


def test_names_that_no_cut_tells_apart_lose_their_middle() -> None:
    names = [f"{a}{'-' * 20}{b}{'-' * 20}{c}" for a in "xy" for b in "xy" for c in "xy"]
    assert set(shorten(names, 9)) == {f"{a}---…---{c}" for a in "xy" for c in "xy"}


def test_a_short_name_that_a_cut_one_could_be_counts_too() -> None:
    assert shorten(["abc_xyz", "abcdefg_xyz"], 7) == ["abc_xyz", "abcd…yz"]
