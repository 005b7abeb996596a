"""An operation of NumPy as a nest of loops around what it does with a number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nn_manual.arrays import Shape, size_of
from nn_manual.compile import indexing
from nn_manual.compile.dims import broadcast, canonical, check_overlap, plain, whole
from nn_manual.compile.nests import Access, Compute, External, Leaf
from nn_manual.compile.products import product
from nn_manual.compile.reductions import argmax, reduction
from nn_manual.compile.scalar import BOOL, FUNCTIONS, CannotLower, check_function, is_compiled
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
            for view in leaves((operation.output, operation.arguments, operation.keywords)):
                if isinstance(view, View) and not is_compiled(view.dtype):
                    raise CannotLower(f"{name} of {view.dtype}")
            if name in OTHERS:
                return OTHERS[name](self, operation)
            if name.endswith(".reduce"):
                return [reduction(self, operation)]
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
        return self.map(operation, "copyto", [source], [], (target.dtype, target.dtype), target)

    def _external(self, operation: Operation, reason: str) -> Leaf:
        views = [leaf for leaf in leaves((operation.arguments, operation.keywords)) if isinstance(leaf, View)]
        return External(whole(operation.output), tuple(map(whole, views)), operation, reason=reason)

    def operands(self, arguments: Sequence[Any]) -> tuple[list[View], list[tuple[int, Any]]]:
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
        views, literals = self.operands(arguments)
        if operation.keywords.keys() - {"casting", "subok", "dtype", "order"}:
            raise CannotLower(f"{operation.name} has {', '.join(operation.keywords)}")
        if operation.name == "multiply" and len(views) == 2 and not literals:
            masked = self._masked(operation, views)
            if masked is not None:
                return masked
        dtypes = _dtypes(operation, views, dict(literals))
        return self.map(operation, operation.name, views, literals, dtypes, output)

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
        return self.map(
            operation, "where", operands, [(2, floating.type(0))], dtypes, output._replace(dtype=floating)
        )

    def map(
        self, operation: Operation, function: str, views: list[View], literals: list[tuple[int, Any]],
        dtypes: tuple[np.dtype[Any], ...], output: View,
    ) -> Leaf:
        """A function of each number by itself: of views, broadcast, and literals with their positions. `dtypes` are
        those of its operands and of the result.
        """
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

    def copyto(self, operation: Operation) -> list[Leaf]:
        """A copy, of another dtype or where a mask says so, too."""
        if operation.is_in_place:  # where a mask says so
            target, *others = operation.arguments
            mask = operation.keywords.get("where")
            if not isinstance(mask, View) or mask.dtype != BOOL:
                raise CannotLower("copyto has a mask that isn't traced")
            views, literals = self.operands([mask, *others, target])
            dtypes = (BOOL, target.dtype, target.dtype, target.dtype)
            return [self.map(operation, "where", views, literals, dtypes, target)]
        views, literals = self.operands(operation.arguments)
        source = views[0].dtype if views else np.result_type(literals[0][1])
        if source.kind == "f" and operation.output.dtype.kind not in "f":
            raise CannotLower("a float becomes an integer")
        own = (operation.output.dtype, operation.output.dtype)
        return [self.map(operation, "copyto", views, literals, own, operation.output)]

    def where(self, operation: Operation) -> list[Leaf]:
        """One of two numbers."""
        views, literals = self.operands(operation.arguments)
        if len(operation.arguments) != 3 or views[0].dtype != BOOL:
            raise CannotLower("where has no bool")
        dtype = operation.output.dtype
        return [self.map(operation, "where", views, literals, (BOOL, dtype, dtype, dtype), operation.output)]

    def concatenate(self, operation: Operation) -> list[Leaf]:
        """A copy of each part."""
        parts, *rest = operation.arguments
        axis = operation.keywords.get("axis", Constant(rest[0].value if rest else 0)).value
        output, leaves, start = operation.output, [], 0
        if axis is None:
            raise CannotLower("concatenate flattens")
        axis %= len(output.shape)
        for part in parts:
            views, _ = self.operands([part])
            shape = views[0].shape
            piece = output._replace(
                offset=output.offset + start * output.strides[axis], shape=shape
            )
            leaves.append(self.map(operation, "copyto", views, [], (output.dtype, output.dtype), piece))
            start += shape[axis]
        return leaves

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
    casting = plain(operation.keywords.get("casting", "same_kind"))
    try:
        resolved = ufunc.resolve_dtypes((*kinds, operation.output.dtype), casting=casting)
    except TypeError:
        raise CannotLower(f"{operation.name} of {kinds}") from None
    if not all(map(is_compiled, resolved)):
        raise CannotLower(f"{operation.name} of {kinds}")
    return tuple(resolved)


#: What lowers an operation, by its name, but for reductions and for what is computed of each number by itself.
OTHERS: dict[str, Callable[[Lowering, Operation], list[Leaf]]] = {
    "copyto": Lowering.copyto,
    "where": Lowering.where,
    "concatenate": Lowering.concatenate,
    "take": indexing.take,
    "getitem": indexing.getitem,
    "put": indexing.put,
    "setitem": indexing.setitem,
    "add.at": indexing.add_at,
    "one_hot_product": indexing.one_hot_product,
    "argmax": argmax,
    "argmin": argmax,
    **dict.fromkeys(("matmul", "dot", "vecdot", "vdot", "inner"), product),
}
