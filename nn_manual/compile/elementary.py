"""exp, tanh and similar functions, as polynomials that LLVM can run on vectors.

For float32, exp and tanh are computed in float32, the others in float64 and then rounded. No result is farther than 2.5
units in the last place from the true value; tests/compile/test_elementary.py measures each function. For float64 the
functions are the C library's. NaN gives NaN, and infinities give the limits.

The file is long because polynomials are written out, term by term: so LLVM runs them on vectors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import float32, float64, njit

from nn_manual.compile.intrinsics import (
    SHIFT,
    absolute,
    add_in_any_order,
    bits_of,
    float_of,
    multiply_add,
    times_power_of_two,
    where,
    with_sign,
)

#: Compiles a function that raises none of Python's exceptions, and always becomes a part of the loop that calls it.
_inline = njit(forceinline=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)

LOG2_E, SHIFT_32 = np.float32(1 / math.log(2)), np.float32(SHIFT)
#: log(2) as a sum. The first part has few bits, so that its product with a whole number is exact.
LOG_2_HIGH, LOG_2_LOW = np.float32(0.693359375), np.float32(math.log(2) - 0.693359375)
#: exp is 0 below LOWEST, and infinity above HIGHEST.
LOWEST, HIGHEST = np.float32(-105), np.float32(90)
#: (exp(r) - 1 - r) / r**2 for |r| <= log(2) / 2, with an error of 2e-8: a minimax polynomial, highest power first.
EXP = tuple(map(np.float32, (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 0.5)))
ONE, TWO = np.float32(1), np.float32(2)


@_inline
def exp_f4(x: Any) -> Any:
    """exp(x) = 2**n exp(r), where x = n log(2) + r."""
    x = where(x < LOWEST, LOWEST, x)
    x = where(x > HIGHEST, HIGHEST, x)
    shifted = multiply_add(x, LOG2_E, SHIFT_32)
    n = shifted - SHIFT_32
    r = multiply_add(n, -LOG_2_LOW, multiply_add(n, -LOG_2_HIGH, x))
    p = multiply_add(EXP[0], r, EXP[1])
    p = multiply_add(p, r, EXP[2])
    p = multiply_add(p, r, EXP[3])
    p = multiply_add(p, r, EXP[4])
    p = multiply_add(p, r, EXP[5])
    return times_power_of_two(multiply_add(p, r * r, r) + ONE, shifted)


#: (tanh(x) - x) / x**3 in powers of x**2, for |x| < 0.625: a minimax polynomial, highest power first.
TANH = tuple(
    map(np.float32, (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1))
)
SMALL = np.float32(0.625)


@_inline
def tanh_f4(x: Any) -> Any:
    """tanh(x): near 0 a polynomial, elsewhere 1 - 2 / (exp(2 |x|) + 1) with the sign of x."""
    magnitude, square = absolute(x), x * x
    p = multiply_add(TANH[0], square, TANH[1])
    p = multiply_add(p, square, TANH[2])
    p = multiply_add(p, square, TANH[3])
    p = multiply_add(p, square, TANH[4])
    near = multiply_add(p * square, x, x)
    far = ONE - TWO / (exp_f4(magnitude + magnitude) + ONE)
    return with_sign(where(magnitude < SMALL, near, far), x)


#: (exp(r) - 1) / r for |r| <= log(2) / 2, with an error of 1e-11: 1 / k!, highest power first.
EXPM1 = tuple(1 / math.factorial(k) for k in range(10, 0, -1))
LOG_2, SHIFT_64 = math.log(2), 1.5 * 2.0**52
EXPONENT_64 = 0x3FF


@_inline
def _scaled_64(x: Any) -> Any:
    """2**n (exp(r) - 1) and 2**n in float64, as exact as float32 needs, where x = n log(2) + r is from -105 to 90."""
    shifted = multiply_add(x, 1 / LOG_2, SHIFT_64)
    n = shifted - SHIFT_64
    r = multiply_add(n, -LOG_2, x)
    p = multiply_add(EXPM1[0], r, EXPM1[1])
    p = multiply_add(p, r, EXPM1[2])
    p = multiply_add(p, r, EXPM1[3])
    p = multiply_add(p, r, EXPM1[4])
    p = multiply_add(p, r, EXPM1[5])
    p = multiply_add(p, r, EXPM1[6])
    p = multiply_add(p, r, EXPM1[7])
    p = multiply_add(p, r, EXPM1[8])
    p = multiply_add(p, r, EXPM1[9])
    power = float_of((bits_of(shifted) + EXPONENT_64) << 52)
    return p * r * power, power


@_inline
def _expm1_64(x: Any) -> Any:
    """exp(x) - 1 = 2**n (exp(r) - 1) + (2**n - 1)."""
    less, power = _scaled_64(x)
    return less + (power - 1.0)


@_inline
def _exp_64(x: Any) -> Any:
    """exp(x) = 2**n (exp(r) - 1) + 2**n."""
    less, power = _scaled_64(x)
    return less + power


@_inline
def expm1_f4(x: Any) -> Any:
    """exp(x) - 1, computed in float64. -0 stays -0."""
    x = where(x < LOWEST, LOWEST, x)
    x = where(x > HIGHEST, HIGHEST, x)
    return where(x == np.float32(0), x, float32(_expm1_64(float64(x))))


#: log((1 + s) / (1 - s)) / s in powers of s**2, for |s| < 0.1716, with an error of 1e-11: 2 / (2 k + 1), highest power
#: first.
LOG = tuple(2 / (2 * k + 1) for k in range(6, -1, -1))
#: The bits of sqrt(1/2). They are subtracted from the bits of x, so that the exponent becomes the n of _log_64.
HALF_ROOT = int(np.float64(math.sqrt(0.5)).view(np.int64))


@_inline
def _log_64(x: Any) -> Any:
    """log(x) = n log(2) + log(m), where x = 2**n m and m is from sqrt(1/2) to sqrt(2), for a float64 above 2**-1022."""
    bits = bits_of(x)
    n = (bits - HALF_ROOT) >> 52
    m = float_of(bits - (n << 52))
    s = (m - 1.0) / (m + 1.0)
    square = s * s
    p = multiply_add(LOG[0], square, LOG[1])
    p = multiply_add(p, square, LOG[2])
    p = multiply_add(p, square, LOG[3])
    p = multiply_add(p, square, LOG[4])
    p = multiply_add(p, square, LOG[5])
    p = multiply_add(p, square, LOG[6])
    return multiply_add(float64(n), LOG_2, p * s)


@_inline
def log_f4(x: Any) -> Any:
    """log(x), computed in float64, where each float32 above 0 is a normal number."""
    result = float32(_log_64(float64(x)))
    result = where(x == np.float32(np.inf), x, result)
    result = where(x == np.float32(0), np.float32(-np.inf), result)
    return where(x >= np.float32(0), result, np.float32(np.nan))


#: Below it log1p(x) is x, to the last bit of float32.
TINY = np.float32(1e-8)


@_inline
def log1p_f4(x: Any) -> Any:
    """log(1 + x), computed in float64: there 1 + x loses no digit of a float32, unless x is tiny."""
    result = float32(_log_64(1.0 + float64(x)))
    result = where(x == np.float32(np.inf), x, result)
    result = where(x == np.float32(-1), np.float32(-np.inf), result)
    result = where(x >= np.float32(-1), result, np.float32(np.nan))
    return where(absolute(x) < TINY, x, result)


@_inline
def expit_f4(x: Any) -> Any:
    """1 / (1 + exp(-x)), computed from exp(-|x|), which doesn't overflow."""
    smaller = exp_f4(-absolute(x))
    return where(x < np.float32(0), smaller, ONE) / (ONE + smaller)


