import platform
import re
import resource
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import Padded
from nn_manual.arrays import BLOCK_SIZE, Array, blocks, carve, namespace, size_of, unpadded
from nn_manual.layers.fast_forms import masked, rows


def test_namespace_is_the_library_of_the_array() -> None:
    assert namespace(np.ones(2)) is np
    assert namespace(np.float32(1)) is np
    assert namespace(2.0) is np
    assert namespace(torch.ones(2)) is torch
    assert namespace(torch.nn.Parameter(torch.ones(2))) is torch


def test_namespace_does_not_load_torch() -> None:
    code = "import sys, nn_manual.arrays as a; print(a.namespace([]).__name__, 'torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == ["numpy", "False"]


def test_size_of_a_shape() -> None:
    assert [size_of(shape) for shape in [(), (3,), (2, 3), (2, 0, 3)]] == [1, 3, 6, 0]


def test_carved_views_share_the_memory_and_cover_it() -> None:
    flat = np.arange(10.0)
    views = carve(flat, {"1.weight": (3, 2), "1.scale": (), "1.bias": (3,), "none": (0, 4)})
    assert list(vars(views)) == ["1.weight", "1.scale", "1.bias", "none"]
    assert vars(views)["1.weight"].tolist() == [[0, 1], [2, 3], [4, 5]]
    assert vars(views)["1.scale"].tolist() == 6
    assert vars(views)["1.bias"].tolist() == [7, 8, 9]
    for view in vars(views).values():
        view[...] = -1
    assert flat.tolist() == [-1] * 10


@pytest.mark.parametrize("size", [6, 8, 0])
def test_shapes_that_do_not_fill_the_vector_are_refused(size: int) -> None:
    message = f"shapes {{'a': (2, 3), 'b': (1,)}} hold 7 elements, the flat vector {size}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        carve(np.zeros(size), {"a": (2, 3), "b": (1,)})


@pytest.mark.parametrize(("size", "count"), [(0, 0), (1, 1), (BLOCK_SIZE, 1), (BLOCK_SIZE + 1, 2), (3 * BLOCK_SIZE, 3)])
def test_blocks_cover_everything_once_and_in_order(size: int, count: int) -> None:
    slices = list(blocks(size))
    assert len(slices) == count
    assert [index for block in slices for index in range(block.start, block.stop)] == list(range(size))
    assert all(block.stop - block.start <= BLOCK_SIZE for block in slices)


