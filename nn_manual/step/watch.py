"""Who watches a training step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from nn_manual.arrays import Array
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.step.cut import BatchPart


class Watch:
    """What a step reports to while it is made, and what proves it afterwards. It finds a number that isn't finite, and
    says more of it than the step could. This one watches the layers and the loss from outside, and needs no report.
    """

    #: The recording that a plan fills in, in the place of layers that are watched; None where they are.
    recorded: Any = None

    def begin(self, parts: list[BatchPart], target: Array) -> None:
        """The batch is cut into these."""

    def slice(self, part: BatchPart) -> AbstractContextManager[Any]:  # noqa: ARG002 - it needs none
        """The context in which forward, loss, backward and the buffers of a slice run; proven when it ends."""
        return nullcontext()

    def together(self, copies: Sequence[tuple[Sequential, Loss]]) -> AbstractContextManager[Any]:  # noqa: ARG002 - as above
        """The same for all own slices that run side by side, by these. They are proven as one batch, in `compare_sum`.
        """
        return nullcontext()

    def settle(self, make_again: Callable[[BatchPart], object]) -> None:
        """The processes tell each other what they have found. A slice that is wrong somewhere is made again."""

    def compare_sum(self, value: float) -> None:
        """The model holds the sum of the gradients, `value` is the loss of the batch."""
