"""The settings of an optimizer, looked at: their types, their ranges, and what its methods make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nn_manual.arrays import is_number
from nn_manual.errors import ComponentError
from nn_manual.optim.groups import check_groups
from nn_manual.plain_settings import misfits


def check_settings_of(optimizer: Any) -> None:
    """Raise ValueError, with its name, for a setting of another type than its field, and as the optimizer's
    `check_settings` does, which can then compare numbers.
    """
    for reason in misfits(optimizer):
        raise ValueError(reason)
    optimizer.check_settings()


def check_new(optimizer: Any) -> None:
    """The same of an optimizer that is being made. Raise TypeError for what is no model and for what are no groups, and
    ComponentError where `vector_names` or `coefficients` return something else than the contract says.
    """
    if not hasattr(optimizer.model, "param_arena"):  # the check has parameters that are no whole model
        raise TypeError(f"model must be a Sequential, not {optimizer.model!r}")
    check_groups(optimizer.groups)
    check_settings_of(optimizer)
    own, names = type(optimizer).__name__, optimizer.vector_names()
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise ComponentError(f"{own}.vector_names must return a list of names, not {names!r}")
    numbers = optimizer.coefficients(1)
    if not (isinstance(numbers, Mapping) and all(map(is_number, numbers.values()))):
        raise ComponentError(f"{own}.coefficients must return a dict of numbers by name, not {numbers!r}")


def check_at_least_0(optimizer: Any, *names: str) -> None:
    """Raise ValueError for a setting below 0, and for NaN."""
    for name in names:
        if not getattr(optimizer, name) >= 0:
            raise ValueError(f"{name} must be at least 0, not {getattr(optimizer, name)}")


def check_betas(betas: Sequence[float]) -> None:
    """Raise ValueError unless these numbers are from 0 to below 1."""
    if not all(0 <= beta < 1 for beta in betas):
        raise ValueError(f"betas must be at least 0 and below 1, not {list(betas)}")

