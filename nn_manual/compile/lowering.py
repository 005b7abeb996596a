"""An operation of NumPy as a nest of loops around what it does with a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nn_manual.arrays import Shape, size_of
from nn_manual.compile.dims import axes_of, broadcast, canonical, check_overlap, flattened, whole
from nn_manual.compile.nests import Access, Compute, Dims, External, Leaf
from nn_manual.compile.products import matrix_product
from nn_manual.compile.scalar import BOOL, FUNCTIONS, CannotLower, check_function
from nn_manual.trace.operation import Constant, Operation, Storage, Trace, View, leaves


class Lowering:
    """The leaves of a trace's operations. `storages` are the trace's and those that were added."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.storages = list(trace.storages)
        #: The arrays of constants, by their storage.
        self.constants: dict[int, Any] = {}
        self._of_constant: dict[tuple[Any, ...], int] = {}
        #: The storages that have been read or written as floats, with their sizes in bytes.
        self._floats = {
            (view.storage, view.dtype)
            for operation in trace.unrolled()
            for view in leaves((operation.output, operation.arguments))
            if isinstance(view, View) and view.dtype.kind == "f"
        }

    def leaves_of(self, operation: Operation) -> list[Leaf]:
        """Usually one. External where nothing else fits."""
        try:
            name = operation.name
            if size_of(operation.output.shape) == 0:
                return []
            if name in ("matmul", "dot", "vecdot", "vdot", "inner"):
                return self._product(operation)
            method = getattr(self, f"_{name.replace('.', '_')}", None)
            if method is not None:
                found: list[Leaf] = method(operation)
                return found
            if name.endswith(".reduce"):
                return [self._reduction(operation)]
            if name in FUNCTIONS:
                return [self._elementwise(operation)]
            raise CannotLower(f"{name} has no compiled form")
        except CannotLower as reason:
            return [self._external(operation, str(reason))]

    def storage_of(self, value: Any) -> View:
        """Where a constant array lies."""
        array = np.ascontiguousarray(value)
        key = array.dtype, array.shape, array.tobytes()
        if key not in self._of_constant:
            self._of_constant[key] = len(self.storages)
            self.constants[len(self.storages)] = array
            self.storages.append(Storage("", array.nbytes))
        return View(self._of_constant[key], 0, array.shape, array.strides, array.dtype)

    def temporary(self, shape: Shape, dtype: np.dtype[Any]) -> View:
        """A new array."""
        array = np.empty(0, dtype)
        size = size_of(shape) * dtype.itemsize
        self.storages.append(Storage("", size))
        strides = tuple(size_of(shape[i + 1 :]) * array.itemsize for i in range(len(shape)))
        return View(len(self.storages) - 1, 0, shape, strides, dtype)

    def copied(self, operation: Operation, source: View, target: View) -> Leaf:
        """A copy, as part of an operation."""
        return self._map(operation, "copyto", [source], [], (target.dtype, target.dtype), target)

    def check_apart(self, view: View, output: View) -> None:
        """Raise CannotLower where an operand and the result have memory in common."""
        check_overlap(view, output, may_be_same=False)

    def broadcast(self, view: View, shape: Shape) -> tuple[int, ...]:
        """The strides of a view that is broadcast to a shape."""
        return broadcast(view, shape)

    def canonical(self, shape: Shape, strides: list[tuple[int, ...]]) -> list[Dims]:
        """The dims of as few loops as go through arrays with these strides."""
        return canonical(shape, strides)

    def _external(self, operation: Operation, reason: str) -> Leaf:
        views = [leaf for leaf in leaves((operation.arguments, operation.keywords)) if isinstance(leaf, View)]
        return External(whole(operation.output), tuple(map(whole, views)), operation, reason=reason)

    def _operands(self, arguments: Sequence[Any]) -> tuple[list[View], list[tuple[int, Any]]]:
        """The arrays among the arguments, and the others with their positions."""
        views, literals = [], []
        for position, argument in enumerate(arguments):
            if isinstance(argument, View):
                views.append(argument)
            elif isinstance(argument, Constant) and isinstance(argument.value, np.ndarray) and argument.value.ndim:
                views.append(self.storage_of(argument.value))
            elif isinstance(argument, Constant) and isinstance(argument.value, int | float | np.generic | np.ndarray):
                value = argument.value
                literals.append((position, value[()] if isinstance(value, np.ndarray) else value))
            else:
                raise CannotLower(f"{argument} is no number")
        return views, literals

    def _elementwise(self, operation: Operation) -> Leaf:
        arguments, output = operation.arguments, operation.output
        views, literals = self._operands(arguments)
        if operation.keywords.keys() - {"casting", "subok", "dtype", "order"}:
            raise CannotLower(f"{operation.name} has {', '.join(operation.keywords)}")
        if operation.name == "multiply" and len(views) == 2 and not literals:
            masked = self._masked(operation, views)
            if masked is not None:
                return masked
        dtypes = _dtypes(operation, views, dict(literals))
        return self._map(operation, operation.name, views, literals, dtypes, output)

    def _masked(self, operation: Operation, views: list[View]) -> Leaf | None:
        """The bits of floats, as integers, times a bool."""
        (bits, mask), output = sorted(views, key=lambda view: view.dtype == BOOL), operation.output
        if mask.dtype != BOOL or bits.dtype.kind != "i" or output.dtype != bits.dtype:
            return None
        floating = np.dtype(f"f{bits.dtype.itemsize}") if bits.dtype.itemsize in (4, 8) else bits.dtype
        if not any((view.storage, floating) in self._floats for view in (bits, output)):
            floating = bits.dtype
        operands = [mask, bits._replace(dtype=floating)]
        dtypes = (BOOL, floating, floating, floating)
        return self._map(
            operation, "where", operands, [(2, floating.type(0))], dtypes, output._replace(dtype=floating)
        )

    def _map(
        self, operation: Operation, function: str, views: list[View], literals: list[tuple[int, Any]],
        dtypes: tuple[np.dtype[Any], ...], output: View,
    ) -> Leaf:
        check_function(function, dtypes)
        for view in views:
            check_overlap(view, output)
        rows = [broadcast(view, output.shape) for view in views]
        output_dims, *dims = canonical(output.shape, [output.strides, *rows])
        accesses = tuple(
            Access(view.storage, view.offset, its, view.dtype) for view, its in zip(views, dims, strict=True)
        )
        written = Access(output.storage, output.offset, output_dims, output.dtype)
        return Compute(written, accesses, operation, function, tuple(literals), dtypes)

    def _copyto(self, operation: Operation) -> list[Leaf]:
        if operation.is_in_place:  # where a mask says so
            target, *others = operation.arguments
            mask = operation.keywords.get("where")
            if not isinstance(mask, View) or mask.dtype != BOOL:
                raise CannotLower("copyto has a mask that isn't traced")
            views, literals = self._operands([mask, *others, target])
            dtypes = (BOOL, target.dtype, target.dtype, target.dtype)
            return [self._map(operation, "where", views, literals, dtypes, target)]
        views, literals = self._operands(operation.arguments)
        source = views[0].dtype if views else np.result_type(literals[0][1])
        if source.kind == "f" and operation.output.dtype.kind not in "f":
            raise CannotLower("a float becomes an integer")
        own = (operation.output.dtype, operation.output.dtype)
        return [self._map(operation, "copyto", views, literals, own, operation.output)]

    def _where(self, operation: Operation) -> list[Leaf]:
        views, literals = self._operands(operation.arguments)
        if len(operation.arguments) != 3 or views[0].dtype != BOOL:
            raise CannotLower("where has no bool")
        dtype = operation.output.dtype
        return [self._map(operation, "where", views, literals, (BOOL, dtype, dtype, dtype), operation.output)]

    def _concatenate(self, operation: Operation) -> list[Leaf]:
        parts, *rest = operation.arguments
        axis = operation.keywords.get("axis", Constant(rest[0].value if rest else 0)).value
        output, leaves, start = operation.output, [], 0
        if axis is None:
            raise CannotLower("concatenate flattens")
        axis %= len(output.shape)
        for part in parts:
            views, _ = self._operands([part])
            shape = views[0].shape
            piece = output._replace(
                offset=output.offset + start * output.strides[axis], shape=shape
            )
            leaves.append(self._map(operation, "copyto", views, [], (output.dtype, output.dtype), piece))
            start += shape[axis]
        return leaves

    def _reduction(self, operation: Operation) -> Leaf:
        function = operation.name.removesuffix(".reduce")
        keywords = {name: _plain(value) for name, value in operation.keywords.items()}
        arguments = [operation.arguments[0]]
        if function not in REDUCTIONS or len(operation.arguments) > 1 or keywords.get("where", True) is not True:
            raise CannotLower(f"{operation.name} has no compiled form")
        if keywords.get("initial") is not None:
            raise CannotLower(f"{operation.name} has an initial value")
        (view,), _ = self._operands(arguments)
        output = operation.output
        if output.dtype == BOOL or view.dtype.kind not in "fiub":
            raise CannotLower(f"{operation.name} of {view.dtype}")
        if function == "add" and output.dtype != view.dtype and view.dtype.kind == "f":
            raise CannotLower("a sum in another dtype")
        axes = axes_of(keywords.get("axis", 0), len(view.shape))
        return self._reduced(operation, "copyto", [view], axes, function, bool(keywords.get("keepdims")))

    def _reduced(
        self, operation: Operation, function: str, views: list[View], axes: tuple[int, ...], reduction: str,
        keepdims: bool,
    ) -> Leaf:
        """The reduction of a function of views of one shape."""
        output, shape = operation.output, views[0].shape
        kept = [(1 if axis in axes else extent) for axis, extent in enumerate(shape) if keepdims or axis not in axes]
        if list(output.shape) != kept:
            raise CannotLower(f"{operation.name} into a larger array")
        own = iter(output.strides)
        strides = []
        for axis in range(len(shape)):
            if axis in axes:
                strides.append(0)
                if keepdims:
                    next(own)
            else:
                strides.append(next(own))
        for view in views:
            check_overlap(view, output, may_be_same=False)
        output_dims, *dims = canonical(shape, [tuple(strides), *(view.strides for view in views)], leading=1)
        dtype = output.dtype
        if not any(not stride for _, stride in output_dims):  # over axes of one element each
            reduction = ""
        written = Access(output.storage, output.offset, output_dims, dtype)
        accesses = tuple(
            Access(view.storage, view.offset, its, view.dtype) for view, its in zip(views, dims, strict=True)
        )
        initial = REDUCTIONS[reduction](dtype) if reduction else None
        return Compute(written, accesses, operation, function, (), (dtype,) * (len(views) + 1), reduction, initial)

    def _argmax(self, operation: Operation) -> list[Leaf]:
        view, axis, *_ = (*operation.arguments, None)
        axis = _plain(operation.keywords.get("axis", axis))
        keepdims = bool(_plain(operation.keywords.get("keepdims", False)))
        if not isinstance(view, View) or view.dtype.kind != "f" or axis is None or not view.shape:
            raise CannotLower(f"{operation.name} has no compiled form")
        axis %= len(view.shape)
        if axis != len(view.shape) - 1:
            raise CannotLower(f"{operation.name} along another axis than the last")
        if view.shape[-1] == 1:
            return [self._map(operation, "copyto", [], [(0, 0)], (np.dtype(np.int64),) * 2, operation.output)]
        leaf = self._reduced(operation, "copyto", [view], (axis,), "argmax", keepdims)
        assert isinstance(leaf, Compute)
        dtypes = (view.dtype, view.dtype)
        order = leaf.output.dims[-1][1] == 0 and sum(not stride for _, stride in leaf.output.dims) == 1
        if not order:
            raise CannotLower("argmax of an array whose last axis isn't the innermost")
        return [Compute(leaf.output, leaf.inputs, operation, "copyto", (), dtypes, operation.name, 0)]

    _argmin = _argmax

    def _take(self, operation: Operation) -> list[Leaf]:
        array, indices, *_ = operation.arguments
        axis = _plain(operation.keywords.get("axis", (*operation.arguments, None, None)[2]))
        if not isinstance(array, View) or not isinstance(indices, View):
            raise CannotLower("take of what isn't traced")
        if axis is None:
            array = flattened(array)
            axis = 0
        return [self._gather(operation, array, indices, axis)]

    def _getitem(self, operation: Operation) -> list[Leaf]:
        array, key = operation.arguments
        index = _one_index(key)
        (array,), _ = self._operands([array])
        return [self._gather(operation, array, index, 0)]

    def _gather(self, operation: Operation, array: View, indices: View, axis: int) -> Leaf:
        """output[before, indices, after] = array[before, at the index, after]."""
        output, axis = operation.output, axis % len(array.shape)
        num_indices = len(indices.shape)
        after = len(array.shape) - axis - 1
        array_strides = (*array.strides[:axis], *(0,) * num_indices, *array.strides[axis + 1 :])
        index_strides = (*(0,) * axis, *indices.strides, *(0,) * after)
        dims = canonical(output.shape, [output.strides, array_strides, index_strides])
        index = Access(indices.storage, indices.offset, dims[2], indices.dtype)
        span = ((array.shape[axis], array.strides[axis]),)
        read = Access(
            array.storage, array.offset, dims[1], array.dtype, span, (index, array.strides[axis], array.shape[axis])
        )
        written = Access(output.storage, output.offset, dims[0], output.dtype)
        return Compute(written, (read,), operation, "copyto", (), (output.dtype,) * 2)

    def _put(self, operation: Operation) -> list[Leaf]:
        array, indices, values, *_ = operation.arguments
        if not isinstance(indices, View):
            raise CannotLower("put at what isn't traced")
        return [self._scatter(operation, flattened(array), indices, values, "")]

    def _setitem(self, operation: Operation) -> list[Leaf]:
        array, key, values = operation.arguments
        return [self._scatter(operation, array, _one_index(key), values, "")]

    def _add_at(self, operation: Operation) -> list[Leaf]:
        array, key, values = operation.arguments
        return [self._scatter(operation, array, _one_index(key), values, "add")]

    def _one_hot_product(self, operation: Operation) -> list[Leaf]:
        """The rows of values added where their indices say, to zeros."""
        indices, values, _ = operation.arguments
        output, zero = operation.output, (0, 0)
        dtypes = (output.dtype, output.dtype)
        zeros = self._map(operation, "copyto", [], [zero], dtypes, output)
        return [zeros, self._scatter(operation, output, indices, values, "add")]

    def _scatter(self, operation: Operation, array: View, indices: View, values: Any, reduction: str) -> Leaf:
        """array[index, after] = values[indices, after], or += them, one after the other."""
        views, literals = self._operands([values])
        shape = (*indices.shape, *array.shape[1:])
        after = len(array.shape) - 1
        rows = [broadcast(view, shape) for view in views]
        array_strides = (*(0,) * len(indices.shape), *array.strides[1:])
        index_strides = (*indices.strides, *(0,) * after)
        order = tuple(size_of(shape[i + 1 :]) for i in range(len(shape)))  # the order of the indices counts
        dims = canonical(shape, [order, array_strides, index_strides, *rows])
        index = Access(indices.storage, indices.offset, dims[2], indices.dtype)
        span = ((array.shape[0], array.strides[0]),)
        written = Access(
            array.storage, array.offset, dims[1], array.dtype, span, (index, array.strides[0], array.shape[0])
        )
        accesses = [
            Access(view.storage, view.offset, its, view.dtype) for view, its in zip(views, dims[3:], strict=True)
        ]
        if reduction:
            literals = [(position + 1, value) for position, value in literals]
            dtypes = (array.dtype,) * 3
            return Compute(written, (written, *accesses), operation, reduction, tuple(literals), dtypes)
        return Compute(written, tuple(accesses), operation, "copyto", tuple(literals), (array.dtype,) * 2)

    def _product(self, operation: Operation) -> list[Leaf]:
        views, literals = self._operands(operation.arguments[:2])
        if literals or operation.keywords.keys() - {"casting", "subok", "dtype", "order", "axis"}:
            raise CannotLower(f"{operation.name} of a number")
        a, b = views
        if not a.shape or not b.shape:
            raise CannotLower(f"{operation.name} of a number")
        if operation.output.dtype.kind != "f" or a.dtype != operation.output.dtype or b.dtype != a.dtype:
            raise CannotLower(f"{operation.name} of {a.dtype} and {b.dtype}")
        is_sum = operation.name == "vecdot" or (len(a.shape) == 1 and len(b.shape) == 1)
        if is_sum:
            shape = np.broadcast_shapes(a.shape, b.shape)
            wide = [view._replace(shape=shape, strides=broadcast(view, shape)) for view in (a, b)]
            return [self._reduced(operation, "multiply", wide, (len(shape) - 1,), "add", keepdims=False)]
        if len(a.shape) == 1 and a.storage in self.constants and len(b.shape) == 2 and np.all(
            self.constants[a.storage] == 1
        ):
            return [self._reduced(operation, "copyto", [b], (0,), "add", keepdims=False)]
        if operation.name != "matmul" and (operation.name != "dot" or max(len(a.shape), len(b.shape)) > 2):
            raise CannotLower(f"{operation.name} of many dimensions")
        return matrix_product(self, operation, a, b)


