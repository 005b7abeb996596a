"""NumPy's functions of numbers, as Python expressions that numba compiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

BOOL = np.dtype(np.bool_)


class CannotLower(Exception):  # noqa: N818 - says what stays with NumPy, not that something broke
    """An operation has no compiled form. The text says why."""


#: The expressions by NumPy's names. `{f}` is the code of the dtype: there is a function for each dtype.
FUNCTIONS = {
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "divide": "{0} / {1}",
    "negative": "-{0}",
    "positive": "{0}",
    "square": "{0} * {0}",
    "reciprocal": "{one} / {0}",
    "copyto": "{0}",
    "absolute": "absolute({0})",
    "fabs": "absolute({0})",
    "sqrt": "square_root({0})",
    "maximum": "maximum({0}, {1})",
    "minimum": "minimum({0}, {1})",
    "where": "where({0}, {1}, {2})",
    "greater": "{0} > {1}",
    "greater_equal": "{0} >= {1}",
    "less": "{0} < {1}",
    "less_equal": "{0} <= {1}",
    "equal": "{0} == {1}",
    "not_equal": "{0} != {1}",
    "logical_and": "{0} & {1}",
    "logical_or": "{0} | {1}",
    "logical_not": "not {0}",
    "bitwise_and": "{0} & {1}",
    "bitwise_or": "{0} | {1}",
    "bitwise_xor": "{0} ^ {1}",
    "invert": "~{0}",
    "exp": "exp_{f}({0})",
    "expm1": "expm1_{f}({0})",
    "log": "log_{f}({0})",
    "log1p": "log1p_{f}({0})",
    "tanh": "tanh_{f}({0})",
    "expit": "expit_{f}({0})",
    "ndtr": "ndtr_{f}({0})",
    "erf": "erf_{f}({0})",
    "erfc": "erfc_{f}({0})",
    "sin": "sin_{f}({0})",
    "cos": "cos_{f}({0})",
    "floor": "floor({0})",
    "ceil": "ceil({0})",
    "rint": "rint({0})",
    "sign": "sign_{f}({0})",
    "power": "power_{f}({0}, {1})",
    "clip": "minimum(maximum({0}, {1}), {2})",
}
#: Functions that have no version for integers, or mean something else there.
OF_FLOATS = frozenset(
    {"divide", "reciprocal", "absolute", "fabs", "sqrt", "exp", "expm1", "log", "log1p", "tanh"}
    | {"expit", "ndtr", "erf", "erfc", "sin", "cos", "floor", "ceil", "rint", "sign", "power", "clip"}
)
#: The expressions for bools.
OF_BOOLS = {
    "add": "{0} | {1}",
    "multiply": "{0} & {1}",
    "maximum": "{0} | {1}",
    "minimum": "{0} & {1}",
    "invert": "not {0}",
}
#: How a reduction combines its value so far with the next one.
COMBINED = {
    "add": "add_in_any_order({0}, {1})",
    "multiply": "{0} * {1}",
    "maximum": "largest({0}, {1})",
    "minimum": "smallest({0}, {1})",
}


def code(dtype: np.dtype[Any]) -> str:
    """The code of a dtype: f4, i8, b1."""
    return f"{dtype.kind}{dtype.itemsize}"


def literal(value: Any, dtype: np.dtype[Any]) -> str:
    """A number as it stands in the source."""
    number = dtype.type(value).item()
    if dtype == BOOL or dtype.kind in "iu":
        return str(number) if dtype == BOOL or dtype == np.int64 else f"{code(dtype)}({number})"
    if math.isnan(number):
        return f"{code(dtype)}(NAN)"
    if math.isinf(number):
        return f"{code(dtype)}({'' if number > 0 else '-'}INFINITY)"
    return f"{code(dtype)}({number!r})"


def is_compiled(dtype: np.dtype[Any]) -> bool:
    """Whether compiled code can have numbers of this dtype: bools, integers, float32 and float64."""
    return dtype.kind in "iub" or dtype in (np.float32, np.float64)


def cast(text: str, source: np.dtype[Any], target: np.dtype[Any]) -> str:
    """The expression of a number, cast from one dtype to another."""
    if source == target:
        return text
    if target == BOOL:
        return f"({text} != 0)"
    return f"{code(target)}({text})"


def check_function(function: str, dtypes: Sequence[np.dtype[Any]]) -> None:
    """Raise CannotLower if a function has no compiled form for these dtypes."""
    kinds = {dtype.kind for dtype in dtypes[:-1]}
    if function in OF_FLOATS and kinds - {"f"}:
        raise CannotLower(f"{function} of {', '.join(map(str, dtypes[:-1]))}")
    if function in ("subtract", "negative", "square") and "b" in kinds:
        raise CannotLower(f"{function} of bool")
    if function.startswith("logical") and kinds != {"b"}:
        raise CannotLower(f"{function} of {', '.join(map(str, dtypes[:-1]))}")


def expression(function: str, operands: Sequence[str], dtypes: Sequence[np.dtype[Any]]) -> str:
    """The expression of a function, whose operands are already cast to these dtypes. The last dtype is the result's."""
    templates = FUNCTIONS | OF_BOOLS if dtypes[0] == BOOL and dtypes[-1] == BOOL else FUNCTIONS
    text = templates[function].format(*operands, f=code(dtypes[0]), one=literal(1, dtypes[-1]))
    if dtypes[-1].kind in "iu":  # numba computes in 64 bits; NumPy's smaller integers wrap around
        return f"{code(dtypes[-1])}({text})"
    return text
