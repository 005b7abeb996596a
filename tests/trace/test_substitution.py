"""Other values for a step: all change, all stay valid, and they are the same each time."""

from __future__ import annotations

import numpy as np
import pytest

from nn_manual.arrays import BLOCK_SIZE
from nn_manual.trace.substitution import take_others


def arrays_of(size: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(1)
    return {
        "param": generator.standard_normal(size, np.float32),
        "exp_avg": np.zeros(size, np.float32),
        "input": generator.standard_normal((50, 3)),
        "target": generator.integers(5, size=50),
        "0.noise.mask": generator.integers(2, size=(50, 3)).astype(np.float32),
        "counters": np.array([3, 4]),
        "0.step_size": np.array(0.5, np.float32),
    }


@pytest.mark.parametrize("size", [1, 7, BLOCK_SIZE + 5])
def test_every_number_changes(size: int) -> None:
    originals, arrays, again = arrays_of(size), arrays_of(size), arrays_of(size)
    take_others(arrays, originals)
    take_others(again, originals)
    for name, array in arrays.items():
        original = arrays_of(size)[name]
        assert originals[name].tobytes() == original.tobytes(), "originals stay as they are"
        assert again[name].tobytes() == array.tobytes(), "they are always the same"
        assert (array.dtype, array.shape) == (original.dtype, original.shape)
        if name not in ("target", "0.noise.mask", "input"):
            assert np.all(array != original), name
    assert arrays["counters"].tolist() == [4, 5]
    for name, low in (("param", 0.5), ("0.step_size", 0.5)):
        factor = np.abs(arrays[name] / originals[name])
        assert np.all(factor >= low - 1e-6)
        assert np.all(factor <= 1)
    assert np.all((arrays["exp_avg"] >= 0.05) & (arrays["exp_avg"] <= 0.1)), "0 becomes another number"
    assert sorted(arrays["0.noise.mask"].ravel()) == sorted(originals["0.noise.mask"].ravel())
    assert {*arrays["target"]} <= {*originals["target"]}
    assert arrays["target"].tolist() != originals["target"].tolist()
    if size > 100:
        assert 0.4 < np.mean(np.sign(arrays["param"]) == np.sign(originals["param"])) < 0.6
        factors = (arrays["param"] / originals["param"])[:5], (arrays["param"] / originals["param"])[BLOCK_SIZE:]
        assert np.all(factors[0] != factors[1]), "each block has its own factors"
