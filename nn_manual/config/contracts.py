"""What an object of a user's own class must do, by its kind, as far as this shows before a run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from nn_manual.arrays import is_number
from nn_manual.data import Dataset
from nn_manual.errors import ComponentError
from nn_manual.layers import Layer
from nn_manual.losses import Loss
from nn_manual.model.contract import check_layers
from nn_manual.optim import Scheduler
from nn_manual.registry import kind_of


def check_contract(component: Any) -> None:
    """Raise ComponentError where a method returns what the contract of the component's kind doesn't allow."""
    check = _CHECKS.get(kind_of(type(component)))
    if check is not None:
        check(component)


def _check_loss(loss: Loss) -> None:
    if not isinstance(loss.reduction, str):
        raise ComponentError(_wrong(loss, "reduction must be", "a text such as mean or sum", loss.reduction))


def _check_schedule(scheduler: Scheduler) -> None:
    own: Any = type(scheduler)
    if own.observe is not Scheduler.observe:
        raise ComponentError(f"{own.__name__}.observe: a schedule of one's own follows the count, and no losses")
    lr: Any = scheduler.lr(1.0, 0)
    if not is_number(lr) or not 0 <= lr < math.inf:
        raise ComponentError(_wrong(scheduler, "lr must return", "a finite number of at least 0", lr))
    if not is_number(duration := scheduler.duration):
        raise ComponentError(_wrong(scheduler, "duration must be", "a number", duration))


def _check_data(data: Dataset) -> None:
    shape: Any = data.example_shape
    if shape is not None and not (isinstance(shape, tuple) and all(type(size) is int and size > 0 for size in shape)):
        raise ComponentError(_wrong(data, "example_shape must be", "a tuple such as (2,), or None", shape))
    num_classes: Any = data.num_classes
    if num_classes is not None and not (type(num_classes) is int and num_classes > 0):
        raise ComponentError(_wrong(data, "num_classes must be", "an integer above 0, or None", num_classes))


def _wrong(component: object, method: str, wanted: str, found: object) -> str:
    return f"{type(component).__name__}.{method} {wanted}, not {found!r}"


#: What looks at an object of each kind. An optimizer does it itself when it is made, and of an initializer, nothing
#: shows before it fills a weight.
_CHECKS: dict[type, Callable[[Any], None]] = {
    Layer: check_layers,
    Loss: _check_loss,
    Scheduler: _check_schedule,
    Dataset: _check_data,
}
