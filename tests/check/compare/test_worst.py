"""Tensors of many steps beside torch's: the largest difference and magnitude of each, in each step."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch

from nn_manual.arrays import DTYPES, Array
from nn_manual.check.compare import threads, worst
from nn_manual.check.compare.worst import worst_differences

#: Small ones, which are compared side by side, one of a block and more, and one of several blocks.
SHAPES: list[tuple[int, ...]] = [(1,), (3, 4), (511,), (512,), (700, 60), (2, 40_000), ()]


@pytest.fixture(params=["passes", "one pass"], autouse=True)
def loaded(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether numba has been loaded: its machine code finds the same."""
    if request.param == "one pass":
        pytest.importorskip("numba")
    else:
        monkeypatch.delitem(sys.modules, "numba", raising=False)


def drawn(seed: int, num_steps: int, dtype: str) -> list[Array]:
    generator = np.random.default_rng(seed)
    return [generator.standard_normal((num_steps, *shape)).astype(dtype) for shape in SHAPES]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("num_steps", [1, 2, 7])
@pytest.mark.parametrize("transposed", [False, True])
def test_the_differences_are_those_of_whole_tensors(dtype: str, num_steps: int, transposed: bool) -> None:
    for seed in range(2):  # what it keeps of one call must not show in the next
        ours, references = drawn(seed, num_steps, dtype), drawn(seed + 10, num_steps, dtype)
        if transposed:
            references = [
                array.transpose(0, *range(array.ndim - 1, 0, -1)).copy().transpose(0, *range(array.ndim - 1, 0, -1))
                for array in references
            ]
        before = [array.copy() for array in (*ours, *references)]
        absolute, scale = worst_differences(ours, references, num_steps=num_steps)
        assert absolute.dtype == scale.dtype == dtype
        for i, (own, reference) in enumerate(zip(ours, references, strict=True)):
            rows = [array.reshape(num_steps, -1) for array in (own, reference)]
            assert absolute[:, i].tolist() == np.abs(rows[0] - rows[1]).max(axis=1).tolist()
            assert scale[:, i].tolist() == np.abs(rows[1]).max(axis=1).tolist()
        for array, same in zip((*ours, *references), before, strict=True):
            assert np.array_equal(array, same)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("num_steps", [1, 7])
@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_nothing_has_the_bits_of_zero_without_a_sign(zero: float, num_steps: int, dtype: str) -> None:
    arrays = [np.full((num_steps, *shape), zero, dtype) for shape in SHAPES]
    for found in worst_differences(arrays, [array.copy() for array in arrays], num_steps=num_steps):
        assert found.tobytes() == np.zeros_like(found).tobytes()


@pytest.mark.parametrize("tensor", range(len(SHAPES)))
@pytest.mark.parametrize(("number", "found"), [(np.nan, np.nan), (np.inf, np.inf), (-np.inf, np.inf)])
def test_what_is_no_number_shows_in_its_step_alone(tensor: int, number: float, found: float) -> None:
    ours, references = drawn(0, 3, "float32"), drawn(1, 3, "float32")
    ours[tensor][1:2] = number
    absolute, _ = worst_differences(ours, references, num_steps=3)
    np.testing.assert_equal(absolute[1, tensor], np.float32(found))
    absolute[1, tensor] = 0
    assert np.isfinite(absolute).all()
    references[tensor][1:2] = number
    assert np.isnan(worst_differences(ours, references, num_steps=3)[0][1, tensor])  # infinity in both, too


@pytest.mark.parametrize("num_threads", [1, 2, 3, 50])
@pytest.mark.parametrize("num_steps", [1, 3])
def test_the_differences_do_not_depend_on_the_number_of_threads(
    num_threads: int, num_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, references = drawn(0, num_steps, "float32"), drawn(1, num_steps, "float32")
    expected = worst_differences(ours, references, num_steps=num_steps)
    ran = []

    def in_threads(run: Any, parts: list[Any]) -> list[Any]:
        ran.append(len(parts))
        return threads.in_threads(run, parts)

    monkeypatch.setattr(worst, "in_threads", in_threads)
    monkeypatch.setattr(worst, "ELEMENTS_OF_THREAD", 100)
    monkeypatch.setattr(torch, "get_num_threads", lambda: num_threads)
    found = worst_differences(ours, references, num_steps=num_steps)
    assert [each.tolist() for each in found] == [each.tolist() for each in expected]
    assert ran[0] > 1 if num_threads > 1 else ran == [1]


@pytest.mark.parametrize("layout", ["whole", "rows apart", "every other number", "read-only"])
def test_one_pass_is_taken_where_each_step_lies_in_one_piece(layout: str) -> None:
    steps = np.random.default_rng(0).standard_normal((3, 2000))
    layouts = {"whole": steps[:, :1000].copy(), "rows apart": steps[:, 5:1005], "every other number": steps[:, ::2]}
    layouts["read-only"] = steps[:, :1000].copy()
    layouts["read-only"].flags.writeable = False
    ours, reference = layouts[layout], steps[:, 1000:]
    absolute, scale = worst_differences([ours], [reference], num_steps=3)
    assert absolute[:, 0].tolist() == np.abs(ours - reference).max(axis=1).tolist()
    assert scale[:, 0].tolist() == np.abs(reference).max(axis=1).tolist()
