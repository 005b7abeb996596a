"""What each operation of `nn_manual.ops` is checked on: shapes of its operands, and options."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any

from nn_manual import ops
from nn_manual.arrays import Shape


@dataclass(frozen=True)
class OperationCase:
    """An operation, the shapes of its operands, and its options.

    `positive` draws the operands from [0.5, 2], where roots, logarithms and powers are defined and no divisor is small;
    otherwise they are normal, so that no two are tied and none lies at a kink, where a difference is no derivative.
    """

    operation: ops.Operation
    shapes: tuple[Shape, ...]
    options: dict[str, Any] = field(default_factory=dict)
    positive: bool = False

    @property
    def operand_names(self) -> list[str]:
        """The parameters' names, as in the docstrings; inputs[0], inputs[1] for an operation that takes any number."""
        first, *others = inspect.signature(self.operation).parameters.values()
        if first.kind is inspect.Parameter.VAR_POSITIONAL:
            return [f"{first.name}[{position}]" for position in range(len(self.shapes))]
        return [parameter.name for parameter in (first, *others)][: len(self.shapes)]


#: From easy to tricky, at least one for every operation: a test counts them.
CASES = (
    OperationCase(ops.square, ((2, 3),)),
    OperationCase(ops.reciprocal, ((2, 3),), positive=True),
    OperationCase(ops.sqrt, ((2, 3),), positive=True),
    OperationCase(ops.exp, ((2, 3),)),
    OperationCase(ops.log, ((2, 3),), positive=True),
    OperationCase(ops.tanh, ((2, 3),)),
    OperationCase(ops.relu, ((2, 3),)),
    OperationCase(ops.abs, ((2, 3),)),
    OperationCase(ops.clip, ((2, 3),), {"min": -0.5, "max": 0.5}),
    OperationCase(ops.add, ((2, 3), (3,))),
    OperationCase(ops.subtract, ((2, 1), (1, 3))),
    OperationCase(ops.multiply, ((2, 3), (2, 1))),
    OperationCase(ops.divide, ((3,), (2, 3)), positive=True),
    OperationCase(ops.power, ((2, 3), (3,)), positive=True),
    OperationCase(ops.maximum, ((4, 3), (3,))),
    OperationCase(ops.minimum, ((4, 1), (4, 3))),
    OperationCase(ops.outer, ((2,), (3,))),
    OperationCase(ops.matmul, ((3,), (3,))),
    OperationCase(ops.matmul, ((2, 3), (3,))),
    OperationCase(ops.matmul, ((2,), (2, 3))),
    OperationCase(ops.matmul, ((2, 3), (3, 4))),
    OperationCase(ops.matmul, ((5, 2, 3), (3, 4))),
    OperationCase(ops.trace, ((3, 3),)),
    OperationCase(ops.diagonal, ((3, 4),), {"offset": 1}),
    OperationCase(ops.reshape, ((2, 3),), {"shape": (3, 2)}),
    OperationCase(ops.transpose, ((2, 3, 4),), {"axes": (2, 0, 1)}),
    OperationCase(ops.broadcast_to, ((3, 1),), {"shape": (2, 3, 4)}),
    OperationCase(ops.concatenate, ((2, 3), (2, 1)), {"axis": 1}),
    OperationCase(ops.index, ((3, 4),), {"key": (slice(None), [0, 2, 2])}),
    OperationCase(ops.sum, ((2, 3, 4),), {"axis": (0, 2)}),
    OperationCase(ops.mean, ((2, 3, 4),), {"axis": -1, "keepdims": True}),
    OperationCase(ops.max, ((2, 3),)),
    OperationCase(ops.max, ((2, 3),), {"axis": 1}),
    OperationCase(ops.min, ((2, 3),)),
    OperationCase(ops.min, ((2, 3),), {"axis": 0}),
    OperationCase(ops.logsumexp, ((2, 3),), {"axis": 1}),
    OperationCase(ops.softmax, ((2, 3),), {"axis": 1}),
)
