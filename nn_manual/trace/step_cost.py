"""What a step costs, computed from its trace: its peak memory, and its multiplications."""

from __future__ import annotations

import math

from nn_manual.trace.trace import FixedValue, Trace, TracedOperation, View, views

#: Operations whose results are sums of products. Each sum has as many terms as the first factor has columns.
PRODUCTS = frozenset(["matmul", "dot", "inner", "vecdot", "vdot", "matvec", "vecmat"])


def peak_memory(trace: Trace) -> int:
    """The bytes that a step needs at its peak, besides the arrays that it is given. Each array that the step makes
    counts from the first operation that uses it to the last. The random numbers that are drawn for the step count all
    the time.
    """
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for index, operation in enumerate(trace.operations):
        for view in views((operation.arguments, operation.keywords, operation.output)):
            first.setdefault(view.storage, index)
            last[view.storage] = index
    drawn = sum(storage.num_bytes for storage in trace.storages if ".noise." in storage.name)
    made = [index for index in first if not trace.storages[index].name]
    changes = [(first[index], trace.storages[index].num_bytes) for index in made]
    changes += [(last[index] + 1, -trace.storages[index].num_bytes) for index in made]
    alive = peak = 0
    for _, num_bytes in sorted(changes):  # at the same index the sizes that are freed come first
        alive += num_bytes
        peak = max(peak, alive)
    return drawn + peak


def num_multiplications(trace: Trace) -> int:
    """The number of multiplications in a step's matrix products, einsum and tensordot included, forward and backward.
    Elementwise products don't count.
    """
    return sum(map(_of_operation, trace.operations))


def _of_operation(operation: TracedOperation) -> int:
    shapes = [_shape(factor) for factor in operation.arguments]
    size = math.prod(operation.output.shape)
    if operation.name in PRODUCTS:
        return size * (shapes[0][-1] if shapes[0] and shapes[1] else 1)
    if operation.name == "tensordot":  # (m, k) and (k, n) give (m, n), for any axes
        return math.isqrt(math.prod(shapes[0]) * math.prod(shapes[1]) * size)
    if operation.name == "outer":
        return size
    if operation.name == "einsum":
        return _of_einsum(operation)
    return 0


def _of_einsum(operation: TracedOperation) -> int:
    """(number of factors - 1) multiplications for each combination of values of all letters."""
    subscripts, *factors = operation.arguments
    if not isinstance(subscripts, FixedValue) or not isinstance(subscripts.value, str):
        return 0  # the form with lists of axes is rare
    sizes: dict[str, int] = {}
    for letters, factor in zip(subscripts.value.replace(" ", "").split("->")[0].split(","), factors, strict=True):
        shape = _shape(factor)
        before, dots, after = letters.partition("...")
        sizes |= dict(zip(before, shape, strict=False))
        sizes |= dict(zip(reversed(after), reversed(shape), strict=False))
        if dots:
            around = math.prod(shape[len(before) : len(shape) - len(after)])
            sizes["..."] = max(sizes.get("...", 1), around)
    return (len(factors) - 1) * math.prod(sizes.values())


def _shape(factor: object) -> tuple[int, ...]:
    if isinstance(factor, View):
        return factor.shape
    return tuple(getattr(factor.value, "shape", ())) if isinstance(factor, FixedValue) else ()
