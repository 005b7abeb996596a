"""Everything that is computed, moved by a small fraction: the effects show the terms that values are made of.

1 - p, for a probability p near 1, is made of 1 and p. The fraction is far above rounding, and so small that the effects
are in proportion to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.judge.rounding import NUM_PERTURBATIONS
from nn_manual.check.twin.dispatch import Dispatch

aten: Any = torch.ops.aten

#: The fractions by which everything is moved, one after the other: far above float64's eps, so that rounding doesn't
#: count beside them, and small enough for the effects to be in proportion.
MOVES = 2.0**-40, 2.0**-36

#: An effect that is in proportion grows 16 times from one move to the other; since each is rounded, it may grow less,
#: but not less than this. At a kink the effect jumps, and stays the same for both: that is no rounding.
PROPORTIONAL = 8.0


def effects_of(run: Callable[[float, int], Mapping[str, Array]], truth: Mapping[str, Array]) -> dict[str, Array]:
    """How far each number of each tensor moves, as a multiple of the fraction by which everything is moved; 0 where it
    isn't in proportion. `run` computes the tensors, given the fraction and a seed of the random moves; `truth` are the
    tensors without any move.
    """
    effects = {name: np.zeros(np.shape(values)) for name, values in truth.items()}
    for seed in range(NUM_PERTURBATIONS):
        runs = [run(size, seed) for size in MOVES]
        for name, values in truth.items():
            with np.errstate(all="ignore"):  # where a number has overflowed, nothing is in proportion
                one, other = (np.abs(moved[name] - values) for moved in runs)
                found = np.where(other >= PROPORTIONAL * one, one, 0.0) / MOVES[0]  # of NaN neither
            effects[name] = np.maximum(effects[name], found)
    return effects


#: These round nothing. What amax returns is equal to one of its inputs, and its backward finds that one so.
EXACT = {
    *(aten.clone, aten._to_copy, aten.amax, aten.amin, aten.max, aten.min, aten.maximum, aten.minimum),
    aten._efficientzerotensor,  # it has no memory: autograd adds it to others, and to read it ends the process
}

#: Of these, what they return beside the first tensor is no number that rounds: which classes a target has.
FIRST_ROUNDS = {aten.multilabel_margin_loss_forward}

#: These take exponentials of differences: exp(x - max), or exp(x - logsumexp) in a kernel that saves one number for
#: each row. Where the difference is near 0, its rounding is a fraction of x itself. So a probability of 1 among logits
#: of 1000 is good to 1000 roundings, and so is all that is made of it: a row of probabilities no longer adds up to 1.
#: From 1 / eps on, one rounding would be as large as the probability, and would excuse any value. The -1e9 of a mask is
#: that large, and its probability is exactly 0: so such exponents don't count.
EXPONENTIALS = {aten.exp, aten._softmax, aten._safe_softmax, aten._log_softmax}

#: These return x - log_sigmoid(x) in one step, for a prediction x below 0: its rounding is a fraction of x. From
#: -log(eps) on log_sigmoid(x) is x itself, and nothing is rounded.
DIFFERENCES = {aten.binary_cross_entropy_with_logits}
MOST_OF_DIFFERENCE = -math.log(np.finfo(np.float64).eps)


class Moved(Dispatch):
    """Moves what every operation returns, except views and what an operation writes into. Exponents below
    `most_exponent` count, none where it is 0.
    """

    def __init__(self, size: float, seed: int, most_exponent: float) -> None:
        super().__init__()
        self.size, self.generator = size, torch.Generator().manual_seed(seed)
        self.most_exponent, self.exponent = most_exponent, 1.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        operation = func.overloadpacket
        if operation in EXACT or any(returned.alias_info is not None for returned in func._schema.returns):
            return result
        of_difference = operation in EXPONENTIALS and self.most_exponent > 0
        if of_difference:
            exponents = args[0].abs()
            exponents = exponents[exponents < self.most_exponent]
            if exponents.numel():
                self.exponent = max(self.exponent, float(exponents.max()))
        if operation in DIFFERENCES:
            magnitudes = args[0].abs()
            rounded = magnitudes[magnitudes < MOST_OF_DIFFERENCE]
            return self._move(result, float(rounded.max()) if rounded.numel() else 0)
        if operation in FIRST_ROUNDS:
            return self._move(result[0]), *result[1:]
        if isinstance(result, tuple | list):
            return type(result)(map(self._move, result))
        return self._move(result, self.exponent if of_difference and operation is aten._log_softmax else 0)

    def _move(self, tensor: Any, magnitude: float = 0) -> Any:
        """The tensor, moved at random by a fraction of itself, or of the magnitude of which it is a difference. Complex
        numbers move in any direction.
        """
        if not (isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided):
            return tensor
        if tensor.is_complex():
            signed = torch.complex(self._signed(tensor), self._signed(tensor)).to(tensor)
        elif tensor.is_floating_point():
            signed = self._signed(tensor).to(tensor)
        else:
            return tensor
        moved = tensor + magnitude * signed if magnitude else tensor.addcmul(signed, tensor, value=self.exponent)
        return torch.where(tensor.isfinite(), moved, tensor)  # the -inf of a mask stays what it is

    def _signed(self, tensor: torch.Tensor) -> torch.Tensor:
        """A fraction for each number, up or down."""
        signed = torch.rand(tensor.shape, generator=self.generator, dtype=torch.float64).mul_(2).sub_(1)
        return signed.add_(signed.sign(), alpha=0.5).mul_(self.size)
