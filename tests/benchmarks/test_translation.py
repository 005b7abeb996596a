"""A translation into another library heeds each setting, or refuses it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from benchmarks.translation import Translation


@dataclass
class Ours:
    size: int
    is_fast: bool = False
    name: str = "plain"
    sizes: list[int] = field(default_factory=list)


TRANSLATION: Translation[list[Any]] = Translation(lambda ours: [ours.size, ours.sizes], "size", "sizes", is_fast=True)


def test_what_it_makes_of_the_settings_that_it_heeds() -> None:
    assert TRANSLATION(Ours(3, is_fast=True, sizes=[1, 2])) == [3, [1, 2]]


@pytest.mark.parametrize(
    ("ours", "what"),
    [
        (Ours(3), "Ours with is_fast=False"),
        (Ours(3, is_fast=True, name="other"), "Ours with name='other'"),
    ],
)
def test_another_value_than_the_needed_one_or_the_default_is_refused(ours: Ours, what: str) -> None:
    with pytest.raises(NotImplementedError) as refused:
        TRANSLATION(ours)
    assert str(refused.value) == f"{what} isn't translated here"


def test_a_setting_without_a_default_that_is_not_heeded_is_refused() -> None:
    with pytest.raises(NotImplementedError, match=r"Ours with size=3 isn't translated here"):
        Translation(lambda ours: ours)(Ours(3))