#: What a reduction starts with.
REDUCTIONS: dict[str, Any] = {
    "add": lambda dtype: dtype.type(0),
    "multiply": lambda dtype: dtype.type(1),
    "maximum": lambda dtype: dtype.type(-np.inf) if dtype.kind == "f" else np.iinfo(dtype).min,
    "minimum": lambda dtype: dtype.type(np.inf) if dtype.kind == "f" else np.iinfo(dtype).max,
    "argmax": lambda dtype: 0,  # noqa: ARG005 - an index
}


def _plain(value: Any) -> Any:
    """An argument as a value."""
    if isinstance(value, Constant):
        return value.value
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value


def _one_index(key: Any) -> View:
    """The array of integers that a key is. Raises CannotLower where it has other parts."""
    if isinstance(key, tuple) and len(key) == 1:
        key = key[0]
    if not isinstance(key, View) or key.dtype.kind != "i":
        raise CannotLower("an index of several parts")
    return key


def _dtypes(operation: Operation, views: list[View], literals: dict[int, Any]) -> tuple[np.dtype[Any], ...]:
    """What NumPy casts the operands to, and the result's."""
    rest = iter(views)
    kinds = [
        (type(literals[i]) if type(literals[i]) in (int, float) else np.result_type(literals[i]))
        if i in literals
        else next(rest).dtype
        for i in range(len(operation.arguments))
    ]
    ufunc = getattr(operation.function, "__self__", operation.function)
    if not isinstance(ufunc, np.ufunc):
        raise CannotLower(f"{operation.name} has no compiled form")
    casting = _plain(operation.keywords.get("casting", "same_kind"))
    try:
        resolved = ufunc.resolve_dtypes((*kinds, operation.output.dtype), casting=casting)
    except TypeError:
        raise CannotLower(f"{operation.name} of {kinds}") from None
    if any(dtype.kind not in "fiub" or dtype.itemsize > 8 or dtype == np.float16 for dtype in resolved):
        raise CannotLower(f"{operation.name} of {kinds}")
    return tuple(resolved)