@_inline
def expit_f8(x: Any) -> Any:
    """1 / (1 + exp(-x)), computed from exp(-|x|), which doesn't overflow."""
    smaller = math.exp(-absolute(x))
    return where(x < 0.0, smaller, 1.0) / (1.0 + smaller)


@_inline
def ndtr_f8(x: Any) -> Any:
    """The integral of the normal density from -infinity to x."""
    return 0.5 * math.erfc(-x * 0.7071067811865476)


#: exp(z**2) erfc(z) / t in powers of t = 1 / (1 + 0.4 z), for z from 0 to 10.4, with an error of 6e-11: least squares
#: at 4001 Chebyshev nodes, weighted until the largest relative error was smallest. Highest power first.
ERFCX = (
    *(0.005313786882436783, -0.015184756390606345, -0.04419561026386406, 0.2705818257894837, -0.5002921104942597),
    *(0.43316552544119374, -0.2558939730045627, 0.18211416466989497, 0.08798334193511159, 0.17824676298233533),
    *(0.2067445593769864, 0.22574293255225392, 0.22567355058210453),
)
#: At this z, exp(-z**2) is less than the smallest float32.
HIGHEST_Z = 10.24


@_inline
def ndtr_f4(x: Any) -> Any:
    """The integral of the normal density from -infinity to x, computed in float64: erfc(z) / 2 with z = |x| / sqrt(2)
    below 0, and 1 minus that above.
    """
    z = absolute(float64(x)) * 0.7071067811865476
    z = where(z > HIGHEST_Z, HIGHEST_Z, z)
    t = 1.0 / multiply_add(z, 0.4, 1.0)
    p = multiply_add(ERFCX[0], t, ERFCX[1])
    p = multiply_add(p, t, ERFCX[2])
    p = multiply_add(p, t, ERFCX[3])
    p = multiply_add(p, t, ERFCX[4])
    p = multiply_add(p, t, ERFCX[5])
    p = multiply_add(p, t, ERFCX[6])
    p = multiply_add(p, t, ERFCX[7])
    p = multiply_add(p, t, ERFCX[8])
    p = multiply_add(p, t, ERFCX[9])
    p = multiply_add(p, t, ERFCX[10])
    p = multiply_add(p, t, ERFCX[11])
    p = multiply_add(p, t, ERFCX[12])
    tail = 0.5 * (p * t) * _exp_64(-z * z)
    return float32(where(x < np.float32(0), tail, 1.0 - tail))


