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

#: Counters, as floats: these hold each count up to 2**24 and 2**53, and neighbours are further apart than this.
COUNTER = {"float32": 1e-8, "float64": 1e-17}

#: How far a central difference may be off, as a fraction of the gradient's largest magnitude. It is accurate to about
#: 1e-10 of the answer (see `numerical_gradient`); an answer may be a hundred times its gradient. For a complex step,
#: and for torch, the tolerance is SUM_OF_PRODUCTS.
OPERATION_DIFFERENCES = 1e-8

#: Differences that are zero within their error count as zero if they are at most this fraction of the terms that add up
#: to them: in float64 the rounding of a long sum of terms reaches 1e-13 of them.
NEGLIGIBLE = 1e-10

#: The learning rate: closed form against torch's recursion, Python floats both.
LEARNING_RATE = 1e-12

#: Rounding errors of a sum grow like the square root of its length. The table holds up to this length, which covers
#: the nets in config/; longer sums get proportionally more.
REDUCTION_LENGTH = 1024

#: A correct value may be this many times the measured effect away: of the few random moves none may have been as
#: unlucky as the roundings that the step made. In a quarter of a million steps of random nets 10 were too few for one
#: gradient of 20 elements. A wrong formula is off by many orders of magnitude more in float64.
MARGIN = 30

#: Where the difference is more than this multiple of what is explained, more measurements are not made. Wrong formulas
#: are off by more, in float64.
FAR = 1e6

#: How many times more eps rounding may amount to in float64 than in float32. 1 - 1e-9, which is 1 in float32, has an
#: error in float64 alone; of random nets the worst had 500. A value that crosses a kink has 5e8: by one eps, in any
#: dtype, its gradient jumps as far.
JUMP = 1e4

#: How many times more eps rounding may amount to in float32 than in float64, for what it says of float64. A value that
#: crosses a kink by one eps of float32, or a softmax of scores of 1e7, goes as far as it can go. One eps of float64
#: doesn't take it there. Where both are a few eps, they differ by the luck of the draws.
SATURATED = 10

#: The square of a larger number, a variance, is more than float32 can hold: what float32 doesn't show then, there may
#: be in float64.
LARGEST_IN_FLOAT32 = 1e19

#: Two gradients that are rounding alone differ by about as much as they are; by luck they may be nearer, once.
NOTHING_IN_COMMON = 0.01

#: The scale of a gradient that is zero in theory is measured anew after so many steps: the net has changed by then. To
#: measure it takes many reruns of a step, so not more often.
ZEROS_MEASURED_EVERY = 1_000

#: A part of a tensor is small from this fraction of the tensor's largest magnitude on. In a larger one a mistake of a
#: thousandth is beyond the tensor's own tolerance, 1e-5 in float32.
SMALL_PART = 0.01

#: The numbers of a vector belong to one part as long as their magnitudes lie in the same range of this factor. The
#: smallest in it is then compared to 1e-5 * 1000 of itself in float32: a mistake of a hundredth shows.
RANGE_OF_PART = 1000.0

#: An explanation holds where it leaves less than this of the largest magnitude. Ten times the tolerance that a correct
#: gradient meets, since an explanation is found by adding and dividing values that carry rounding already.
EXPLAINED = {dtype: 10 * tolerance for dtype, tolerance in SUM_OF_PRODUCTS.items()}

#: It doesn't hold either where it leaves more than this of the worst difference: by the bound above, anything would
#: explain a difference of a few tolerances. The rounding of correct values is a tenth of a tolerance.
UNEXPLAINED = 0.1

#: A kernel in float16 or bfloat16 may lie this many times as far from the values in float64 as the reference does in
#: that dtype: the sums of a right one run in another order, and it rounds what it keeps once more. It is what published
#: harnesses of attention kernels allow.
LOW_PRECISION_FACTOR = 3

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


def learning_rate(count: int) -> float:
    """The tolerance of a learning rate after `count` epochs or steps, as a fraction of the largest one so far.

    Up again after T_max epochs, torch's cosine starts at (1 - cos(pi / T_max)) / 2 of the initial lr, of which the
    difference keeps an error of one eps, and every later lr is a multiple of that: the error grows to 4 / pi**2 *
    T_max**2 times eps, at a count above T_max.
    """
    return max(LEARNING_RATE, count**2 * float(np.finfo(np.float64).eps))