def test_rows_count_every_leading_dimension_as_batch() -> None:
    array = np.arange(24.0).reshape(2, 3, 4)
    assert rows(array).tolist() == [row.tolist() for matrix in array for row in matrix]
    assert np.shares_memory(rows(array), array)
    assert rows(np.zeros(4)).shape == (1, 4)
    assert rows(np.zeros((0, 4))).shape == (0, 4)
    assert rows(np.zeros((2, 0, 4))).shape == (0, 4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_masked_is_where(dtype: str) -> None:
    numbers = np.array([[np.inf, -np.inf, np.nan, 1.5], [-0.0, -2.5, 1e-40, 1e30]], dtype)
    for array in (numbers, numbers.T, numbers[:, ::2], numbers[:0], numbers[0, 0, np.newaxis]):
        for mask in (np.ones(array.shape, bool), np.zeros(array.shape, bool), array > 0):
            selected = masked(array, mask)
            assert selected.dtype == dtype
            np.testing.assert_array_equal(selected, np.where(mask, array, 0))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of glibc")
def test_freed_memory_is_kept() -> None:
    program = """
import resource, sys
import numpy as np
from nn_manual.trainer.freed_memory import keep_freed_memory
if sys.argv[1] == "keep":
    keep_freed_memory()
start = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    [np.ones(10_000) for _ in range(100)]
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - start)
"""
    faults = {
        what: int(subprocess.check_output([sys.executable, "-c", program, what], text=True)) for what in ("keep", "not")
    }
    pages = 8_000_000 // resource.getpagesize()
    assert faults["keep"] < 2 * pages  # those of the first array
    assert faults["not"] > 5 * pages


ARRAY = np.arange(24.0).reshape(4, 3, 2)
LENGTHS = np.array([3, 1, 2, 3])


def test_padded_sequences_are_indexed_as_an_array() -> None:
    padded = Padded(ARRAY, LENGTHS)
    assert (padded.shape, padded.ndim, padded.size, padded.dtype, len(padded)) == ((4, 3, 2), 3, 24, ARRAY.dtype, 4)
    for chosen in (slice(1, 3), np.array([3, 0]), LENGTHS > 1):
        part = padded[chosen]
        assert np.array_equal(part.array, ARRAY[chosen])
        assert np.array_equal(part.lengths, LENGTHS[chosen])
    copy = padded.copy()
    copy.array[...], copy.lengths[...] = 0, 1
    assert ARRAY[3, 2, 1] == 23
    assert LENGTHS[0] == 3
    assert unpadded(padded) is ARRAY
    assert unpadded(ARRAY) is ARRAY


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        (LENGTHS[:3], r"lengths must have one number for each sequence .*, not the shape \(3,\) for \(4, 3, 2\)"),
        (LENGTHS[:, np.newaxis], r"lengths must have one number .*, not the shape \(4, 1\) for \(4, 3, 2\)"),
        (np.array([3, 1, 0, 3]), r"lengths must be from 1 to 3; lengths\[2\] is 0"),
        (np.array([3, 4, 2, 3]), r"lengths must be from 1 to 3; lengths\[1\] is 4"),
    ],
)
def test_lengths_that_do_not_fit(lengths: Array, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        Padded(ARRAY, lengths)


def test_lengths_become_int64() -> None:
    others: list[Any] = [LENGTHS.astype(np.int32), LENGTHS.astype(np.uint8), LENGTHS.tolist()]
    for lengths in others:
        padded = Padded(ARRAY, lengths)
        assert padded.lengths.dtype == np.int64
        assert padded.lengths.tolist() == LENGTHS.tolist()
    assert Padded(ARRAY, LENGTHS).lengths is LENGTHS
    refused: list[tuple[Any, str]] = [(LENGTHS / 1, "float64"), (LENGTHS > 1, "bool"), ([3, 1.0, 2, 3], "float64")]
    for wrong, words in refused:
        with pytest.raises(TypeError, match=f"^lengths must be integers, not {words}$"):
            Padded(ARRAY, wrong)
    with pytest.raises(ValueError, match=rf"^lengths must be from 1 to 3; lengths\[0\] is {2**64 - 1}$"):
        Padded(ARRAY, np.array([2**64 - 1, 1, 2, 3], np.uint64))


def test_padded_lists() -> None:
    padded = Padded(ARRAY.tolist(), LENGTHS.tolist())
    assert np.array_equal(padded.array, ARRAY)
    with pytest.raises(ValueError, match=r"^the array is no array of numbers: setting an array element with a seq"):
        Padded([[[1], [2]], [[1]]], [2, 1])
    with pytest.raises(ValueError, match=r"^the array of lengths is no array of numbers: setting"):
        Padded(ARRAY, [3, [1], 2, 3])  # type: ignore[list-item]  # what somebody may pass
    with pytest.raises(ValueError, match=r"^lengths must have one number .*, not the shape \(1,\) for \(\)$"):
        Padded(None, [1])  # type: ignore[arg-type]  # what somebody may pass


def test_what_padded_sequences_are_not() -> None:
    padded = Padded(ARRAY, LENGTHS)
    for index in (3, (0, 1)):
        with pytest.raises(TypeError, match=r"^Padded takes the rows that it is to have, a slice or an array of ind"):
            padded[index]
    with pytest.raises(TypeError, match=r"^Padded takes the rows"):
        list(padded)  # type: ignore[call-overload]  # what somebody may try
    with pytest.raises(TypeError, match=r"^Padded is two arrays, and none of them alone: its array and its lengths$"):
        np.asarray(padded)


def test_the_size_of_a_shape_of_numpys_integers_is_a_python_integer() -> None:
    """JSON takes no other: a run with such a shape would end in an error when it writes its summary."""
    shape: Any = np.int64(2), np.prod([3, 4])
    size = size_of(shape)
    assert (type(size), size) == (int, 24)
