"""The exponential moving average of the weights: an optimizer that keeps it beside its own state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, SupportsIndex

from nn_manual.arrays import Array
from nn_manual.optim.base import Optimizer
from nn_manual.plain_settings import check_type

#: The name of the average among the state vectors.
AVERAGE = "ema"


def averaged(optimizer_class: type[Optimizer], decay: float = 0.999) -> type[Optimizer]:
    """The optimizer's class, whose steps also move an exponential moving average of the parameters.

        optimizer = averaged(SGD, decay=0.999)(model, lr=0.1)

    After the optimizer's own formulas, with the parameters that they have made,

        ema = param                            at the first step
        ema = ema + (1 - decay) * (param - ema)  at later steps

    as torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn(decay), updated after each step. The average is a
    state vector, called ema: it is proven, compiled, divided among processes and kept in checkpoints as the others
    are. It never moves the parameters. Buffers have no average: evaluation takes the model's own.

    Why the difference is scaled, and not both terms: where the parameters stand still, the average then comes to
    exactly where they are, also where decay and 1 - decay, rounded, don't add up to 1.

    Raises ValueError for a decay that isn't from 0 to below 1, with which the average would never move, and TypeError
    for what is no number, and no class of optimizers.
    """
    if not (isinstance(optimizer_class, type) and issubclass(optimizer_class, Optimizer)):
        raise TypeError(f"optimizer_class must be a class of optimizers, not {optimizer_class!r}")
    check_type(float, decay=decay)
    if not 0 <= decay < 1:
        raise ValueError(f"decay must be at least 0 and below 1, not {decay}")
    base: Any = optimizer_class

    class Averaged(base):  # type: ignore[misc]  # which class it is, is known when it is made
        settles_at = max(base.settles_at, 2)
        decay_of_average = decay

        def vector_names(self) -> list[str]:
            return [*super().vector_names(), AVERAGE]

        def coefficients(self, step: int) -> dict[str, float]:
            return {**super().coefficients(step), "ema_add": 1.0 if step == 1 else 1 - decay}

        def move(
            self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
        ) -> None:
            super().move(param, grad, vectors, coefficients)
            average = vectors[AVERAGE]
            average += coefficients["ema_add"] * (param - average)

        def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
            return _without_state, (base, decay), vars(self)  # pickle doesn't find the class by its name

    # torch's class, messages and settings are found by the name of the optimizer's class.
    Averaged.__name__, Averaged.__qualname__ = base.__name__, base.__qualname__
    Averaged.__module__, Averaged.__doc__ = base.__module__, base.__doc__
    return Averaged


def _without_state(optimizer_class: type[Optimizer], decay: float) -> Optimizer:
    """What pickle gives its state to."""
    own = averaged(optimizer_class, decay)
    return own.__new__(own)


def decay_of(optimizer: Optimizer) -> float | None:
    """The decay of the average that an optimizer keeps; None where it keeps none."""
    decay: float | None = getattr(optimizer, "decay_of_average", None)
    return decay


@contextmanager
def averaged_weights(optimizer: Optimizer) -> Iterator[None]:
    """The context in which the model has the average as its parameters, if the optimizer keeps one and has made a step.
    """
    if decay_of(optimizer) is None or not optimizer.num_steps:
        yield
        return
    param = optimizer.model.param_arena
    trained = param.copy()
    param[...] = optimizer.vectors[AVERAGE]
    try:
        yield
    finally:
        param[...] = trained
