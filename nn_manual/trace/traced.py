"""The array that records what NumPy does to it.

A `Traced` is a view of an ordinary array. NumPy computes as ever, and asks the class before each operation, by its own
protocols (`__array_ufunc__`, `__array_function__`). So shapes, dtypes, and whether something is a view or a copy, are
NumPy's own answers. Where an array lies is read off its address: writes to overlapping views need no rule.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.trace.functions import COMPOSED, CREATING, IN_PLACE, OF_SHAPE, REFUSED, by_name
from nn_manual.trace.recording import Recording

_OF_VALUE = "the value of an array decides what comes next"
_OF_MEMORY = "what is written there isn't traced"


class Traced(np.ndarray[Any, Any]):
    """An array whose operations the current Recording notes. It has no value for Python: no `if`, no `float`."""

    #: Whether NumPy makes a number of it, no array: `x += 1` doesn't change a number, it makes another one.
    is_number = False

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: tuple[Array | None, ...] | None = None, **keywords: Any
    ) -> Any:
        recording, function = Recording.current(), getattr(ufunc, method)
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        if ufunc.nout != 1:
            raise recording.refuse(f"np.{name} has several results: use a function for each of them")
        target: Any = inputs[0] if method == "at" else out[0] if out else None
        if target is not None:
            recording.memory.meet(target)
        if method == "at":
            function(*plain(inputs))
            recording.record(name, function, inputs, {}, target, is_in_place=True)
            return None
        if method == "__call__" and isinstance(keywords.get("where"), np.ndarray):
            if target is None:
                raise recording.refuse(f"np.{name} with where= leaves numbers that nobody wrote: give it out=, too")
            keywords["out"] = target
            function(*plain(inputs), **plain(keywords))
            recording.record(name, function, inputs, keywords, target, is_in_place=True)
            return target.view(Traced)
        into = {} if target is None else {"out": plain(target)}
        result = function(*plain(inputs), **plain(keywords), **into)
        return _recorded(name, function, inputs, keywords, result, target)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        recording, name = Recording.current(), function.__name__
        if function in REFUSED or (function is np.where and len(arguments) == 1):
            raise recording.refuse(f"np.{name}: {REFUSED.get(function, REFUSED[np.nonzero])}")
        if function in IN_PLACE:
            return _written(function, arguments, keywords)
        if function in COMPOSED:
            return function._implementation(*arguments, **keywords)
        if function in CREATING:
            return function(*plain(arguments), **plain(keywords)).view(Traced)
        arguments, keywords = by_name(function, arguments, keywords)
        target = keywords.pop("out", None)
        result = function(*plain(arguments), **plain(keywords))
        if isinstance(result, np.ndarray | np.generic):
            if target is not None:
                recording.memory.meet(target)
                np.asarray(target)[...] = result
            elif _is_view(result, arguments):
                return result.view(Traced)
            return _recorded(name, function, arguments, keywords, result, target)
        if isinstance(result, tuple | list) and all(_is_view(part, arguments) for part in result):
            return type(result)(part.view(Traced) for part in result)
        if function in OF_SHAPE:
            return result
        raise recording.refuse(f"np.{name} doesn't give one array")

    def __getitem__(self, key: Any) -> Any:
        if any(isinstance(part, Traced) and part.dtype == np.bool_ for part in _as_tuple(key)):
            what = "an array picked by a mask has a shape that depends on values: use np.where"
            raise Recording.current().refuse(what)
        found = np.asarray(self)[plain(key)]
        if not isinstance(found, np.ndarray):  # a number, which stays when the array changes
            if _has_arrays(key):
                return _recorded("getitem", np.ndarray.__getitem__, (self, key), {}, found)
            return _copied(np.asarray(self)[(*_as_tuple(key), ...)], found)
        if Recording.current().memory.is_view_of(found, self):
            return found.view(Traced)
        return _recorded("getitem", np.ndarray.__getitem__, (self, key), {}, found)

    def __setitem__(self, key: Any, value: Any) -> None:
        if not _has_arrays(key):
            key = _as_tuple(key)
            target = np.asarray(self)[key if Ellipsis in key else (*key, ...)]
            memory = Recording.current().memory
            # After x[0] += 1, Python writes what was written already.
            if not (isinstance(value, Traced) and memory.view(value) == memory.view(target)):
                np.copyto(target.view(Traced), value, casting="unsafe")
            return
        Recording.current().memory.meet(self)
        np.asarray(self)[plain(key)] = plain(value)
        function = np.ndarray.__setitem__
        Recording.current().record("setitem", function, (self, key, value), {}, self, is_in_place=True)

    def copy(self, order: Any = "C") -> Any:
        """Recorded."""
        copied = np.array(self, order=order, copy=True, subok=False)
        return _copied(self, copied[()] if self.is_number else copied)

    def __copy__(self) -> Any:
        return self.copy("K")

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy("K")

    def astype(self, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: Any = True, copy: Any = True) -> Any:  # noqa: ARG002 - NumPy's
        """Recorded where it copies."""
        result = np.asarray(self).astype(dtype, order=order, casting=casting, copy=copy)
        if Recording.current().memory.is_view_of(result, self):
            return self
        return _copied(self, result[()] if self.is_number else result)

    def view(self, *arguments: Any, **keywords: Any) -> Any:
        """A view as np.ndarray stays one that is traced."""
        return super().view(*(part for part in arguments if part is not np.ndarray), **keywords)

    def reshape(self, *shape: Any, order: Any = "C", copy: Any = None) -> Any:
        """Recorded where it copies."""
        result = np.asarray(self).reshape(*shape, order=order, copy=copy)
        if Recording.current().memory.is_view_of(result, self):
            return result.view(Traced)
        return self.copy(order).reshape(*shape, order=order)

    def ravel(self, order: Any = "C") -> Any:
        """Recorded where it copies."""
        return self.reshape(-1, order=order)

    def flatten(self, order: Any = "C") -> Any:
        """Recorded."""
        return self.copy(order).reshape(-1, order=order)

    def fill(self, value: Any) -> None:
        """Recorded."""
        self[...] = value

    def sort(self, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
        """Recorded."""
        self[...] = np.sort(self, axis, kind, order, stable=stable)

    def __repr__(self) -> str:
        return repr(np.asarray(self))

    def __str__(self) -> str:
        return str(np.asarray(self))

    def __format__(self, specification: str) -> str:
        return format(np.asarray(self)[()] if self.is_number else np.asarray(self), specification)

    @property
    def flat(self) -> Any:
        """Refused."""
        raise Recording.current().refuse(f"ndarray.flat: {_OF_MEMORY}: use reshape(-1)")


def plain(value: Any) -> Any:
    """The same without any Traced."""
    if isinstance(value, Traced):
        return np.asarray(value)
    if type(value) in (tuple, list):
        return type(value)(map(plain, value))
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return value


def _recorded(
    name: str, function: Callable[..., Any], arguments: Any, keywords: Any, result: Any, target: Array | None = None
) -> Any:
    """An operation's result as an array that records on; `target` is where it was written to, if not to a new array."""
    output = np.asarray(result) if target is None else target
    Recording.current().record(name, function, arguments, keywords, output)
    if isinstance(target, Traced):
        return target
    traced = output.view(Traced)
    traced.is_number = target is None and not isinstance(result, np.ndarray)
    return traced


