"""NumPy's conversions, as np.asarray: they don't ask an array's class, so a trace replaces them while it runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from nn_manual.trace.traced import Traced

#: By the name of the conversion: whether it copies an array, and the memory order of its result.
CONVERSIONS = {
    "array": (True, "K"),
    "asarray": (False, "K"),
    "asanyarray": (False, "K"),
    "ascontiguousarray": (False, "C"),
    "asfortranarray": (False, "F"),
}


@contextmanager
def conversions() -> Iterator[None]:
    """In this context NumPy's conversions record what they do with arrays of a trace. Other arrays they convert as
    usual.
    """
    own = {name: getattr(np, name) for name in CONVERSIONS}
    for name, function in own.items():
        setattr(np, name, _converting(name, function))
    try:
        yield
    finally:
        for name, function in own.items():
            setattr(np, name, function)


def _converting(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    copies, usual_order = CONVERSIONS[name]

    @functools.wraps(function)
    def converted(value: Any, dtype: Any = None, **keywords: Any) -> Any:
        if not _is_traced(value):
            return function(value, dtype, **keywords)
        array: Any = value if isinstance(value, Traced) else np.stack([converted(part) for part in value])
        array = array.reshape(()) if array.is_number else array
        copy, order = keywords.get("copy", copies), keywords.get("order") or usual_order
        array = array.astype(dtype or array.dtype, order=order, copy=copy is True and array is value)
        num_dimensions = max(keywords.get("ndmin", 0), 1 if usual_order != "K" else 0)
        missing = max(0, num_dimensions - array.ndim)
        return array.reshape((1,) * missing + array.shape) if missing else array

    return converted


def _is_traced(value: Any) -> bool:
    return isinstance(value, Traced) or (isinstance(value, list | tuple) and any(map(_is_traced, value)))
