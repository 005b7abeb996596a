"""An operation as an expression: `input @ weight.T`, `exponential.sum(axis=1)`, `np.exp(shifted)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from nn_manual.trace.trace import CannotTrace, FixedValue, TracedOperation, View
from nn_manual.unroll.matrices import call_that_makes
from nn_manual.unroll.syntax import ATOM, OPERATORS, POWER, SIGN, SIGNS, Expression, Parts, binary, call, of

#: A function that gives the expression of an argument. It takes the argument and its index among the operation's
#: arguments, which is None inside a list and for a keyword.
Says: TypeAlias = Callable[[Any, int | None], Expression]

#: The methods that reduce an array, by the names of the ufuncs.
REDUCTIONS = {
    "add.reduce": "sum",
    "multiply.reduce": "prod",
    "maximum.reduce": "max",
    "minimum.reduce": "min",
    "logical_or.reduce": "any",
    "logical_and.reduce": "all",
}

#: Functions that are written as methods of their first argument, with the keywords of the other arguments.
METHODS = {"take": ("", "axis"), "argmax": ("axis",), "argmin": ("axis",)}

#: The sources, in NumPy alone, of functions that are recorded as one operation and aren't NumPy's. The bits are the
#: same.
IN_NUMPY = {
    "one_hot_product": '''\
def one_hot_product(indices, values, num_rows):
    """one_hot.T @ values: each row of values is added to the row of its index."""
    product = np.zeros((num_rows, values.shape[-1]), values.dtype)
    np.add.at(product, indices, values)
    return product''',
}

#: Keywords with these values are left out.
DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("axis", "dtype", "out")),
    "keepdims": False, "where": True, "mode": "raise", "casting": "same_kind",
}


def expression(operation: TracedOperation, says: Says) -> Expression:
    """The expression of what an operation computes."""
    name, arguments = operation.name, operation.arguments
    keywords = _said(operation.keywords)
    if name in OPERATORS and not keywords:
        return binary(name, *(says(argument, place) for place, argument in enumerate(arguments)))
    if name in SIGNS and not keywords:
        return Expression((SIGNS[name], *says(arguments[0], 0).within(POWER)), SIGN)
    if name in REDUCTIONS:
        return _method(says(arguments[0], 0), REDUCTIONS[name], [], keywords, says)
    if name in METHODS:
        own, *others = arguments
        named = list(zip(METHODS[name], others, strict=False))
        keywords = _said({key: value for key, value in named if key}) | keywords
        plain = [says(value, place) for place, (key, value) in enumerate(named, 1) if not key]
        return _method(says(own, 0), name, plain, keywords, says)
    if name == "getitem":
        return Expression((*says(arguments[0], 0).within(ATOM), "[", *_index(arguments[1], says), "]"))
    if operation.function is np.copyto:
        return _copy(operation, says)
    return _function(operation, [says(argument, place) for place, argument in enumerate(arguments)], keywords, says)


def mean(operation: TracedOperation, of_what: Expression, says: Says) -> Expression:
    """The call of mean that begins with this sum."""
    return _method(of_what, "mean", [], _said(operation.keywords), says)


def written_to(operation: TracedOperation, target: Expression, says: Says) -> Expression:
    """The call with `out`, for a function whose assigned value could have other bits."""
    arguments = [says(argument, place) for place, argument in enumerate(operation.arguments)]
    plain = _function(operation, arguments, _said(operation.keywords), says)
    return Expression((*plain.parts[:-1], ", out=", *target.parts, ")"))


def in_place(operation: TracedOperation, target: Expression, says: Says) -> Expression:
    """The statement for a function that writes to its first argument."""
    _, *others = [says(argument, place) for place, argument in enumerate(operation.arguments)]
    keywords = _said(operation.keywords)
    if operation.name == "put":
        return _method(target, "put", others[:2], {}, says)
    if operation.name == "setitem":
        return Expression((*target.within(ATOM), "[", *_index(operation.arguments[1], says), "] = ", *others[1].parts))
    return _function(operation, [target, *others], keywords, says)


def _index(key: Any, says: Says) -> Parts:
    """The text between the brackets of an index."""
    if type(key) is tuple and key:  # a View is a tuple, too
        parts = [_index(part, says) if isinstance(part, slice) else says(part, None).parts for part in key]
        return (*call((), parts).parts[1:-1], "," if len(key) == 1 else "")
    if isinstance(key, slice):
        ends = ["" if end is None else str(end) for end in (key.start, key.stop, key.step)]
        return (":".join(ends[: 2 + (key.step is not None)]),)
    return says(key, 1).parts


def literal(value: Any) -> Expression:
    """The expression of a number, a tuple or an array that doesn't depend on the step."""
    if isinstance(value, np.ndarray):
        return _array(value) if value.size != 1 or value.ndim else literal(value[()])
    if isinstance(value, np.generic):
        return of(f"np.{value.dtype}({literal(value.item()).parts[0]})")
    if isinstance(value, type) and issubclass(value, np.generic):
        return of(f"np.{value.__name__}")
    if isinstance(value, np.dtype):
        return of(f"np.{value}")
    if isinstance(value, float) and value in (np.inf, -np.inf):
        return of("np.inf") if value > 0 else of("-np.inf", level=SIGN)
    text = repr(value)
    return of(text, level=SIGN if text.startswith("-") else ATOM)


