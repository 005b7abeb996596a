"""Arrays and tensors that must stay as they are: of every kind, a change is seen and undone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from nn_manual.check.conduct.unchanged import Unchanged, arrays_in

RECORDS = np.array([(1.0, 2), (np.nan, 3)], dtype=[("x", "f8"), ("n", "i4")])


def set_first(array: Any, value: Any) -> None:
    array[(0,) * array.ndim] = value


@pytest.mark.parametrize(
    ("array", "value"),
    [
        (np.array([[1.0, np.nan]]), 3),
        (np.array([[1.0, 2.0], [3.0, 4.0]])[::-1], 5),
        (np.array([1, 2]), 3),
        (np.array(["a", "b"]), "c"),
        (np.array([[1], [2, 3]], dtype=object), None),
        (RECORDS.copy(), (5.0, 6)),
        (np.array(1.0), 2.0),
        (torch.tensor([[1.0, torch.nan]]), 3),
        (torch.tensor([1, 2], dtype=torch.uint32), 3),
        (torch.tensor([True]), False),
    ],
)
def test_a_change_is_seen_and_undone(array: Any, value: Any) -> None:
    before = array.copy() if isinstance(array, np.ndarray) else array.clone()
    kept = Unchanged("It", {"what": array})
    assert (kept.changed(), kept.restore()) == ("", [])
    set_first(array, value)
    assert kept.changed() == "what"
    assert kept.restore() == ["what"]
    assert kept.changed() == ""
    assert str(array.tolist()) == str(before.tolist())


def test_an_expanded_array_is_restored_where_it_lies() -> None:
    row = np.array([1.0, 2.0])
    kept = Unchanged("It", {"rows": np.broadcast_to(row, (3, 2))})
    row[0] = 5
    assert kept.restore() == ["rows"]
    assert row.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
@pytest.mark.filterwarnings("ignore:Sparse C")  # torch's, which says that these are new
def test_the_values_of_a_sparse_tensor(layout: Any) -> None:
    sparse = torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse(layout=layout)
    ((_, array),) = arrays_in([sparse])
    kept = Unchanged("It", {"sparse": array})
    assert kept.changed() == ""
    (sparse._values() if layout is torch.sparse_coo else sparse.values()).mul_(2)
    assert kept.restore() == ["sparse"]
    assert sparse.to_dense().tolist() == [[0.0, 2.0], [3.0, 0.0]]
