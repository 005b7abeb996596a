"""Who watches a training step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from nn_manual.arrays import Array
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.step.slices.cut import BatchPart


class Watch:
    """What a step reports to while it is made, and what proves it afterwards. It also finds a number that isn't finite,
    and says more about it than the step could. This base watches the layers and the loss from outside, and needs no
    reports.
    """

    #: The recording that a plan fills in, because it doesn't run the layers; None where the layers are watched.
    recorded: Any = None

    def begin(self, parts: list[BatchPart], target: Array) -> None:
        """The batch is cut into these parts."""

    def slice(self, part: BatchPart) -> AbstractContextManager[Any]:  # noqa: ARG002 - it needs none
        """The context in which forward, loss and backward of a slice run, and buffers move. At its end, the slice is
        proven.
        """
        return nullcontext()

    def together(self, copies: Sequence[tuple[Sequential, Loss]]) -> AbstractContextManager[Any]:  # noqa: ARG002 - as above
        """The same for all own slices, which these copies run side by side. `compare_sum` proves them as one batch."""
        return nullcontext()

    def settle(self, make_again: Callable[[BatchPart], object]) -> None:
        """The processes tell each other what they have found. All of them make a slice again that one has found wrong.
        """

    def compare_sum(self, value: float) -> None:
        """Prove the sum of the gradients, which the model holds, and the loss of the batch, `value`."""
