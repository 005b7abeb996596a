"""The probabilities inside of a layer, moved as the arbiter moves what lies between the layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class MovedProbabilities(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own lack of annotations
    """What softmax returns is moved, inside of a layer as well, where nothing is anchored.

    The gradient of its input is the difference of two sums that rounding makes differ where the probabilities don't add
    up to 1. Moving what goes into the layer doesn't show that: a probability of 1 - 1e-10 is rounded, but moving all
    scores by one eps gives the same number again. Of other values a move of what they are made of shows the rounding.
    """

    def __init__(self, move: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # as above
        self.move, self.num_moved = move, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func is not torch.ops.aten._softmax.default:
            return result
        self.num_moved += 1
        return self.move(result)