def _said(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords whose values aren't the defaults."""

    def plain(value: Any) -> Any:
        return value.value if isinstance(value, FixedValue) else value

    def is_default(key: str, value: Any) -> bool:
        return value is DEFAULTS[key] or (isinstance(value, str) and value == DEFAULTS[key])

    return {
        key: value
        for key, value in keywords.items()
        if key not in DEFAULTS or isinstance(value, View) or not is_default(key, plain(value))
    }


def _method(
    own: Expression, name: str, arguments: list[Expression], keywords: Mapping[str, Any], says: Says
) -> Expression:
    listed = [argument.parts for argument in arguments]
    listed += [(f"{key}=", *says(value, None).parts) for key, value in keywords.items()]
    return call((*own.within(ATOM), f".{name}"), listed)


def _function(
    operation: TracedOperation, arguments: list[Expression], keywords: Mapping[str, Any], says: Says
) -> Expression:
    shown: list[Parts] = [argument.parts for argument in arguments]
    while shown and shown[-1] == ("None",):
        shown.pop()
    shown += [(f"{key}=", *says(value, None).parts) for key, value in keywords.items()]
    return call((name_of(operation),), shown)


def name_of(operation: TracedOperation) -> str:
    """The function's name, with its module's."""
    module = getattr(operation.function, "__module__", None)
    if module in ("numpy.linalg", "numpy.fft"):
        return f"np.{module.removeprefix('numpy.')}.{operation.name}"
    if hasattr(np, operation.name.partition(".")[0]):
        return f"np.{operation.name}"
    if isinstance(getattr(operation.function, "__self__", operation.function), np.ufunc):
        return f"scipy.special.{operation.name}"
    if operation.name not in IN_NUMPY:
        raise CannotTrace(f"{operation.place}: {operation.name} isn't NumPy's: the script can't say what it does")
    return operation.name


def _copy(operation: TracedOperation, says: Says) -> Expression:
    (source,), output = operation.arguments, operation.output
    if isinstance(source, FixedValue):
        return filled(source.value, output.shape, output.dtype, says(source, 0))
    said = says(source, 0)
    if source.dtype != output.dtype:
        said = said.followed_by(f".astype(np.{output.dtype})")
    same = len(source.shape) == len(output.shape)
    repeated = [axis for axis, size in enumerate(source.shape) if same and size != output.shape[axis]]
    for axis in repeated:
        said = said.followed_by(f".repeat({output.shape[axis]}, axis={axis})")
    return said if repeated or source.dtype != output.dtype else said.followed_by(".copy()")


def filled(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any], said: Expression) -> Expression:
    """The expression of a new array that is filled with one number, or with an array that broadcasts; `said` is the
    expression of what fills it.
    """
    sizes = str(shape[0]) if len(shape) == 1 else str(shape)
    if np.ndim(value) == 0 and value in (0, 1):
        return of(f"np.{'ones' if value else 'zeros'}({sizes}, np.{dtype})")
    return of(f"np.full({sizes}, ", *said.parts, f", np.{dtype})")


def _array(array: np.ndarray[Any, Any]) -> Expression:
    """The expression of an array, as short as possible."""
    if array.size and (array == array.flat[0]).all():
        return filled(array.flat[0], array.shape, array.dtype, literal(array.flat[0].item()))
    if array.ndim == 1 and array.dtype.kind == "i" and len(set(np.diff(array))) == 1:
        start, step = int(array[0]), int(array[1] - array[0])
        stop = start + step * len(array)
        plain = f"{start}, {stop}, {step}" if step != 1 else f"{start}, {stop}" if start else f"{stop}"
        return of(f"np.arange({plain})" if array.dtype == np.int64 else f"np.arange({plain}, dtype=np.{array.dtype})")
    if array.ndim == 2 and array.dtype.kind == "f" and np.array_equal(array, np.triu(np.full_like(array, -np.inf), 1)):
        return of(f"np.triu(np.full({array.shape}, -np.inf, np.{array.dtype}), 1)")
    if made := call_that_makes(array):
        return of(made)
    numbers = str(array.tolist()).replace("inf", "np.inf")
    return of(f"np.array({numbers}, np.{array.dtype})")
