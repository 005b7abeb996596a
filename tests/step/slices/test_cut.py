"""Where a batch is cut, and each slice's part in the loss."""

from __future__ import annotations

import numpy as np
import pytest

from nn_manual import CrossEntropyLoss, MSELoss
from nn_manual.step.slices.cut import BatchPart, Slicing, cut, loss_of, parts_of, share


def test_sizes_differ_by_one_at_most_and_the_larger_come_first() -> None:
    assert [rows.stop - rows.start for rows in cut(11, 4)] == [3, 3, 3, 2]
    assert [(rows.start, rows.stop) for rows in cut(3, 5)] == [(0, 1), (1, 2), (2, 3), (3, 3), (3, 3)]


def test_slices_without_examples_are_no_parts() -> None:
    parts = parts_of(MSELoss(), np.zeros((3, 2)), 5)
    assert [part.rows for part in parts] == [slice(0, 1), slice(1, 2), slice(2, 3)]
    assert [part.number for part in parts] == [0, 1, 2]


def test_the_weight_of_a_mean_is_its_share_of_the_denominators() -> None:
    """Three slices of 2, 2 and 1 examples; one target is ignored, one class weighs 3."""
    loss = CrossEntropyLoss(weight=[1.0, 3.0])
    parts = parts_of(loss, np.array([0, 1, -100, 0, 1]), 3)
    assert [part.denominator for part in parts] == [4, 1, 3]
    assert [part.weight for part in parts] == [0.5, 0.125, 0.375]


def test_a_sum_weighs_each_slice_with_one() -> None:
    assert [part.weight for part in parts_of(MSELoss("sum"), np.zeros((5, 2)), 2)] == [1, 1]


def test_where_nothing_counts_nothing_weighs() -> None:
    parts = parts_of(CrossEntropyLoss(), np.array([-100, -100]), 2)
    assert [part.weight for part in parts] == [0, 0]
    assert np.isnan(loss_of(CrossEntropyLoss(), parts, [np.nan, np.nan]))


def test_the_loss_leaves_out_a_slice_of_which_nothing_counts() -> None:
    parts = [BatchPart(0, slice(0, 1), 1, 1.0), BatchPart(1, slice(1, 2), 0, 0.0)]
    assert loss_of(CrossEntropyLoss(), parts, [0.75, np.nan]) == 0.75


def test_each_process_has_as_many() -> None:
    assert [list(share(6, rank, 3)) for rank in range(3)] == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(ValueError, match=r"^slices must be a multiple of the processes, not 5 of 2$"):
        share(5, 0, 2)


@pytest.mark.parametrize("num_slices", [0, -2])
def test_there_is_one_at_least(num_slices: int) -> None:
    with pytest.raises(ValueError, match=rf"^slices must be at least 1, not {num_slices}$"):
        Slicing(num_slices)
