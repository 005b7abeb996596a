"""The types, with their ranges, of the values that are read back from a run directory; the error for a wrong one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, AllowInfNan, Field, Strict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from nn_manual.errors import DataError
from nn_manual.run_directory.records import shown

#: NumPy's arrays hold no larger integer.
LARGEST_INTEGER = 2**63 - 1
#: No machine has more cores.
MAX_THREADS = 4096

Count: TypeAlias = Annotated[int, Strict(), Field(ge=0, le=LARGEST_INTEGER)]
Positive: TypeAlias = Annotated[int, Strict(), Field(ge=1, le=LARGEST_INTEGER)]
#: An integer may stand for a float: 1 for 1.0.
Real: TypeAlias = Annotated[float, Strict()]
Finite: TypeAlias = Annotated[float, Strict(), AllowInfNan(False)]
NotNegative: TypeAlias = Annotated[float, Strict(), AllowInfNan(False), Field(ge=0)]
#: The size of a difference: infinity where it is too large for the dtype.
Size: TypeAlias = Annotated[float, Strict(), Field(ge=0)]
Fraction: TypeAlias = Annotated[float, Strict(), AllowInfNan(False), Field(ge=0, le=1)]
Bool: TypeAlias = Annotated[bool, Strict()]
Text: TypeAlias = Annotated[str, Strict()]
SHA256: TypeAlias = Annotated[str, Strict(), Field(pattern=r"^[0-9a-f]{64}$")]
Threads: TypeAlias = Annotated[int, Strict(), Field(ge=1, le=MAX_THREADS)]
#: The name of a file that lies beside the manifest in which it is named.
FileName: TypeAlias = Annotated[str, Strict(), Field(pattern=r"^[a-z]+\.safetensors$")]


def _not_nan(value: float) -> float:
    if value != value:
        raise ValueError("is NaN")
    return value


#: May be infinity, as a lowest loss is before the first one.
NotNaN: TypeAlias = Annotated[Real, AfterValidator(_not_nan)]

#: Our words for pydantic's kinds of errors.
EXPECTED = {
    "int_type": "a 64-bit integer",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "a string",
    "string_pattern_mismatch": "a string of the form {pattern}",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object",
    "dataclass_type": "an object",
    "too_long": "a list of {max_length}",
    "greater_than_equal": "at least {ge:g}",
    "less_than_equal": "at most {le:g}",
}


def validated(place: str, value: Any, kind: TypeAdapter[Any], key: str = "") -> Any:
    """`value` as the type `kind`. Raises DataError, with the place, the key and the value of the first fault in it.
    `key` is the key of `value` itself.
    """
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        fault = error.errors()[0]
    path = ".".join(filter(None, (key, *map(str, fault["loc"]))))
    named = f'"{path}" ' if path else ""
    raise DataError(f"{place}: {named}{_problem(fault)}")


def _problem(fault: ErrorDetails) -> str:
    context: Mapping[str, Any] = fault.get("ctx", {})
    match fault["type"]:
        case "missing":
            return "is missing"
        case "value_error":
            return str(context["error"])
        case "less_than_equal" if context["le"] == LARGEST_INTEGER:
            expected = EXPECTED["int_type"]
        case kind:
            expected = EXPECTED.get(kind, fault["msg"]).format(**context)
    return f"is {shown(fault['input'])}, expected {expected}"
