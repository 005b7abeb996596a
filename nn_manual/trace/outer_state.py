"""What a step may keep outside of its objects: global variables of a user's code, and the process's random numbers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

#: The package's own modules keep nothing.
PACKAGE = __name__.partition(".")[0]


def globals_read_by(owner: type) -> dict[str, Any]:
    """The values of the global variables that the methods of a user's class read or write, by name, and those of the
    functions of the same module that they call. Functions, classes and modules are left out.
    """
    found: dict[str, Any] = {}
    for base in owner.__mro__:
        for function in vars(base).values():
            if isinstance(function, FunctionType) and not function.__module__.startswith((f"{PACKAGE}.", "builtins")):
                found |= dict(_read(function, set()))
    return found


def generators() -> dict[str, Any]:
    """The states of NumPy's and Python's generators, which numbers drawn without a generator of one's own come from."""
    of_numpy = np.random.get_state()
    return {"the state of NumPy's random numbers": of_numpy, "the state of Python's random numbers": random.getstate()}


def _read(function: FunctionType, seen: set[CodeType]) -> Iterator[tuple[str, Any]]:
    if function.__code__ in seen:
        return
    seen.add(function.__code__)
    for name in _names(function.__code__):
        value = function.__globals__.get(name)
        if isinstance(value, FunctionType) and value.__module__ == function.__module__:
            yield from _read(value, seen)
        elif name in function.__globals__ and not isinstance(value, FunctionType | ModuleType | type):
            yield name, value


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
