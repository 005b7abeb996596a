"""torch's softplus without its threshold."""

from __future__ import annotations

from typing import Any

import torch

from nn_manual.check.twin.dispatch import Dispatch

aten = torch.ops.aten

#: At which place each operation takes the threshold.
PLACES = {aten.softplus.default: 2, aten.softplus_backward.default: 3}
#: Above torch's default, softplus(x) is x: too small by up to exp(-20), 2e-9.
DEFAULT = 20.0
#: exp(-40) is 4e-18: lost in the rounding of 40 in float64, and in that of the derivative, which is 1.
EXACT = 40.0


class ExactSoftplus(Dispatch):
    """A context in which torch computes log(1 + exp(x)) as exactly as float64 can, where it would take its own default
    threshold. A threshold of the user's stays. `is_used` says whether there was such a softplus.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_used = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        place = PLACES.get(func)
        if place is not None and args[place : place + 1] in ((), (DEFAULT,)):
            self.is_used = True
            beta = args[place - 1 : place] or (1.0,)
            args = (*args[: place - 1], *beta, EXACT)
        return func(*args, **(kwargs or {}))
