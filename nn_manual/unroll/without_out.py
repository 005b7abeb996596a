"""Whether NumPy, without `out`, gives an array of the same form."""

from __future__ import annotations

from typing import Any

import numpy as np

from nn_manual.arrays import size_of
from nn_manual.trace.trace import FixedValue, TracedOperation, View
from nn_manual.unroll.views import array_at, is_same


def needs_no_out(operation: TracedOperation) -> bool:
    """Whether the operation's function, without `out`, makes an array of the output's form."""
    output = operation.output
    if operation.function is np.copyto:
        return output.strides == np.empty(output.shape, output.dtype).strides
    try:
        with np.errstate(all="ignore"):
            arguments = [_like(argument) for argument in operation.arguments]
            keywords = {name: _like(argument) for name, argument in operation.keywords.items()}
            found = np.asarray(operation.function(*arguments, **keywords))
    except (TypeError, ValueError, IndexError):
        return False
    same = is_same(View(0, 0, found.shape, found.strides, found.dtype), output._replace(storage=0, offset=0))
    return same and found.size == size_of(output.shape)


def _like(argument: Any) -> Any:
    """An argument of the same form: zeros, with ones on the diagonal of float matrices, so that they have inverses."""
    if isinstance(argument, View):
        array = array_at(argument)
        array[...] = 0
        if array.ndim > 1 and array.dtype.kind == "f":
            diagonal = range(min(array.shape[-2:]))
            array[..., diagonal, diagonal] = 1
        return array
    if isinstance(argument, FixedValue):
        return argument.value
    if type(argument) in (tuple, list):
        return type(argument)(map(_like, argument))
    return argument
