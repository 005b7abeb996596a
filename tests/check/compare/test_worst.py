"""Tensors of many steps beside torch's: the largest difference and magnitude of each, in each step."""

from __future__ import annotations

import numpy as np
import pytest

from nn_manual.arrays import DTYPES, Array
from nn_manual.check.compare.worst import worst_differences

#: Small ones, which are compared side by side, one of a block and more, and one of several blocks.
SHAPES: list[tuple[int, ...]] = [(1,), (3, 4), (511,), (512,), (700, 60), (2, 40_000), ()]


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
