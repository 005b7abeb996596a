"""More shapes and options of operations, for exercises: what is right on one shape alone must not pass for right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nn_manual import ops
from nn_manual.check.catalogue.operation_cases import CASES, OperationCase

ELEMENTWISE = (ops.square, ops.reciprocal, ops.sqrt, ops.exp, ops.log, ops.tanh, ops.relu, ops.abs)
ON_POSITIVE = (ops.reciprocal, ops.sqrt, ops.log, ops.divide, ops.power)
OF_TWO = (ops.add, ops.subtract, ops.multiply, ops.divide, ops.power, ops.maximum, ops.minimum)
#: Neither operand is broadcast, the second one is, the first one, both are; one is along two axes at once.
PAIRS = (
    *(((2, 3), (2, 3)), ((2, 3), (3,)), ((3, 1), (3, 2)), ((3,), (2, 3)), ((2, 1), (1, 3))),
    *(((2, 3, 4), (3, 1)), ((3, 1), (2, 3, 4))),
)
#: The options of sums over some axes of an array of three.
REDUCED: tuple[dict[str, Any], ...] = (
    {},
    {"axis": 1},
    {"axis": -1},
    {"axis": (0, 2)},
    {"keepdims": True},
    {"axis": 0, "keepdims": True},
    {"axis": (1, 2), "keepdims": True},
)
OTHERS = (
    # Tied operands lie at both bounds, at one, and at none.
    OperationCase(ops.clip, ((4,),), {"min": -1.0, "max": 1.0}),
    OperationCase(ops.clip, ((2, 3, 2),), {"min": 0.0}),
    OperationCase(ops.clip, ((1, 1),), {"max": 0.25}),
    OperationCase(ops.clip, ((2, 3),)),
    # Square ones: there a forgotten transposition gives numbers, and no error.
    OperationCase(ops.matmul, ((3, 3), (3, 3))),
    # A stack on either side, on both, and with a vector.
    OperationCase(ops.matmul, ((2, 3), (5, 3, 4))),
    OperationCase(ops.matmul, ((5, 2, 3), (5, 3, 4))),
    OperationCase(ops.matmul, ((2, 1, 2, 3), (5, 3, 4))),
    OperationCase(ops.matmul, ((5, 2, 3), (3,))),
    OperationCase(ops.matmul, ((3,), (5, 3, 4))),
    OperationCase(ops.outer, ((3,), (3,))),
    OperationCase(ops.trace, ((2, 4),)),
    OperationCase(ops.trace, ((4, 2),)),
    OperationCase(ops.diagonal, ((3, 3),)),
    OperationCase(ops.diagonal, ((3, 4),), {"offset": -1}),
    OperationCase(ops.diagonal, ((2, 3, 4),), {"offset": 1, "axis1": 1, "axis2": 2}),
    OperationCase(ops.diagonal, ((3, 2, 4),), {"offset": 1, "axis1": -1, "axis2": 0}),
    OperationCase(ops.reshape, ((2, 3, 2),), {"shape": (12,)}),
    OperationCase(ops.reshape, ((2, 3, 2),), {"shape": (-1, 2)}),
    OperationCase(ops.transpose, ((2, 3),)),
    OperationCase(ops.transpose, ((2, 3, 4),), {"axes": (1, 2, 0)}),
    OperationCase(ops.transpose, ((2, 3, 4),), {"axes": (-2, 0, -1)}),
    OperationCase(ops.transpose, ((2, 3, 4, 2),), {"axes": (1, 3, 0, 2)}),
    OperationCase(ops.broadcast_to, ((3,),), {"shape": (2, 3)}),
    OperationCase(ops.broadcast_to, ((2, 3),), {"shape": (2, 3)}),
    OperationCase(ops.broadcast_to, ((2, 1, 3),), {"shape": (2, 4, 3)}),
    OperationCase(ops.concatenate, ((2, 3), (4, 3))),
    # The last two differ: where the third one starts isn't twice the size of any.
    OperationCase(ops.concatenate, ((2, 3), (1, 3), (4, 3))),
    OperationCase(ops.concatenate, ((2, 2, 3), (2, 3, 3), (2, 1, 3)), {"axis": 1}),
    OperationCase(ops.concatenate, ((2, 3), (2, 1), (2, 2)), {"axis": -1}),
    OperationCase(ops.concatenate, ((4, 1), (4, 2)), {"axis": 1}),
    OperationCase(ops.index, ((3, 4),), {"key": 1}),
    OperationCase(ops.index, ((3, 4),), {"key": (slice(1, None), 2)}),
    OperationCase(ops.index, ((3, 4),), {"key": (None, Ellipsis, -1)}),
    OperationCase(ops.index, ((3, 4),), {"key": ([0, 2, 0, -1], [1, 3, 1, 3])}),
    OperationCase(ops.index, ((3, 4),), {"key": slice(None, None, 2)}),
    # Among 20 tied numbers the largest one is tied.
    *(OperationCase(operation, ((4, 5),), options) for operation in (ops.max, ops.min) for options in REDUCED[::4]),
    *(
        OperationCase(operation, ((2, 3, 4),), {"axis": axis, "keepdims": True})
        for operation in (ops.max, ops.min)
        for axis in (0, -1)
    ),
    *(OperationCase(operation, ((2, 3, 4),), {"axis": axis}) for operation in (ops.max, ops.min) for axis in (0, 1, 2)),
    *(OperationCase(ops.softmax, shape, {"axis": axis}) for shape in (((3, 3),), ((2, 3, 4),)) for axis in (0, -1)),
    OperationCase(ops.softmax, ((2, 3, 4),), {"axis": 1}),
    OperationCase(ops.softmax, ((4,),)),
)


def settings_of(operation: ops.Operation) -> list[OperationCase]:
    """The shapes and options of an exercise: the catalogue's, and more. Of a product, square matrices are the first,
    and those with vectors the last, since the textbook's form is that of matrices.
    """
    own = [case for case in CASES if case.operation is operation]
    for case in _more(operation):
        if all((case.shapes, case.options) != (other.shapes, other.options) for other in own):
            own.append(case)
    return sorted(own, key=_unlike_textbook) if operation is ops.matmul else own


def _unlike_textbook(product: OperationCase) -> tuple[bool, bool]:
    a, b = product.shapes
    return min(len(a), len(b)) < 2, a != b


def _more(operation: ops.Operation) -> Iterator[OperationCase]:
    positive = operation in ON_POSITIVE
    if operation in ELEMENTWISE:
        yield from (OperationCase(operation, (shape,), {}, positive) for shape in ((4,), (1, 1), (2, 3, 4)))
    if operation in OF_TWO:
        yield from (OperationCase(operation, shapes, {}, positive) for shapes in PAIRS)
    if operation in (ops.sum, ops.mean, ops.logsumexp):
        yield from (OperationCase(operation, ((2, 3, 4),), options) for options in REDUCED)
    yield from (case for case in OTHERS if case.operation is operation)
