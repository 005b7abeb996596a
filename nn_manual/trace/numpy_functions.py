"""What a trace makes of each function of NumPy that isn't a ufunc.

Most are one operation: NumPy computes a new array of plain ones. The sets name the others.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Function = Callable[..., Any]

#: Made of ufuncs, of methods and of the functions that are operations: these are recorded in their place.
COMPOSED: frozenset[Function] = frozenset(
    {
        *(np.sum, np.mean, np.var, np.std, np.prod, np.max, np.min, np.amax, np.amin, np.any, np.all, np.clip),
        *(np.stack, np.vstack, np.hstack, np.diff),
        *(np.reshape, np.ravel, np.zeros_like, np.ones_like, np.full_like, np.empty_like, np.triu, np.tril),
    }
)

#: Those that write to their first argument and return nothing.
IN_PLACE: frozenset[Function] = frozenset(
    {np.copyto, np.put, np.putmask, np.place, np.fill_diagonal, np.put_along_axis}
)

#: The names of those that make an array of none: with `like=` an array of a trace.
CREATING = frozenset(
    ["array", "asarray", "asanyarray", "zeros", "ones", "empty", "full", "arange", "eye", "identity", "tri"]
)

#: Those whose result is of Python, and depends on shapes and dtypes, or is there to be read.
OF_SHAPE: frozenset[Function] = frozenset(
    {
        *(np.shape, np.ndim, np.size, np.result_type, np.can_cast, np.min_scalar_type, np.common_type),
        *(np.iscomplexobj, np.isrealobj, np.shares_memory, np.may_share_memory),
        *(np.array_repr, np.array_str, np.array2string),
    }
)

_INDICES = "its result has a shape that depends on values: use np.where(condition, one, other)"
_TRUTH = "its result decides what comes next"
#: What can't be repeated on other values, and why.
REFUSED: Mapping[Function, str] = {
    **dict.fromkeys((np.nonzero, np.flatnonzero, np.argwhere, np.extract, np.compress, np.trim_zeros), _INDICES),
    **dict.fromkeys((np.unique, np.unique_values, np.unique_counts, np.unique_inverse, np.unique_all), _INDICES),
    **dict.fromkeys((np.union1d, np.intersect1d, np.setdiff1d, np.setxor1d), _INDICES),
    **dict.fromkeys((np.array_equal, np.array_equiv, np.allclose), _TRUTH),
    np.count_nonzero: "its result is a number of Python's: use np.sum(array != 0)",
}


#: The parameters of functions in C that have an `out`: before NumPy 2.4 such functions don't say theirs.
_OF_C: Mapping[Function, list[str]] = {np.dot: ["a", "b", "out"], np.concatenate: ["arrays", "axis", "out"]}


@functools.cache
def _names(function: Function) -> list[str]:
    """The parameters that can be given by their place; of a function that doesn't say them and has no `out`, none."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return _OF_C.get(function, [])
    return [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]


def by_name(
    function: Function, arguments: tuple[Any, ...], keywords: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments, with `out` and what follows it among the keywords."""
    names = _names(function)
    place = names.index("out") if "out" in names else len(arguments)
    return arguments[:place], dict(zip(names[place:], arguments[place:], strict=False)) | dict(keywords)
