"""The tables beside scikit-learn: both learn from the same rows, and their scores are those of what they predict."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import tables


def test_scores() -> None:
    assert tables._score(["a", "b", "b", "a"], ["a", "b", "a", "a"]) == 0.75
    assert tables._score([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) == 1
    assert tables._score([1.0, 2.0, 3.0], [2.0, 2.0, 2.0]) == 0


def test_the_made_table_has_gaps_names_and_20_classes() -> None:
    table = tables.made()
    assert len({row[-1] for row in table.rows}) == 20
    assert 500 < sum(cell == "" for row in table.rows for cell in row[:-1]) < 1000
    assert all(isinstance(row[column], str) for row in table.rows for column in table.names)


@pytest.mark.parametrize("name", ["iris", "diabetes"])
def test_a_split(name: str) -> None:
    ours, theirs = tables._scores(tables.TABLES[name](), 0)
    assert ours > (0.8 if name == "iris" else 0.2)
    assert np.isfinite(theirs)
