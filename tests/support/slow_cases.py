"""Cases of a test that the quick tests leave out."""

from __future__ import annotations

import itertools
from typing import Any

import pytest


def slow(*values: Any) -> Any:
    """The values of a case that only `make test-all` runs."""
    return pytest.param(*values, marks=pytest.mark.slow)


def crossed(*lists: list[Any]) -> list[Any]:
    """Each value of one list beside each of the others. The quick tests take only those whose places are equal, the
    shorter lists being gone through again and again: each value once at least.
    """
    quick = {tuple(k % len(each) for each in lists) for k in range(max(map(len, lists)))}
    cases = []
    for places in itertools.product(*(range(len(each)) for each in lists)):
        values = tuple(each[place] for each, place in zip(lists, places, strict=True))
        cases.append(values if places in quick else slow(*values))
    return cases
