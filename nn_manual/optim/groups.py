"""Groups of parameters with settings of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from nn_manual.arrays import Shape, size_of
from nn_manual.optim.parts import Run
from nn_manual.plain_settings import check_type

#: A pattern of parameter names, and settings: {"parameters": "*.bias", "weight_decay": 0.0}.
Group: TypeAlias = dict[str, Any]
Groups: TypeAlias = list[Group]

#: The key of a group's pattern.
PATTERN = "parameters"


def check_groups(groups: object) -> None:
    """Raise TypeError for what is no list of groups, and ValueError for a group without a pattern."""
    if not isinstance(groups, list | tuple):
        raise TypeError(f"groups must be a list of dicts, not {groups!r}")
    for index, group in enumerate(groups):
        if not isinstance(group, Mapping):
            raise TypeError(f"groups.{index} must be a dict, not {group!r}")
        if PATTERN not in group:
            raise ValueError(f"groups.{index} needs {PATTERN}, a pattern of parameter names")
        check_type(str, **{f"groups.{index}.{PATTERN}": group[PATTERN]})


def group_of_each(groups: Sequence[Group], names: Sequence[str]) -> list[int]:
    """For each parameter name, the number, from 1, of the first group whose pattern matches it; 0 if none does."""
    return [
        next((number for number, group in enumerate(groups, 1) if fnmatchcase(name, group[PATTERN])), 0)
        for name in names
    ]


def without_parameters(groups: Sequence[Group], names: Sequence[str]) -> dict[int, str]:
    """Why a group has no parameters, by its index, for each such group; {} for a model without parameters."""
    taken = set(group_of_each(groups, names))
    reasons = {}
    for index, group in enumerate(groups):
        if names and index + 1 not in taken:
            pattern = group[PATTERN]
            if any(fnmatchcase(name, pattern) for name in names):
                why = "matches only parameters of groups before it"
            else:
                why = f"matches no parameter; there are {', '.join(names)}"
            reasons[index] = f"groups.{index}.{PATTERN} {pattern!r} {why}"
    return reasons


def runs(groups: Sequence[Group], shapes: Mapping[str, Shape], *, apart: bool) -> list[list[Run]]:
    """Where the parameters without a group, then those of each group, lie in a flat vector. Neighbors are one run,
    unless each parameter is to be `apart`.
    """
    result: list[list[Run]] = [[] for _ in range(len(groups) + 1)]
    start = 0
    for number, shape in zip(group_of_each(groups, list(shapes)), shapes.values(), strict=True):
        stop, own = start + size_of(shape), result[number]
        if own and own[-1].where.stop == start and not apart:
            whole = slice(own[-1].where.start, stop)
            own[-1] = Run(whole, whole)
        else:
            own.append(Run(slice(start, stop), slice(start, stop), shape if apart else None))
        start = stop
    return result
