"""What every lowering of an operation needs: its operands, new arrays, and elementwise functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nn_manual.arrays import Shape, size_of
from nn_manual.compile.dims import broadcast, canonical, check_overlap
from nn_manual.compile.nests import Access, Compute, Leaf
from nn_manual.compile.scalar import CannotLower, check_function
from nn_manual.trace.trace import FixedValue, Storage, Trace, TracedOperation, View, views


class Operands:
    """The arrays of a trace's operations. `storages` has the storages of the trace, then those that lowering adds."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.storages = list(trace.storages)
        #: Arrays that are fixed values, by their storages.
        self.constants: dict[int, Any] = {}
        self._of_constant: dict[tuple[Any, ...], int] = {}
        #: (storage, dtype) of all memory that is read or written as floats.
        self.floats = {
            (view.storage, view.dtype)
            for operation in trace.operations
            for view in views((operation.output, operation.arguments))
            if view.dtype.kind == "f"
        }

    def storage_of(self, value: Any) -> View:
        """The view of an array that is a fixed value; equal arrays share a storage."""
        array = np.ascontiguousarray(value)
        key = array.dtype, array.shape, array.tobytes()
        if key not in self._of_constant:
            self._of_constant[key] = len(self.storages)
            self.constants[len(self.storages)] = array
            self.storages.append(Storage("", array.nbytes))
        return View(self._of_constant[key], 0, array.shape, array.strides, array.dtype)

    def temporary(self, shape: Shape, dtype: np.dtype[Any]) -> View:
        """A view of a new array."""
        array = np.empty(0, dtype)
        size = size_of(shape) * dtype.itemsize
        self.storages.append(Storage("", size))
        strides = tuple(size_of(shape[i + 1 :]) * array.itemsize for i in range(len(shape)))
        return View(len(self.storages) - 1, 0, shape, strides, dtype)

    def copied(self, operation: TracedOperation, source: View, target: View) -> Leaf:
        """A leaf that copies, as part of an operation."""
        return self.map(operation, "copyto", [source], [], (target.dtype, target.dtype), target)

    def operands(self, arguments: Sequence[Any]) -> tuple[list[View], list[tuple[int, Any]]]:
        """The arrays among the arguments, and the numbers with their positions."""
        views, literals = [], []
        for position, argument in enumerate(arguments):
            if isinstance(argument, View):
                views.append(argument)
            elif isinstance(argument, FixedValue) and isinstance(argument.value, np.ndarray) and argument.value.ndim:
                views.append(self.storage_of(argument.value))
            elif isinstance(argument, FixedValue) and isinstance(argument.value, int | float | np.generic | np.ndarray):
                value = argument.value
                literals.append((position, value[()] if isinstance(value, np.ndarray) else value))
            else:
                raise CannotLower(f"{argument} is no number")
        return views, literals

    def map(
        self, operation: TracedOperation, function: str, views: list[View], literals: list[tuple[int, Any]],
        dtypes: tuple[np.dtype[Any], ...], output: View,
    ) -> Leaf:
        """A leaf that computes a function element by element, of broadcast views and of literals with their positions.
        `dtypes` are the dtypes of the operands, then of the result.
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
