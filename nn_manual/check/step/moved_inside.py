"""Values inside of a layer, where nothing is anchored, moved as the judge moves what lies between the layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from nn_manual.check.twin.dispatch import Dispatch

aten = torch.ops.aten

#: What saturates: torch derives each of these from its result, by 1 - result or its like.
SATURATING = {aten._softmax.default, aten.sigmoid.default, aten.tanh.default}
SATURATING_IN_PLACE = {aten.sigmoid_.default, aten.tanh_.default}


class MovedInside(Dispatch):
    """Moves what softmax, sigmoid and tanh return inside of a layer.

    The gradient of a probability near 1, or of a gate that is almost open, is made of 1 - p, or of sums that differ by
    rounding alone. Moving what goes into the layer doesn't show that: a probability of 1 - 1e-10 is rounded, but it
    stays the same number when all scores move by one eps. For other values, moving what they are made of shows the
    rounding. In oneDNN a whole LSTM is one operation, so oneDNN must be off meanwhile.
    """

    def __init__(self, move: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.move, self.num_moved = move, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in SATURATING:
            self.num_moved += 1
            return self.move(result)
        if func in SATURATING_IN_PLACE:
            self.num_moved += 1
            result.copy_(self.move(result))
        return result