def _of_library(function: Any) -> Any:
    return _inline(lambda x: function(x))


def _of_library_f4(function: Any) -> Any:
    return _inline(lambda x: float32(function(float64(x))))


exp_f8, expm1_f8, log_f8, log1p_f8, tanh_f8 = map(_of_library, (math.exp, math.expm1, math.log, math.log1p, math.tanh))
erf_f8, erfc_f8, sin_f8, cos_f8 = map(_of_library, (math.erf, math.erfc, math.sin, math.cos))
erf_f4, erfc_f4, sin_f4, cos_f4 = map(_of_library_f4, (math.erf, math.erfc, math.sin, math.cos))


floor, ceil, rint = map(_of_library, (np.floor, np.ceil, np.rint))


@_inline
def sign_f4(x: Any) -> Any:
    """1, -1 or 0; NaN for NaN."""
    return where(x > np.float32(0), ONE, where(x < np.float32(0), -ONE, x * np.float32(0) + np.float32(0)))


@_inline
def sign_f8(x: Any) -> Any:
    """1, -1 or 0; NaN for NaN."""
    return where(x > 0.0, 1.0, where(x < 0.0, -1.0, x * 0.0 + 0.0))


@_inline
def power_f4(x: Any, y: Any) -> Any:
    """x**y, computed in float64."""
    return float32(float64(x) ** float64(y))


@_inline
def power_f8(x: Any, y: Any) -> Any:
    """x**y, the C library's."""
    return x**y


@_inline
def all_finite(pointer: Any, count: Any) -> Any:
    """Whether no number is infinite or NaN: x - x is 0 for a finite x, and NaN for others."""
    total = pointer[0] - pointer[0]
    for i in range(count):
        total = add_in_any_order(total, pointer[i] - pointer[i])
    return total == total