def _copied(array: Array, result: Any) -> Any:
    return _recorded("copyto", np.copyto, (array,), {"casting": "unsafe"}, result)


def _written(function: Callable[..., Any], arguments: Any, keywords: Any) -> None:
    """A function that writes to its first argument."""
    recording, (target, *values) = Recording.current(), arguments
    recording.memory.meet(target)
    function(*plain(arguments), **plain(keywords))
    if function is np.copyto and "where" not in keywords and len(values) < 3:
        names = dict(zip(("casting",), values[1:], strict=False))
        recording.record("copyto", function, values[:1], {**names, **keywords}, target)
    else:
        recording.record(function.__name__, function, arguments, keywords, target, is_in_place=True)


def _is_view(result: Any, arguments: Any) -> bool:
    """Whether a function's result lies in the memory of one of its arguments."""
    memory = Recording.current().memory
    return isinstance(result, np.ndarray) and any(
        isinstance(argument, np.ndarray) and memory.is_view_of(result, argument) for argument in _flat(arguments)
    )


def _flat(arguments: Any) -> list[Any]:
    parts = (_flat(part) if isinstance(part, tuple | list) else [part] for part in arguments)
    return [inner for part in parts for inner in part]


def _as_tuple(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _has_arrays(key: Any) -> bool:
    """Whether a key picks elements: then the result is a copy."""
    return any(isinstance(part, np.ndarray | list | range | bool | np.bool_) for part in _as_tuple(key))


def _as_function(name: str) -> Callable[..., Any]:
    def method(self: Traced, *arguments: Any, **keywords: Any) -> Any:
        return getattr(np, name)(self, *arguments, **keywords)

    return method


def _refusing(what: str) -> Callable[..., Any]:
    def refused(self: Traced, *arguments: Any, **keywords: Any) -> Any:  # noqa: ARG001 - whatever its arguments
        raise Recording.current().refuse(what)

    return refused


def _in_place(name: str, compute: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Traced, other: Any) -> Any:
        return compute(self, other) if self.is_number else getattr(np.ndarray, name)(self, other)

    return method


#: Methods of an array that compute without asking anybody, where a function of the same name asks.
for _name in ("argmax", "argmin", "argpartition", "argsort", "choose", "dot", "put", "repeat", "round"):
    setattr(Traced, _name, _as_function(_name))
for _name in ("searchsorted", "take", "compress", "nonzero"):
    setattr(Traced, _name, _as_function(_name))
for _name in ("byteswap", "dump", "dumps", "getfield", "partition", "resize", "setfield", "tobytes", "tofile"):
    setattr(Traced, _name, _refusing(f"ndarray.{_name} isn't traced"))
#: What makes a Python value of an array: what comes then may depend on it.
for _name in ("__bool__", "__complex__", "__contains__", "__float__", "__hash__", "__index__", "__int__", "item"):
    setattr(Traced, _name, _refusing(_OF_VALUE))
Traced.tolist = _refusing(_OF_VALUE)  # type: ignore[method-assign]  # as those above
for _compute in (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow),
    *(operator.matmul, operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift),
):
    _name = f"__i{_compute.__name__.rstrip('_')}__"
    setattr(Traced, _name, _in_place(_name, _compute))
