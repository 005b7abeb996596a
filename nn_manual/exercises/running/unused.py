"""Which methods of a reader's class never run: no number tells whether they are right."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from nn_manual.defaults import is_of_package
from nn_manual.exercises.kinds.exercise import Exercise


@contextmanager
def unused_methods(exercise: Exercise, own: Any) -> Iterator[dict[str, int]]:
    """The methods with hand-derived code that the reader's class defines, and their lines. In this block, each leaves
    the dictionary when it is called.
    """
    unused: dict[str, int] = {}
    replaced: list[tuple[type, str, Any]] = []
    for name in exercise.derived if isinstance(own, type) else ():
        definer = next((base for base in own.__mro__ if name in vars(base)), None)
        if definer is None or is_of_package(definer):
            continue
        found = vars(definer)[name]
        is_bound = isinstance(found, classmethod | staticmethod)
        function = found.__func__ if is_bound else found
        if not isinstance(function, FunctionType):
            continue
        unused[name] = inspect.unwrap(function).__code__.co_firstlineno
        replaced.append((definer, name, found))
        noting = _noting(function, name, unused)
        setattr(definer, name, type(found)(noting) if is_bound else noting)
    try:
        yield unused
    finally:
        for definer, name, found in replaced:
            setattr(definer, name, found)


def _noting(function: Callable[..., Any], name: str, unused: dict[str, int]) -> Callable[..., Any]:
    @functools.wraps(function)
    def noting(*arguments: Any, **named: Any) -> Any:
        unused.pop(name, None)
        return function(*arguments, **named)

    return noting
