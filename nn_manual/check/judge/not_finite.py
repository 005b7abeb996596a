"""What is said of a tensor that isn't finite, or that no reference can judge because the reference isn't."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nn_manual.arrays import first_not_finite
from nn_manual.check.compare.comparison import Pair
from nn_manual.check.judge.diagnosis import positions
from nn_manual.errors import NotFiniteError


def not_finite_words(pair: Pair) -> str:
    """What follows the tensor's name: what ours holds or, if all of it is finite, where the reference isn't."""
    if not np.isfinite(pair.ours).all():
        return f"{'holds' if pair.ours.ndim else 'is'} {first_not_finite(pair.ours)}"
    reference = pair.reference.numpy()
    found = f"no finite number at {positions(~np.isfinite(reference))}" if reference.ndim else str(reference)
    return f"can't be judged: it is finite, and {pair.quantity.origin} {found}"


def check_finite(failed: Sequence[Pair]) -> None:
    """Raise NotFiniteError where torch's value isn't finite either: then no formula is wrong, the step is too large."""
    for pair in failed:
        if not pair.reference.isfinite().all():
            raise NotFiniteError(f"{pair.quantity.name} {not_finite_words(pair)} after {pair.quantity.layer}")
