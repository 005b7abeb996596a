"""How a trace records NumPy's functions that aren't ufuncs.

Most functions are recorded as one operation: NumPy computes a new array from plain arrays. The sets here name the
others.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Function = Callable[..., Any]

#: Functions that call ufuncs, methods and other functions: a trace records these calls instead.
COMPOSED: frozenset[Function] = frozenset(
    {
        *(np.sum, np.mean, np.var, np.std, np.prod, np.max, np.min, np.amax, np.amin, np.any, np.all, np.clip),
        *(np.stack, np.vstack, np.hstack, np.diff),
        *(np.reshape, np.ravel, np.zeros_like, np.ones_like, np.full_like, np.empty_like, np.triu, np.tril),
    }
)

#: Functions that write to their first argument and return nothing.
IN_PLACE: frozenset[Function] = frozenset(
    {np.copyto, np.put, np.putmask, np.place, np.fill_diagonal, np.put_along_axis}
)

#: The names of functions that make an array from no array. A trace sees them if `like=` is an array of the trace.
CREATING = frozenset(
    ["array", "asarray", "asanyarray", "zeros", "ones", "empty", "full", "arange", "eye", "identity", "tri"]
)

#: Functions whose result is a Python object: it depends on shapes and dtypes alone, or is a text for people.
OF_SHAPE: frozenset[Function] = frozenset(
    {
        *(np.shape, np.ndim, np.size, np.result_type, np.can_cast, np.min_scalar_type, np.common_type),
        *(np.iscomplexobj, np.isrealobj, np.shares_memory, np.may_share_memory),
        *(np.array_repr, np.array_str, np.array2string),
    }
)

_INDICES = "its result has a shape that depends on values: use np.where(condition, one, other)"
_TRUTH = "its result decides what comes next"
#: Functions that can't be repeated on other values, and the reasons.
REFUSED: Mapping[Function, str] = {
    **dict.fromkeys((np.nonzero, np.flatnonzero, np.argwhere, np.extract, np.compress, np.trim_zeros), _INDICES),
    **dict.fromkeys((np.unique, np.unique_values, np.unique_counts, np.unique_inverse, np.unique_all), _INDICES),
    **dict.fromkeys((np.union1d, np.intersect1d, np.setdiff1d, np.setxor1d), _INDICES),
    **dict.fromkeys((np.array_equal, np.array_equiv, np.allclose), _TRUTH),
    np.count_nonzero: "its result is a Python number: use np.sum(array != 0)",
}


#: The parameters of functions in C that have an `out`. Before NumPy 2.4 such functions have no signature.
_OF_C: Mapping[Function, list[str]] = {np.dot: ["a", "b", "out"], np.concatenate: ["arrays", "axis", "out"]}


@functools.cache
def _names(function: Function) -> list[str]:
    """The names of the positional parameters; [] for a function without a signature and without `out`."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return _OF_C.get(function, [])
    return [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]


def by_name(
    function: Function, arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments, with `out` and all that follow it moved to the keywords."""
    names = _names(function)
    place = names.index("out") if "out" in names else len(arguments)
    return arguments[:place], dict(zip(names[place:], arguments[place:], strict=False)) | dict(keywords)
