"""The arbiter: where float32 is beyond the tolerance, is the formula wrong, or is it rounding?

Cancellation can enlarge rounding without bound: 1 - p for a probability p near 1 keeps few correct digits, in torch's
float32 as in ours. So before a run is stopped, both sides are computed again in float64.
"""

from __future__ import annotations

import copy

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.pairs import Pair
from nn_manual.model import Sequential

#: Ours may be this many times further from the float64 value than torch's float32 is: two correct float32 results
#: differ in their luck. The factor is FlashAttention's, in whose tests the same question is asked.
LUCK = 3

#: Torch's float32 may by luck hit the float64 value exactly, most of all a scalar. So up to this fraction of the
#: tensor's norm no comparison with torch's own error is made: the formula was proven in float64 before, and what is
#: left is the arithmetic. 1e-3 is 100 times the float32 tolerance.
ARITHMETIC = 1e-3


def in_float64(model: Sequential, param: Array) -> Sequential:
    """A copy of the model in float64, with the parameters `param`."""
    double = copy.deepcopy(model)
    double.bind(param.astype(np.float64), np.zeros(param.size))
    return double


def no_worse_than_torch(failed: list[Pair], truth: dict[str, torch.Tensor]) -> frozenset[str]:
    """The names of the pairs whose distance from `truth`, torch's float64 at the same activations, is rounding's."""
    return frozenset(pair.quantity.name for pair in failed if _is_rounding(pair, truth[pair.quantity.name].numpy()))


def _is_rounding(pair: Pair, truth: Array) -> bool:
    ours = np.abs(pair.ours - truth).max()
    torch_float32 = np.abs(pair.reference.numpy() - truth).max()
    return bool(ours <= max(LUCK * torch_float32, ARITHMETIC * np.abs(truth).max()))
