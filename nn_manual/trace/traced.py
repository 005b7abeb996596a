"""The array that records what NumPy does to it.

A `Traced` is a view of an ordinary array. NumPy computes as ever, and asks the class before each operation, by its own
protocols (`__array_ufunc__`, `__array_function__`). So shapes, dtypes, and whether something is a view or a copy, are
NumPy's own answers. Where an array lies is read off its address: writes to overlapping views need no rule.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt

from nn_manual.arrays import Array
from nn_manual.trace.operation import CannotTrace, Constant, Operation, Place, Storage, Trace, View

#: Functions of NumPy that compute by themselves. The others are made of operations, which are recorded.
PRIMITIVES: frozenset[Callable[..., Any]] = frozenset(
    {
        np.argmax,
        np.argmin,
        np.bincount,
        np.concatenate,
        np.dot,
        np.einsum,
        np.inner,
        np.take,
        np.vdot,
        np.where,
    }
)

#: Those that write to their first argument and return nothing.
IN_PLACE: frozenset[Callable[..., Any]] = frozenset({np.copyto, np.put, np.putmask})

#: Methods of an array that copy or compute without asking anybody.
REFUSED = (
    "argpartition",
    "argsort",
    "byteswap",
    "choose",
    "compress",
    "dump",
    "dumps",
    "nonzero",
    "partition",
    "repeat",
    "resize",
    "round",
    "searchsorted",
    "setfield",
    "sort",
    "tobytes",
    "tofile",
)

#: What makes a Python value of an array: what comes then may depend on it.
OF_VALUES = ("__bool__", "__complex__", "__contains__", "__float__", "__index__", "__int__", "item", "tolist")


class Tracer:
    """Records the operations on the arrays that it hands out. `owners` are the labels of layers, loss and optimizer, by
    their identities.

        with Tracer(owners) as tracer:
            input = tracer.give("input", input)
            ...
        tracer.trace({"loss": value})
    """

    #: The one that records: NumPy's protocols know only the arrays.
    _current: Tracer | None = None

    def __init__(self, owners: Mapping[int, str]) -> None:
        self._owners = owners
        self._storages: list[Storage] = []
        #: The arrays that own the memory, kept alive, so that no other array gets their address; by their identities.
        self._roots: dict[int, tuple[int, Array]] = {}
        self._operations: list[Operation] = []
        #: Of memory that the step didn't get and no operation made: what it held when it was met, and which of its
        #: bytes no operation has written yet.
        self._met: dict[int, tuple[Array, npt.NDArray[np.bool_]]] = {}

    def __enter__(self) -> Tracer:
        assert Tracer._current is None, "a trace within a trace"
        Tracer._current = self
        return self

    def __exit__(self, *exception: object) -> None:
        Tracer._current = None

    @classmethod
    def current(cls) -> Tracer:
        """The one that records. Raises CannotTrace for an array that outlived its trace."""
        if cls._current is None:
            raise CannotTrace("an array of a trace is used after its end")
        return cls._current

    def give(self, name: str, array: Array) -> Array:
        """A copy of an array that the step gets under this name."""
        own = array.copy()
        self._roots[id(own)] = len(self._storages), own
        self._storages.append(Storage(name, own.nbytes))
        return own.view(Traced)

    def trace(self, results: Mapping[str, Array]) -> Trace:
        """What was recorded, and where these arrays are."""
        return Trace(self._storages, self._operations, {name: self.view(array) for name, array in results.items()})

    def view(self, array: Array) -> View:
        """Where an array lies, which no operation may have met."""
        root = _root(array)
        if id(root) not in self._roots:
            self._roots[id(root)] = len(self._storages), root
            self._storages.append(Storage("", root.nbytes))
        storage, _ = self._roots[id(root)]
        return View(storage, _address(array) - _address(root), array.shape, array.strides, array.dtype)

    def meet(self, array: Array) -> None:
        """An operation is about to write to this array, of which nobody may have heard."""
        root = _root(array)
        if id(root) not in self._roots:
            values = np.asarray(root).ravel(order="K").view(np.uint8).copy()
            self._met[self.view(root).storage] = values, np.ones(root.nbytes, np.bool_)

    def _unwritten(self, view: View) -> npt.NDArray[np.bool_]:
        """Of each byte, whether no operation has written it."""
        _, unwritten = self._met[view.storage]
        shape, strides = (*view.shape, view.dtype.itemsize), (*view.strides, 1)
        return np.ndarray(shape, np.bool_, unwritten.data, view.offset, strides)

    def argument(self, value: Any) -> Any:
        """An operation's argument as it is recorded."""
        if isinstance(value, np.ndarray):
            if id(_root(value)) not in self._roots:
                return Constant(np.array(value))
            view = self.view(value)
            if view.storage in self._met and self._unwritten(view).any():
                storage, (initial, _) = self._storages[view.storage], self._met[view.storage]
                self._storages[view.storage] = storage._replace(initial=initial)
            return view
        if type(value) in (tuple, list):
            return type(value)(map(self.argument, value))
        if isinstance(value, slice) or value is None or value is Ellipsis:
            return value
        return Constant(value)

    def record(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: Iterable[Any],
        keywords: Mapping[str, Any],
        output: Array,
        *,
        is_in_place: bool = False,
    ) -> Array:
        """Note an operation that wrote to `output`; returns that as an array that records on."""
        noted = tuple(map(self.argument, arguments))
        named = {key: self.argument(value) for key, value in keywords.items()}
        view = self.view(output)
        if view.storage in self._met and not is_in_place:
            self._unwritten(view)[...] = False
        self._operations.append(Operation(name, function, noted, named, view, self._place(), is_in_place))
        return output.view(Traced)

    def refuse(self, what: str) -> CannotTrace:
        """An error that says where a formula does this."""
        return CannotTrace(f"{self._place()}: {what}")

    def _place(self) -> Place:
        """The innermost running method of a layer, loss or optimizer; outside of all, the innermost function."""
        frame: FrameType | None = sys._getframe(1)
        outside = None
        while frame is not None:
            code = frame.f_code
            owner = self._owners.get(id(frame.f_locals.get("self")), "")
            if owner:
                return Place(owner, code.co_name, _short(code.co_filename), frame.f_lineno)
            if outside is None and not code.co_filename.startswith(NOT_FORMULAS):
                outside = Place("", code.co_name, _short(code.co_filename), frame.f_lineno)
            frame = frame.f_back
        assert outside is not None  # somebody called
        return outside


