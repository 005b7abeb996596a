"""How far a hand-derived value may lie from torch's: one table, each number with its reason.

A difference is judged against the largest magnitude in torch's tensor (its maximum norm): elementwise relative
errors explode at zeros, and a 2-norm lets one wrong element hide among many right ones.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

#: Outputs, losses and gradients: a sum of products, or what an activation makes of one.
#: Two correct float32 results differ by about 1e-6 of the norm, float64 by a few 1e-15: a tenth and a hundredth of
#: these bounds. The smallest mistake that a formula can make (a lost factor, an index, a term) is far above them.
SUM_OF_PRODUCTS = {"float32": 1e-5, "float64": 1e-12}

#: Gradients that are compared with central differences, which are good to some 1e-12 of the values. The gradient may be
#: ten thousand times smaller than the values.
CENTRAL_DIFFERENCES = 1e-7

#: Outputs in float32 that are compared with the same forward in float64: the formula is the same, so what differs is
#: the rounding of what forward computes on its way, which a normalization of nearly equal values enlarges much.
OWN_FORWARD = 1e-3

#: Parameters after the optimizer's step on the same gradients: a handful of elementwise operations, each rounding by
#: half an eps (6e-8 and 1.1e-16), and a momentum that carries the roundings of the steps before it along.
UPDATE = {"float32": 1e-6, "float64": 1e-13}

#: The learning rate: closed form against torch's recursion, Python floats both; rounding grows with the epochs.
LEARNING_RATE = 1e-12

#: Rounding errors of a sum grow like the square root of its length. The table holds up to this length, which covers
#: the nets in config/; longer sums get proportionally more.
REDUCTION_LENGTH = 1024


#: From this fraction of the norm on, a tolerance proves nothing: a value of half the size passes.
MEANINGLESS = 0.5


def severity(relative: Any, tolerance: Any) -> Any:
    """How near an error is to its tolerance, or how far beyond: relative / tolerance, of numbers or of arrays. NaN is
    as bad as it gets: infinite.
    """
    fraction = np.divide(relative, tolerance)
    return np.where(np.isnan(fraction), np.inf, fraction)


def sum_of_products(dtype: np.dtype[Any], reduction_length: int) -> float:
    """The tolerance for a tensor whose elements are sums of up to `reduction_length` products."""
    return SUM_OF_PRODUCTS[dtype.name] * max(1.0, math.sqrt(reduction_length / REDUCTION_LENGTH))
