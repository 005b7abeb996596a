"""A batch, cut into contiguous slices, and the part that each of them has in the loss of the whole batch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nn_manual.arrays import Array
from nn_manual.losses import Loss
from nn_manual.step.slices.process_group import ALONE, ProcessGroup


class BatchPart(NamedTuple):
    """A slice that has examples. `number` counts it, `rows` are its examples in the batch.

    With the denominators d of the slices, `weight` is what its loss and its gradients are multiplied by:

        weight = d / sum of all d      where the loss is a mean
        weight = 1                     where it is a sum

    Derivation: the mean over the batch is sum(d * loss) / sum(d). It isn't the mean of the slices' means, in which an
    example of a small slice would weigh more. A slice in which no target counts has the weight 0 and no loss.
    """

    number: int
    rows: slice
    denominator: float
    weight: float


def cut(num_rows: int, num_slices: int) -> list[slice]:
    """`range(num_rows)` in `num_slices` contiguous slices whose sizes differ by one at most, the larger ones first."""
    size, rest = divmod(num_rows, num_slices)
    starts = [index * size + min(index, rest) for index in range(num_slices + 1)]
    return [slice(start, stop) for start, stop in itertools.pairwise(starts)]


def parts_of(loss: Loss, target: Array, num_slices: int) -> list[BatchPart]:
    """The slices of a batch with this target that have examples, in their order."""
    slices = [rows for rows in cut(len(target), num_slices) if rows.start < rows.stop]
    denominators = [loss.denominator(target[rows]) for rows in slices]
    total = sum(denominators)
    if loss.reduction != "sum":
        weights = [denominator / total if total else 0.0 for denominator in denominators]
    else:
        weights = [1.0] * len(slices)
    return [BatchPart(*part) for part in zip(range(len(slices)), slices, denominators, weights, strict=True)]


def share(num_slices: int, rank: int, num_processes: int) -> range:
    """The numbers of the slices that a process computes. Raises ValueError unless all processes get equally many, and
    at least one.
    """
    if num_slices < 1:
        raise ValueError(f"slices must be at least 1, not {num_slices}")
    if num_slices % num_processes:
        raise ValueError(f"slices must be a multiple of the processes, not {num_slices} of {num_processes}")
    size = num_slices // num_processes
    return range(rank * size, (rank + 1) * size)


def loss_of(loss: Loss, parts: Sequence[BatchPart], values: Sequence[float]) -> float:
    """The loss of the batch: the sum of the losses of its slices, each times its weight. NaN where no target counts."""
    both = zip(parts, values, strict=True)
    counting = [value * part.weight for part, value in both if loss.has_value(part.denominator)]
    return sum(counting) if counting else float("nan")


@dataclass(frozen=True)
class Slicing:
    """How a batch is cut, and who computes it: it has `num_slices` slices, and each process of the group computes
    equally many. With `bitwise`, the gradients of all slices are added up one by one in their order: the same slices
    give the same bits on any number of processes. With `shard_optimizer`, each process keeps a part of the optimizer's
    vectors. With `sync_batch_norm`, batch normalization takes the statistics of the whole batch, not of its slice.

    Raises ValueError where the slices can't be divided among the processes, or there is no slice.
    """

    num_slices: int = 1
    group: ProcessGroup = ALONE
    bitwise: bool = False
    shard_optimizer: bool = False
    sync_batch_norm: bool = False

    def __post_init__(self) -> None:
        self.own  # noqa: B018 - raises

    @property
    def own(self) -> range:
        """The numbers of this process's slices."""
        return share(self.num_slices, self.group.rank, self.group.size)

    @property
    def is_plain(self) -> bool:
        """Whether one process takes the whole batch at once."""
        return self.num_slices == 1 and self.group.size == 1


#: One process takes the whole batch at once.
ONE_SLICE = Slicing()