class Traced(np.ndarray[Any, Any]):
    """An array whose operations the current Tracer records. It has no value for Python: no `if`, no `float`."""

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: tuple[Array | None, ...] | None = None, **keywords: Any
    ) -> Any:
        tracer, function = Tracer.current(), getattr(ufunc, method)
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        if ufunc.nout != 1 or ("where" in keywords and isinstance(keywords["where"], np.ndarray)):
            raise tracer.refuse(f"{name} of several results, or with where=an array, isn't traced")
        for written in (inputs[0] if method == "at" else None, *(out or ())):
            if written is not None:
                tracer.meet(written)
        if method == "at":
            function(*_plain(inputs))
            tracer.record(name, function, inputs, {}, inputs[0], is_in_place=True)
            return None
        target = out[0] if out else None
        result = function(*_plain(inputs), **keywords, **({} if target is None else {"out": _plain(target)}))
        return tracer.record(name, function, inputs, keywords, np.asarray(result) if target is None else target)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        tracer, name = Tracer.current(), function.__name__
        if function in IN_PLACE:
            tracer.meet(arguments[0])
            function(*_plain(arguments), **_plain(keywords))
            if function is np.copyto and "where" not in keywords:
                tracer.record(name, function, arguments[1:], keywords, arguments[0])
                return None
            tracer.record(name, function, arguments, keywords, arguments[0], is_in_place=True)
            return None
        if function not in PRIMITIVES:
            return function._implementation(*arguments, **keywords)
        target = keywords.pop("out", None)
        if target is not None:
            tracer.meet(target)
        result = function(*_plain(arguments), **_plain(keywords))
        if target is None:
            return tracer.record(name, function, arguments, keywords, np.asarray(result))
        np.asarray(target)[...] = result
        return tracer.record(name, function, arguments, keywords, target)

    def __getitem__(self, key: Any) -> Any:
        if not _has_arrays(key):
            found = super().__getitem__(key)
            return found if isinstance(found, np.ndarray) else super().__getitem__((*_as_tuple(key), ...))
        if any(isinstance(part, np.ndarray) and part.dtype == np.bool_ for part in _as_tuple(key)):
            raise Tracer.current().refuse("an array picked by a mask has a shape that depends on values: use np.where")
        found = np.asarray(self)[_plain(key)]
        return Tracer.current().record("getitem", np.ndarray.__getitem__, (self, key), {}, found)

    def __setitem__(self, key: Any, value: Any) -> None:
        if not _has_arrays(key):
            key = _as_tuple(key)
            target = super().__getitem__(key if Ellipsis in key else (*key, ...))
            np.copyto(target, value, casting="unsafe")
            return
        Tracer.current().meet(self)
        np.asarray(self)[_plain(key)] = _plain(value)
        function = np.ndarray.__setitem__
        Tracer.current().record("setitem", function, (self, key, value), {}, self, is_in_place=True)

    def copy(self, order: Any = "C") -> Any:
        """Recorded."""
        return self._copied(np.array(self, order=order, copy=True, subok=False))

    def astype(self, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: Any = True, copy: Any = True) -> Any:  # noqa: ARG002 - NumPy's
        """Recorded."""
        result = np.asarray(self).astype(dtype, order=order, casting=casting, copy=copy)
        return self if _root(result) is _root(self) else self._copied(result)

    def _copied(self, result: Array) -> Any:
        return Tracer.current().record("copyto", np.copyto, (self,), {"casting": "unsafe"}, result)

    def reshape(self, *shape: Any, order: Any = "C", copy: Any = None) -> Any:
        """Recorded where it copies."""
        result = np.asarray(self).reshape(*shape, order=order, copy=copy)
        return result.view(Traced) if _root(result) is _root(self) else self.copy(order).reshape(*shape, order=order)

    def ravel(self, order: Any = "C") -> Any:
        """Recorded where it copies."""
        return self.reshape(-1, order=order)

    def flatten(self, order: Any = "C") -> Any:
        """Recorded."""
        return self.copy(order).reshape(-1, order=order)

    def fill(self, value: Any) -> None:
        """Recorded."""
        self[...] = value

    def dot(self, other: Any, out: Any = None) -> Any:
        """Recorded."""
        return np.dot(self, other, out=out)

    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
        """Recorded."""
        return np.take(self, indices, axis, out, mode)

    def put(self, indices: Any, values: Any, mode: Any = "raise") -> None:
        """Recorded."""
        np.put(self, indices, values, mode)

    def argmax(self, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        """Recorded."""
        return np.argmax(self, axis, out, keepdims=keepdims)

    def argmin(self, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        """Recorded."""
        return np.argmin(self, axis, out, keepdims=keepdims)


def _refusing(name: str, what: str) -> Callable[..., Any]:
    def refused(self: Traced, *arguments: Any, **keywords: Any) -> Any:  # noqa: ARG001 - whatever its arguments
        raise Tracer.current().refuse(what)

    refused.__name__ = name
    return refused


for _name in REFUSED:
    setattr(Traced, _name, _refusing(_name, f"ndarray.{_name} isn't traced"))
for _name in OF_VALUES:
    setattr(Traced, _name, _refusing(_name, "the value of an array decides what comes next"))


def _root(array: Array) -> Array:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _plain(value: Any) -> Any:
    """The same without any Traced."""
    if isinstance(value, Traced):
        return value.view(np.ndarray)
    if type(value) in (tuple, list):
        return type(value)(map(_plain, value))
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return value


def _as_tuple(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _has_arrays(key: Any) -> bool:
    return any(isinstance(part, np.ndarray | list) for part in _as_tuple(key))


def _short(file: str) -> str:
    """A file's path from the package on, or its name."""
    path = Path(file)
    return str(path.relative_to(PACKAGE.parent)) if path.is_relative_to(PACKAGE) else path.name


PACKAGE = Path(__file__).parent.parent
#: Files whose lines aren't a formula's.
NOT_FORMULAS = (str(Path(np.__file__).parent), str(Path(__file__).parent))
