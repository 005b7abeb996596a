"""The options of check_function: each is checked, and brought into one form. What doesn't fit raises ValueError."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from nn_manual.arrays import Domain
from nn_manual.check.compare.tolerances import MEANINGLESS
from nn_manual.functions.battery.layouts_and_kinds import FUNCTION_KINDS
from nn_manual.functions.battery.lengths import Choice
from nn_manual.functions.battery.trial import Dtype
from nn_manual.functions.function_case import SUPPORTED
from nn_manual.messages.text import LONGEST_VALUE, one_line


def dtypes_of(dtypes: Sequence[Dtype] | None) -> tuple[Dtype | None, ...]:
    """The dtypes to try; None means the inputs' own."""
    if dtypes is None:
        return (None,)
    if isinstance(dtypes, str) or not isinstance(dtypes, Collection) or not dtypes:
        raise ValueError(f"dtypes must be a list such as ['float32'], not {dtypes!r}")
    for name in [name for each in dtypes for name in (each if isinstance(each, tuple | list) else [each])]:
        if not isinstance(name, str):
            raise ValueError(f"dtypes must be names, such as 'float32', not {name!r}")
        if name not in SUPPORTED:
            raise ValueError(f"dtype {name!r} can't be judged: it must be {', '.join(SUPPORTED)}")
    return tuple(dtypes)


def sizes_of(inputs: Any, sizes: Mapping[str, int | Sequence[int]] | None) -> dict[str, int | Choice]:
    """The sizes of the dimensions of inputs that a function makes; none for inputs that are given."""
    if not callable(inputs):
        if sizes is not None:
            raise ValueError("sizes need a function as inputs, which makes them from a generator and sizes")
        return {}
    if not sizes:
        raise ValueError("inputs is a function: sizes must name its dimensions, as in sizes={'N': 8}")
    if not isinstance(sizes, Mapping):
        raise ValueError(f"sizes must be a dict of the dimensions, as {{'N': 8}}, not {_shown(sizes)}")
    found: dict[str, int | Choice] = {}
    for name, given in sizes.items():
        choice = tuple(given) if isinstance(given, Sequence) else (given,)
        if not choice or not all(isinstance(size, Integral) and size >= 0 for size in choice):
            raise ValueError(f"size {name} must be a whole number from 0 on, or several, not {given!r}")
        found[name] = Choice(sorted(map(int, choice))) if isinstance(given, Sequence) else int(given)
    return found


def kinds_of(kinds: Sequence[str] | None) -> tuple[str, ...] | None:
    """The kinds of values to try; None means all of them."""
    if kinds is None:
        return None
    if isinstance(kinds, str) or not isinstance(kinds, Collection):
        example = kinds if isinstance(kinds, str) else "zero"
        raise ValueError(f"kinds must be a list, as [{example!r}], not {_shown(kinds)}")
    for kind in kinds:
        if kind not in FUNCTION_KINDS:
            raise ValueError(f"there is no kind {kind!r}: it must be {', '.join(FUNCTION_KINDS)}")
    return tuple(kinds)


def domains_of(domain: Domain | Mapping[str, Domain]) -> dict[str, Domain]:
    """Where the floating inputs may lie, by name; "" stands for all others."""
    found = dict(domain) if isinstance(domain, Mapping) else {"": domain}
    for name, each in found.items():
        match each:
            case "real" | "positive" | "nonzero":
                continue
            case (int() | float() as low, int() | float() as high) if low < high:
                found[name] = (low, high)  # also where a list was given
                continue
        raise ValueError(f'a domain is "real", "positive", "nonzero" or (low, high) with low < high, not {each!r}')
    return found


def tolerance_of(tolerance: float | None) -> float | None:
    """The tolerance in the place of the dtype's; None means the dtype's."""
    if tolerance is not None and not (isinstance(tolerance, Real) and 0 < tolerance < MEANINGLESS):
        raise ValueError(f"tolerance must be above 0 and below {MEANINGLESS}, not {_shown(tolerance)}")
    return tolerance


def _shown(value: object) -> str:
    return one_line(repr(value), LONGEST_VALUE)
