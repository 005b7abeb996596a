"""Cases of a test that the quick tests leave out."""

from __future__ import annotations

from typing import Any

import pytest


def slow(*values: Any) -> Any:
    """The values of a case that only `make test-all` runs."""
    return pytest.param(*values, marks=pytest.mark.slow)


def crossed(first: list[Any], second: list[Any]) -> list[Any]:
    """Each of two lists beside each of the other. The quick tests take only those whose places are equal, the shorter
    list being gone through again and again: each value once at least.
    """
    longer = max(len(first), len(second))
    quick = {(k % len(first), k % len(second)) for k in range(longer)}
    return [
        (first[i], second[j]) if (i, j) in quick else slow(first[i], second[j])
        for i in range(len(first))
        for j in range(len(second))
    ]
