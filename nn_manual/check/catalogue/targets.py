"""The predictions and targets that a loss is checked on: every kind, other batch sizes, and every form of target."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from nn_manual.arrays import DTYPES, Array, Shape
from nn_manual.check.catalogue.input_kinds import KINDS, draw
from nn_manual.losses import Loss
from nn_manual.losses.base import takes_numbers

#: Draws a target, given its kind, the prediction's shape and dtype, and the generator.
Draw = Callable[[str, Shape, str, np.random.Generator], Array]


def loss_batches(loss: Loss, dtype: str, generator: np.random.Generator) -> Iterator[tuple[str, Array, Array]]:
    """Predictions and targets of a loss, each with its description.

    Where the target is a class, each of CLASS_FORMS that the loss takes, with each kind of prediction. Then targets
    that are numbers, or one class index for each row: in a batch of 4, each kind of prediction with each of target;
    with a batch of 1, random ones; with one of 25, all values of `spread`, and then the numbers next to them: where one
    of them is a margin, another slope begins there. Predictions lie in the loss's domain.
    """
    # One form after the other: if a loss keeps something of a batch, the next one of the same shape shows it.
    for form, (shape, draw_form) in () if takes_numbers(loss) else CLASS_FORMS.items():
        for kind, target_kind in zip(KINDS, reversed(KINDS), strict=True):
            prediction = draw(kind, shape, dtype, generator, loss.domain)
            target = draw_form(target_kind, shape, dtype, generator)
            if _takes(loss, prediction, target):
                yield f"{kind} prediction, {target_kind} target, {form}", prediction, target
    kinds = [(kind, target_kind, 4) for kind, target_kind in itertools.product(KINDS, KINDS)]
    for kind, target_kind, batch_size in [*kinds, ("random", "random", 1), ("spread", "spread", 25)]:
        prediction = draw(kind, (batch_size, 5), dtype, generator, loss.domain)
        target = draw_target(loss, target_kind, prediction.shape, dtype, generator)
        yield f"{kind} prediction, {target_kind} target, a batch of {batch_size}", prediction, target
    for place, end in (("below", -math.inf), ("above", math.inf)):
        prediction = draw("spread", (25, 5), dtype, generator, loss.domain)
        target = draw_target(loss, "random", prediction.shape, dtype, generator)
        prediction = np.nextafter(prediction, DTYPES[dtype].type(end))
        yield f"prediction next {place} spread, random target, a batch of 25", prediction, target


def draw_target(loss: Loss, kind: str, shape: Shape, dtype: str, generator: np.random.Generator) -> Array:
    """A target that fits a prediction of this shape: numbers of a kind, or classes, as the loss takes them."""
    if takes_numbers(loss):
        return loss.as_target(draw(kind, shape, dtype, generator))
    return indices(kind, shape, dtype, generator)


def indices(kind: str, shape: Shape, dtype: str, generator: np.random.Generator) -> Array:  # noqa: ARG001 - a Draw
    """Random classes, (batch, ...)."""
    return generator.integers(0, shape[1], (shape[0], *shape[2:]))


def probabilities(kind: str, shape: Shape, dtype: str, generator: np.random.Generator) -> Array:
    """The softmax along the classes of values of a kind: for scattered ones the largest is 1, for zeros all are one."""
    values = draw(kind, shape, "float64", generator)
    exponential = np.exp(values - values.max(axis=1, keepdims=True))
    result: Array = (exponential / exponential.sum(axis=1, keepdims=True)).astype(dtype)
    return result


def _fewer(kind: str, shape: Shape, dtype: str, generator: np.random.Generator) -> Array:
    return indices(kind, (*shape[:2], shape[2] // 2), dtype, generator)


def _in_two_rows(kind: str, shape: Shape, dtype: str, generator: np.random.Generator) -> Array:
    return indices(kind, shape, dtype, generator).reshape(2, -1)


#: The forms of prediction and target beside a class index for each row: the prediction's shape, and what draws targets.
CLASS_FORMS: dict[str, tuple[Shape, Draw]] = {
    "probabilities": ((4, 5), probabilities),
    "probabilities of positions": ((4, 5, 3), probabilities),
    "indices of positions": ((4, 5, 3), indices),
    "indices of half as many positions": ((4, 5, 8), _fewer),
    "indices in two rows": ((4, 5), _in_two_rows),
}


def _takes(loss: Loss, prediction: Array, target: Array) -> bool:
    try:
        loss.check_target(prediction, target)
    except (TypeError, ValueError):
        return False
    return True
