"""Mini-batches: each example once in an epoch, in an order that (seed, epoch) alone determine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nn_manual.arrays import Array, Padded, unpadded
from nn_manual.data.base import Examples
from nn_manual.streams import Stream, generator


def num_batches(num_examples: int, batch_size: int) -> int:
    """ceil(num_examples / batch_size): the last, smaller batch counts."""
    return -(-num_examples // batch_size)


def batches(examples: Examples, batch_size: int, seed: int, epoch: int, first: int = 0) -> Iterator[Examples]:
    """The examples in batches of `batch_size`, from the batch with the index `first` on; the last one may be smaller.
    Each example occurs exactly once in an epoch.

    The order depends on (seed, epoch) and the number of examples alone: a resumed run goes on as if it had never
    stopped. A batch is a contiguous copy. If one batch holds everything, it is `examples` itself: neither permuted nor
    copied, because the order of a full batch cannot change its mean or sum. Raises ValueError for a batch_size below
    1, and for a `first` below 0.
    """
    check_batches(batch_size, first)
    num_examples = len(examples.input)
    if 0 < num_examples <= batch_size:
        return iter([examples][first:])
    order = shuffled(num_examples, seed, epoch)
    selections = (order[start : start + batch_size] for start in range(first * batch_size, num_examples, batch_size))
    return (Examples(*(rows(array, selection) for array in examples)) for selection in selections)


def without_lengths(examples: Examples) -> Examples:
    """The same, with an array in the place of an input that is Padded."""
    return examples._replace(input=unpadded(examples.input))


def check_batches(batch_size: int, first: int) -> None:
    """Raise ValueError as `batches` does."""
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, not {batch_size}")
    if first < 0:
        raise ValueError(f"first must be at least 0, not {first}")


def shuffled(num_examples: int, seed: int, epoch: int) -> Array:
    """The order of the examples in an epoch: their indices."""
    return generator(seed, Stream.SHUFFLE, epoch).permutation(num_examples)


def rows(array: Array | Padded, selection: Array) -> Any:
    """The selected examples, as a contiguous copy."""
    if isinstance(array, Padded):
        return Padded(rows(array.array, selection), array.lengths[selection])
    # take needs half the time of indexing. But if windows overlap, it would first copy all of them.
    return array.take(selection, axis=0) if array.flags.c_contiguous else array[selection]
