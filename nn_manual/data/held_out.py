"""Which examples are held out for validation."""

from __future__ import annotations

import numpy as np

from nn_manual.arrays import Array
from nn_manual.streams import Stream, generator


def check_validation_fraction(validation_fraction: float) -> None:
    """Raise ValueError unless `validation_fraction` is in [0, 1)."""
    if not 0 <= validation_fraction < 1:
        raise ValueError(f"validation_fraction must be at least 0 and less than 1, not {validation_fraction}")


def held_out(num_examples: int, validation_fraction: float, seed: int) -> Array:
    """Which examples belong to the validation part, as bools: round(validation_fraction * examples) of them, chosen by
    `seed`, but never all. Raises ValueError for a share outside of [0, 1).
    """
    check_validation_fraction(validation_fraction)
    num_validation = min(round(validation_fraction * num_examples), num_examples - 1)
    is_validation = np.zeros(num_examples, dtype=bool)
    is_validation[_shuffled(num_examples, seed)[:num_validation]] = True
    return is_validation


def held_out_of_each(labels: Array, validation_fraction: float, seed: int) -> Array:
    """The same for each class by itself: round(validation_fraction * its examples), but never all of them."""
    is_validation = np.zeros(len(labels), dtype=bool)
    order = _shuffled(len(labels), seed)
    for label in np.unique(labels):
        of_class = order[labels[order] == label]
        is_validation[of_class[: min(round(validation_fraction * len(of_class)), len(of_class) - 1)]] = True
    return is_validation


def keep_each_value(is_validation: Array, codes: Array) -> None:
    """Move the first example of each value into the training part, if the part would have none with this value."""
    values, first = np.unique(codes[~np.isnan(codes)], return_index=True)
    places = np.flatnonzero(~np.isnan(codes))[first]
    is_trained = np.isin(values, codes[~is_validation])
    is_validation[places[~is_trained]] = False


def _shuffled(num_examples: int, seed: int) -> Array:
    # permutation(n) shuffles the same numbers in the same way, but in int64: for a narrow table this is much memory.
    order = np.arange(num_examples, dtype=np.min_scalar_type(num_examples))
    generator(seed, Stream.SPLIT).shuffle(order)
    return order
