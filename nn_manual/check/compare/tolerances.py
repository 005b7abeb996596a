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

#: Outputs in float32 that are compared with the same forward in float64: the formula is the same, so only rounding
#: differs. A normalization of nearly equal values enlarges it much.
OWN_FORWARD = 1e-3

#: Parameters after the optimizer's step on the same gradients: a handful of elementwise operations, each rounding by
#: half an eps (6e-8 and 1.1e-16), and a momentum that carries the roundings of the steps before it along.
UPDATE = {"float32": 1e-6, "float64": 1e-13}

#: Counters, as floats: float32 and float64 hold each count up to 2**24 and 2**53, and neighbours are further apart than
#: this.
COUNTER = {"float32": 1e-8, "float64": 1e-17}

#: How far a central difference may be off, as a fraction of the gradient's largest magnitude. It is accurate to about
#: 1e-10 of the answer (see `numerical_gradient`); an answer may be a hundred times its gradient. For a complex step,
#: and for torch, the tolerance is SUM_OF_PRODUCTS.
OPERATION_DIFFERENCES = 1e-8

#: A gradient by differences that is zero within its error counts as zero if it is at most this fraction of the terms
#: that add up to it: in float64 the rounding of a long sum reaches 1e-13 of its terms.
NEGLIGIBLE = 1e-10

#: The learning rate: closed form against torch's recursion, Python floats both.
LEARNING_RATE = 1e-12

#: Rounding errors of a sum grow like the square root of its length. The table holds up to this length, which covers
#: the nets in config/; longer sums get proportionally more.
REDUCTION_LENGTH = 1024

#: A correct value may be off by this many times the measured effect of rounding. A value t is made of intermediate
#: values z; to the first order it is off by the sum of dt/dz * z * d, where d is what n roundings of z amount to:
#: at random, with a deviation of sqrt(n / 12) eps. A measurement moves each z by 1/2 to 3/2 eps, with a deviation of
#: sqrt(13 / 12) eps. So the error's deviation is sqrt(n / 13) times that of the effect. The largest of a few draws may
#: be half of the effect's deviation, and the error four of its own: then 30 are enough for n = 180, and with average
#: luck for 10,000 roundings in a row. In a quarter of a million steps of random nets, 10 times was too few for one
#: gradient of 20 elements. In float64 a wrong formula is off by many orders of magnitude more.
MARGIN = 30

#: No more measurements are made where the difference is more than this multiple of what they allow. In float64 wrong
#: formulas are off by more.
FAR = 1e6

#: How many times as many eps rounding may amount to in float64 as in float32. 1 - 1e-9 is 1 in float32, and has an
#: error in float64 alone. In random nets the worst ratio was 500. Where a value crosses a kink, it is 5e8: moved by one
#: eps, of either dtype, its gradient jumps as far.
JUMP = 1e4

#: How many times as many eps rounding may amount to in float32 as in float64, where float32 is to say something about
#: values in float64. Moved by one eps of float32, a value crosses a kink, or a softmax of scores of 1e7 turns over: its
#: gradient changes as much as it can. One eps of float64 doesn't do that. Where both are a few eps, they differ by the
#: luck of the draws.
SATURATED = 10

#: The square of a larger number, a variance for one, is more than float32 can hold. Then float64 may have rounding that
#: float32 doesn't show.
LARGEST_IN_FLOAT32 = 1e19

#: Two gradients that are nothing but rounding differ by about their own size; by luck they may be nearer, once.
NOTHING_IN_COMMON = 0.01

#: The scale of a gradient that is zero in theory is measured anew after so many steps: the net has changed by then.
#: Measuring takes many reruns of a step, so it isn't done more often.
ZEROS_MEASURED_EVERY = 1_000

#: A part of a tensor is small from this fraction of the tensor's largest magnitude on. In a larger one a mistake of a
#: thousandth is beyond the tensor's own tolerance, 1e-5 in float32.
SMALL_PART = 0.01

#: The numbers of a vector belong to one part as long as their magnitudes lie in the same range of this factor. The
#: smallest in it is then compared to 1e-5 * 1000 of itself in float32: a mistake of a hundredth shows.
RANGE_OF_PART = 1000.0

#: An explanation of a difference holds where it leaves less than this fraction of the largest magnitude unexplained:
#: ten times a correct gradient's tolerance, since it comes from adding and dividing values that carry rounding already.
EXPLAINED = {dtype: 10 * tolerance for dtype, tolerance in SUM_OF_PRODUCTS.items()}

#: It must also leave less than this fraction of the worst difference: by the bound above alone, anything would explain
#: a difference of a few tolerances. The rounding of correct values is a tenth of a tolerance.
UNEXPLAINED = 0.1

#: A kernel in float16 or bfloat16 may lie this many times as far from the values in float64 as the reference does in
#: that dtype: the sums of a right one run in another order, and it rounds what it keeps once more. Published tests of
#: attention kernels allow as much.
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

    After T_max epochs torch's cosine rises again, from (1 - cos(pi / T_max)) / 2 of the initial lr. This difference has
    an error of one eps, and every later lr is a multiple of it. So the error grows to 4 / pi**2 * T_max**2 times eps,
    at a count above T_max.
    """
    return max(LEARNING_RATE, count**2 * float(np.finfo(np.float64).eps))

#: A reader's solution of an exercise, in float64, beside ours, as a fraction of the largest magnitude. Another order of
#: operations is off by 1e-12, and where numbers of every magnitude cancel by some thousand times more; a mistake by a
#: digit that one sees.
SOLUTION = 1e-9
