"""The settings of an optimizer, looked at: are they numbers, and in their ranges? And what its methods make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from numbers import Real
from typing import Any

from nn_manual.arrays import is_number
from nn_manual.errors import ComponentError


def check_settings_of(optimizer: Any) -> None:
    """Raise ValueError, with its name, for a setting that is no number, or not of numbers, where its default is; and as
    the optimizer's `check_settings` does, which can then compare numbers.
    """
    for setting in fields(optimizer):
        value, default = getattr(optimizer, setting.name), setting.default
        if isinstance(default, float) and not isinstance(value, Real):
            raise ValueError(f"{setting.name} must be a number, not {value!r}")
        if isinstance(default, tuple) and not _are_numbers(value, or_none=None in default):
            raise ValueError(f"{setting.name} must be numbers, not {value!r}")
    optimizer.check_settings()


def check_new(optimizer: Any) -> None:
    """The same of an optimizer that is being made. Raise ComponentError where its `vector_names` or its `coefficients`
    return something else than the contract says.
    """
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
    """Raise ValueError unless these are two numbers from 0 to below 1."""
    if len(betas) != 2 or not all(0 <= beta < 1 for beta in betas):
        raise ValueError(f"betas must be at least 0 and below 1, not {list(betas)}")


def _are_numbers(values: Any, *, or_none: bool) -> bool:
    if not isinstance(values, Sequence):
        return False
    return all(isinstance(value, Real) or (or_none and value is None) for value in values)
