"""The context through which torch's operations go."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from nn_manual.check.twin.dispatch import Dispatch


class Counting(Dispatch):
    """Counts operations."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Each is run as it is."""
        self.count += 1
        return func(*args, **(kwargs or {}))


def test_operations_go_through_it() -> None:
    with Counting() as counting:
        torch.ones(3).tanh().sum()
    assert counting.count == 3


def test_nothing_stands_between_torch_and_it() -> None:
    """torch's own would load its compiler with the first operation."""

    class Torchs(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch has no types here
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    assert hasattr(Torchs.__torch_dispatch__, "__wrapped__")
    assert not hasattr(Counting.__torch_dispatch__, "__wrapped__")
