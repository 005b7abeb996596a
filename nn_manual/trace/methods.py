"""Methods that an array of a trace replaces: NumPy's compute, or look at a value, without asking the array's class."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from nn_manual.trace.operation_log import OperationLog

Method = Callable[..., Any]

#: Methods with a function of the same name. The function asks the class, so the method calls it.
FUNCTIONS = (
    *("argmax", "argmin", "argpartition", "argsort", "choose", "compress", "cumprod", "cumsum", "dot", "nonzero"),
    *("put", "repeat", "round", "searchsorted", "take", "trace"),
)

REFUSED = ("byteswap", "dump", "dumps", "getfield", "partition", "resize", "setfield", "tobytes", "tofile")

#: Methods that turn an array into a Python value. What the program does next may depend on it.
LOOKING = ("__bool__", "__complex__", "__contains__", "__float__", "__hash__", "__index__", "__int__", "item", "tolist")
OF_VALUE = "the value of an array decides what comes next: np.where(condition, one, other) takes both ways"

OPERATORS: tuple[Method, ...] = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow),
    *(operator.matmul, operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift),
)


def _as_function(name: str) -> Method:
    def method(self: Any, *arguments: Any, **keywords: Any) -> Any:
        return getattr(np, name)(self, *arguments, **keywords)

    return method


def _refusing(what: str) -> Method:
    def refused(self: Any, *arguments: Any, **keywords: Any) -> Any:  # noqa: ARG001 - whatever its arguments
        raise OperationLog.current().refuse(what)

    return refused


def _in_place(name: str, compute: Method) -> Method:
    def method(self: Any, other: Any) -> Any:
        return compute(self, other) if self.is_number else getattr(np.ndarray, name)(self, other)

    return method


METHODS: dict[str, Method] = {
    **{name: _as_function(name) for name in FUNCTIONS},
    **{name: _refusing(f"ndarray.{name} isn't traced") for name in REFUSED},
    **{name: _refusing(OF_VALUE) for name in LOOKING},
    **{
        name: _in_place(name, compute)
        for compute in OPERATORS
        for name in [f"__i{compute.__name__.rstrip('_')}__"]
    },
}
