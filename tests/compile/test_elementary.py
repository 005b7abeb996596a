"""Each function is near enough to the true value, in units in the last place, and has the right limits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
import scipy.special
from numba import njit
from slow_cases import crossed, slow

from nn_manual.arrays import Array
from nn_manual.compile import elementary
from nn_manual.compile.intrinsics import f4_at, f8_at, no_overlap

#: The largest error in units in the last place: the worst of a million numbers, and a little more.
ULPS = {"exp": 1.1, "tanh": 2.0, "expit": 2.5}
EXACT: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "expit": scipy.special.expit,
    "ndtr": scipy.special.ndtr,
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    "sin": np.sin,
    "cos": np.cos,
    "floor": np.floor,
    "ceil": np.ceil,
    "rint": np.rint,
    "sign": np.sign,
}


#: mpmath's names, where they differ.
OF_MPMATH = {"ndtr": "ncdf", "rint": "nint"}


def computed(name: str, numbers: Array) -> Array:
    """The function's values, from a compiled loop over the numbers."""
    is_single = numbers.dtype == np.float32
    of_both = getattr(elementary, name, None)
    function: Any = of_both or getattr(elementary, f"{name}_{'f4' if is_single else 'f8'}")
    at: Any = f4_at if is_single else f8_at

    @njit(error_model="numpy")  # type: ignore[untyped-decorator]  # numba's
    def loop(source: Any, target: Any, count: Any) -> None:
        no_overlap()
        for i in range(count):
            target[i] = function(source[i])

    @njit(error_model="numpy")  # type: ignore[untyped-decorator]
    def run(source: Any, target: Any, count: Any) -> None:
        loop(at(source), at(target), count)

    result = np.empty_like(numbers)
    run(numbers.ctypes.data, result.ctypes.data, len(numbers))
    return result


def numbers_of(name: str, dtype: Any) -> Array:
    """Numbers of all sizes, most of them where the function isn't at its limit."""
    generator = np.random.default_rng(0)
    small = generator.uniform(-1, 1, 100_000) * 10.0 ** generator.uniform(-12, 0, 100_000)
    numbers = np.concatenate([generator.uniform(-12, 12, 100_000), generator.uniform(-103, 88, 50_000), small])
    if name in ("log", "log1p"):
        numbers = np.concatenate([np.abs(numbers), 10.0 ** generator.uniform(-37, 38, 50_000)])
        return (numbers - (small.max() if name == "log1p" else 0)).astype(dtype)[numbers > 1e-30]
    return numbers.astype(dtype)


@pytest.mark.parametrize("name", [*[*EXACT][::2], *map(slow, [*EXACT][1::2])])
def test_float32_is_within_units_of_the_last_place(name: str) -> None:
    numbers = numbers_of(name, np.float32)
    if name == "log1p":
        numbers = numbers[numbers > -1]
    exact = EXACT[name](numbers.astype(np.float64))
    rounded = exact.astype(np.float32)
    is_number = np.isfinite(rounded)
    unit = np.spacing(np.abs(rounded[is_number])).astype(np.float64)
    error = np.abs(computed(name, numbers).astype(np.float64) - exact)[is_number] / unit
    assert error.max() <= ULPS.get(name, 0.51)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_float64_is_the_librarys(name: str) -> None:
    """It alone compares each function with the library's in float64."""
    numbers = np.linspace(0.01, 8, 1000)
    function = getattr(mpmath, OF_MPMATH.get(name, name), lambda number: 1 / (1 + mpmath.exp(-number)))
    exact = [float(function(number)) for number in numbers.tolist()]
    np.testing.assert_allclose(computed(name, numbers), exact, rtol=2.5 * np.finfo(np.float64).eps)


@pytest.mark.parametrize(("name", "dtype"), crossed(list(EXACT), [np.float32, np.float64]))
def test_limits(name: str, dtype: Any) -> None:
    numbers = np.array([math.nan, math.inf, -math.inf, 0.0, -0.0, -2.0, -1.0, 1e-40, 1000, -1000], dtype)
    with np.errstate(all="ignore"):
        expected = EXACT[name](numbers)
    values = computed(name, numbers)
    np.testing.assert_allclose(values, expected, rtol=3e-7, atol=0)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(values[zeros]), np.signbit(expected[zeros]))
