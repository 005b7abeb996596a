"""Traced: an array that records what NumPy does to it.

A `Traced` is a view of an ordinary array. NumPy computes as usual, but asks the class before each operation, by its
protocols `__array_ufunc__` and `__array_function__`. So NumPy itself decides shapes, dtypes, and whether a result is a
view or a copy. The address of an array says where it lies, so writes to overlapping views need no rule.

The file is long because one class must answer every way in which NumPy can use an array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.trace.methods import METHODS
from nn_manual.trace.numpy_functions import COMPOSED, CREATING, IN_PLACE, OF_SHAPE, REFUSED, by_name
from nn_manual.trace.operation_log import OperationLog
from nn_manual.trace.storages import untraced


class Traced(np.ndarray[Any, Any]):
    """An array whose operations the current OperationLog notes. It has no value for Python: no `if`, no `float`."""

    #: Whether NumPy has a number here, not an array: `x += 1` doesn't change a number, it makes another one.
    is_number = False

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: tuple[Array | None, ...] | None = None, **keywords: Any
    ) -> Any:
        log, function = OperationLog.current(), getattr(ufunc, method)
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        if ufunc.nout != 1:
            raise log.refuse(f"np.{name} has several results: use a function for each of them")
        target: Any = inputs[0] if method == "at" else out[0] if out else None
        if target is not None:
            log.memory.meet(target)
        if method == "at":
            function(*plain(inputs))
            log.record(name, function, inputs, {}, target, is_in_place=True)
            return None
        if method == "__call__" and isinstance(keywords.get("where"), np.ndarray):
            if target is None:
                raise log.refuse(f"np.{name} with where= leaves numbers that nobody wrote: give it out=, too")
            keywords["out"] = target
            function(*plain(inputs), **plain(keywords))
            log.record(name, function, inputs, keywords, target, is_in_place=True)
            return target.view(Traced)
        into = {} if target is None else {"out": untraced(target)}
        result = function(*plain(inputs), **plain(keywords), **into)
        return _recorded(name, function, inputs, keywords, result, target)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        log, name = OperationLog.current(), function.__name__
        if function in REFUSED or (function is np.where and len(arguments) == 1):
            raise log.refuse(f"np.{name}: {REFUSED.get(function, REFUSED[np.nonzero])}")
        if function in IN_PLACE:
            return _written(function, arguments, keywords)
        if function in COMPOSED or name in CREATING:
            if function in COMPOSED:
                made = function._implementation(*arguments, **keywords)
            else:
                made = function(*plain(arguments), **plain(keywords)).view(Traced)
            if name in ("empty_like", "empty"):  # zeros: which part is written may depend on an index
                untraced(made)[...] = 0
            return made
        arguments, keywords = by_name(function, arguments, keywords)
        target = keywords.pop("out", None)
        result = function(*plain(arguments), **plain(keywords))
        if isinstance(result, np.ndarray | np.generic):
            if target is not None:
                if target.shape != np.shape(result):
                    raise log.refuse(f"np.{name} is written to an array of another shape")
                log.memory.meet(target)
                untraced(target)[...] = result
            elif _is_view(result, arguments):
                return result.view(Traced)
            return _recorded(name, function, arguments, keywords, result, target)
        if isinstance(result, tuple | list) and all(_is_view(part, arguments) for part in result):
            return type(result)(part.view(Traced) for part in result)
        if function in OF_SHAPE:
            return result
        raise log.refuse(f"{function.__module__}.{name} doesn't give one array")

    def __getitem__(self, key: Any) -> Any:
        if any(isinstance(part, Traced) and part.dtype == np.bool_ for part in _as_tuple(key)):
            what = "an array picked by a mask has a shape that depends on values: use np.where"
            raise OperationLog.current().refuse(what)
        found = plain(self)[_plain_key(key)]
        if not isinstance(found, np.ndarray):  # a number stays the same when the array changes
            if _has_arrays(key):
                return _recorded("getitem", np.ndarray.__getitem__, (self, key), {}, found)
            return _copied(untraced(self)[(*_as_tuple(key), ...)], found)
        if OperationLog.current().memory.is_view_of(found, self):
            return found.view(Traced)
        picked = _recorded("getitem", np.ndarray.__getitem__, (self, key), {}, found)
        if any(isinstance(part, Traced) and part.is_number for part in _as_tuple(key)):
            picked.flags.writeable = False  # without a trace it is a view, and the value decides of which row
        return picked

    def __setitem__(self, key: Any, value: Any) -> None:
        if not _has_arrays(key):
            key = _as_tuple(key)
            target = untraced(self)[key if Ellipsis in key else (*key, ...)]
            memory = OperationLog.current().memory
            # After x[0] += 1 Python assigns the result to x[0] once more.
            if not (isinstance(value, Traced) and memory.view(value) == memory.view(target)):
                np.copyto(target.view(Traced), value, casting="unsafe")
            return
        OperationLog.current().memory.meet(self)
        untraced(self)[_plain_key(key)] = plain(value)
        function = np.ndarray.__setitem__
        OperationLog.current().record("setitem", function, (self, key, value), {}, self, is_in_place=True)

    def copy(self, order: Any = "C") -> Any:
        """Recorded."""
        return _copied(self, plain(self).copy(order))

    def __copy__(self) -> Any:
        return self.copy("K")

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy("K")

    def astype(self, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: Any = True, copy: Any = True) -> Any:  # noqa: ARG002 - NumPy's
        """Recorded where it copies."""
        result = plain(self).astype(dtype, order=order, casting=casting, copy=copy)
        if isinstance(result, np.ndarray) and OperationLog.current().memory.is_view_of(result, self):
            return self
        return _copied(self, result)

    def view(self, *arguments: Any, **keywords: Any) -> Any:
        """As NumPy's; `view(np.ndarray)` stays a Traced."""
        keywords = {name: value for name, value in keywords.items() if value is not np.ndarray}
        view = super().view(*(part for part in arguments if part is not np.ndarray), **keywords)
        return _copied(view, untraced(view)[()]) if self.is_number else view

    @property
    def T(self) -> Any:  # noqa: N802 - NumPy's name
        """The transposed view; of a number the number itself."""
        return self if self.is_number else self.transpose()

    def reshape(self, *shape: Any, order: Any = "C", copy: Any = None) -> Any:
        """Recorded where it copies."""
        result = untraced(self).reshape(*shape, order=order, copy=copy)
        if self.is_number:
            return _copied(result, result.copy())
        if OperationLog.current().memory.is_view_of(result, self):
            return result.view(Traced)
        return self.copy(order).reshape(*shape, order=order)

    def ravel(self, order: Any = "C") -> Any:
        """Recorded where it copies."""
        if OperationLog.current().memory.is_view_of(untraced(self).ravel(order), self):
            return self.reshape(-1, order=order)
        return self.flatten(order)

    def flatten(self, order: Any = "C") -> Any:
        """Recorded."""
        return self.copy(order).reshape(-1, order=order)

    def __pow__(self, other: Any, modulo: None = None) -> Any:
        """Powers of numbers are rounded otherwise than powers of arrays."""
        if not self.is_number or np.ndim(other):
            return super().__pow__(other, modulo)
        return _recorded("power", power_of_numbers, (self, other), {}, power_of_numbers(*plain((self, other))))

    def fill(self, value: Any) -> None:
        """Recorded."""
        np.copyto(self, value, casting="unsafe")

    def sort(self, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
        """Recorded."""
        np.copyto(self, np.sort(self, axis, kind, order, stable=stable))

    def __repr__(self) -> str:
        return repr(untraced(self))

    def __str__(self) -> str:
        return str(untraced(self))

    def __format__(self, specification: str) -> str:
        return format(untraced(self)[()] if self.is_number else untraced(self), specification)

    @property
    def flat(self) -> Any:
        """Refused."""
        raise OperationLog.current().refuse("ndarray.flat: what is written there isn't traced: use reshape(-1)")

    @property
    def data(self) -> Any:
        """Refused."""
        raise OperationLog.current().refuse("ndarray.data: what is read and written there isn't traced")


def power_of_numbers(base: Any, exponent: Any) -> Any:
    """The power as NumPy computes it for numbers. For arrays, also those without dimensions, it gives other bits."""
    base, exponent = (part[()] if isinstance(part, np.ndarray) else part for part in (base, exponent))
    return base**exponent


def plain(value: Any) -> Any:
    """The same value without any Traced: arrays and numbers as they are without a trace."""
    if isinstance(value, Traced):
        return untraced(value)[()] if value.is_number else untraced(value)
    if type(value) in (tuple, list):
        return type(value)(map(plain, value))
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return value


def _recorded(
    name: str, function: Callable[..., Any], arguments: Any, keywords: Any, result: Any, target: Array | None = None
) -> Any:
    """Record an operation; returns its result as a Traced. `target` is the array that the result was written to, None
    for a new array.
    """
    output = untraced(result) if target is None else target
    if output.dtype == np.object_:
        raise OperationLog.current().refuse(f"{name} gives objects of Python's")
    OperationLog.current().record(name, function, arguments, keywords, output)
    if isinstance(target, Traced):
        return target
    traced = output.view(Traced)
    traced.is_number = target is None and not isinstance(result, np.ndarray)
    return traced


def _copied(array: Array, result: Any) -> Any:
    return _recorded("copyto", np.copyto, (array,), {"casting": "unsafe"}, result)


def _written(function: Callable[..., Any], arguments: Any, keywords: Any) -> None:
    """A function that writes to its first argument."""
    log, (target, *values) = OperationLog.current(), arguments
    if isinstance(target, Traced) and target.is_number:
        raise log.refuse("a number of NumPy's can't be written to")
    log.memory.meet(target)
    function(*plain(arguments), **plain(keywords))
    if function is np.copyto and "where" not in keywords and len(values) < 3:
        names = dict(zip(("casting",), values[1:], strict=False))
        log.record("copyto", function, values[:1], {**names, **keywords}, target)
    else:
        log.record(function.__name__, function, arguments, keywords, target, is_in_place=True)


def _is_view(result: Any, arguments: Any) -> bool:
    """Whether a function's result lies in the memory of one of its arguments."""
    memory = OperationLog.current().memory
    return isinstance(result, np.ndarray) and any(
        isinstance(argument, np.ndarray) and memory.is_view_of(result, argument) for argument in _flat(arguments)
    )


def _flat(arguments: Any) -> list[Any]:
    parts = (_flat(part) if isinstance(part, tuple | list) else [part] for part in arguments)
    return [inner for part in parts for inner in part]


def _plain_key(key: Any) -> Any:
    """The key with plain arrays. A traced number becomes an array, so that NumPy copies: its value may be another one.
    """
    key = tuple(untraced(part) if isinstance(part, Traced) else part for part in _as_tuple(key))
    return key if len(key) != 1 else key[0]


def _as_tuple(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _has_arrays(key: Any) -> bool:
    """Whether a key picks elements: then the result is a copy."""
    return any(isinstance(part, np.ndarray | list | range | bool | np.bool_) for part in _as_tuple(key))


for _name, _method in METHODS.items():
    setattr(Traced, _name, _method)
