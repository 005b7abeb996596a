"""The arbiter: where a value is beyond the tolerance, is the formula wrong, or is it rounding?

Cancellation can enlarge rounding without bound: 1 - p for a probability p near 1, or a bias's gradient whose terms
cancel over the batch, keeps few correct digits, in torch's arithmetic as in ours. So before a run is stopped, two
questions are asked. Computed again in float64, do the formulas agree? And are the values of the step as near to
torch's float64 ones as the arithmetic of their dtype brings them? How near that is, is measured: torch computes the
step anew in float32, with every parameter, activation and gradient on its way moved by up to one eps, which is what
rounding does to each, and its distance from the float64 values is what rounding amounts to in this step.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.comparison import compare
from nn_manual.check.pairs import Pair, pairs
from nn_manual.check.plan import Plan
from nn_manual.check.recording import Recording
from nn_manual.check.reference import Move, differentiate
from nn_manual.check.twin import Twin
from nn_manual.model import Sequential

#: How many times everything is moved, each time at random. The worst effect counts.
NUM_PERTURBATIONS = 4

#: A correct value may be this many times the measured effect away: of the few random moves none may have been as
#: unlucky as the roundings that the step made. A wrong formula is off by many orders of magnitude more in float64.
MARGIN = 10

#: What the formulas of a float32 step may differ by in float64, of the norm: a tenth of what float32 accepts unasked.
#: Where nearly all digits cancel, as in the loss of a net that is sure and right, float64 keeps no 12 of them either.
FORMULA = 1e-6


def in_float64(model: Sequential, param: Array) -> Sequential:
    """A copy of the model in float64, with the parameters `param`."""
    double = copy.deepcopy(model)
    double.bind(param.astype(np.float64), np.zeros(param.size))
    return double


class Arbiter:
    """Judges the tensors of one recorded step, which began with the parameters `param`.

    `twins` are torch's versions of its model in float64 and in float32; their parameters are overwritten.
    """

    def __init__(self, twins: tuple[Twin, Twin], param: Array, recorded: Recording, plan: Plan) -> None:
        self._recorded, self._plan = recorded, plan
        double, single = twins
        self._truth = self._reference(double, param)
        #: By name, how far float32 takes torch's own values away from the float64 ones.
        self._effect = dict.fromkeys(self._truth, 0.0)
        move = functools.partial(_move, generator=torch.Generator().manual_seed(0))
        param = param.astype(np.float32)
        for _ in range(NUM_PERTURBATIONS):
            moved = self._reference(single, move(torch.from_numpy(param)).numpy(), move)
            for name, truth in self._truth.items():
                self._effect[name] = max(self._effect[name], _distance(moved[name], truth))

    def wrong(self, both: Iterable[Pair]) -> list[Pair]:
        """Those of which ours and torch's, both computed in float64, differ by more than the tolerance and rounding."""
        return [pair for pair in both if not (compare(*pair).passed or self._is_rounding_in_float64(pair))]

    def _is_rounding_in_float64(self, pair: Pair) -> bool:
        allowance = self._allowance(pair, np.dtype(np.float64))
        if self._plan.dtype == np.float32:
            allowance = max(allowance, FORMULA * float(pair.reference.abs().max()))
        return _distance(pair.ours, pair.reference.numpy()) <= allowance

    def is_rounding(self, pair: Pair) -> bool:
        """Whether our value in the step is as near to torch's float64 one as the dtype of the step brings it."""
        return _distance(pair.ours, self._truth[pair.quantity.name]) <= self._allowance(pair, pair.ours.dtype)

    def _allowance(self, pair: Pair, dtype: np.dtype[Any]) -> float:
        """The measured effect, for the eps of `dtype`: rounding errors are proportional to it."""
        return MARGIN * self._effect[pair.quantity.name] * float(np.finfo(dtype).eps / np.finfo(np.float32).eps)

    def _reference(self, twin: Twin, param: Array, move: Move | None = None) -> Mapping[str, Array]:
        np.copyto(twin.param, param)
        reference = differentiate(twin, self._recorded, self._plan, twin.param.dtype, move, move)
        both = pairs(self._plan, self._recorded, reference)
        return {pair.quantity.name: pair.reference.numpy() for pair in both}


def _distance(values: Array, truth: Array) -> float:
    return float(np.abs(values - truth).max())


def _move(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Floating values multiplied by 1 + u, u uniform within one eps: zeros and signs stay."""
    if not tensor.is_floating_point():
        return tensor
    u = 2 * torch.rand(tensor.shape, generator=generator, dtype=tensor.dtype) - 1
    return tensor * (1 + torch.finfo(tensor.dtype).eps * u)
