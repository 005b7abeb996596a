"""Files of JSON, read: one object, or one a line: records, and columns of typed values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from nn_manual.arrays import Array
from nn_manual.errors import DataError
from nn_manual.messages import LONGEST_VALUE, one_line
from nn_manual.run_directory.files import read_file


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


# By default, Python's decoder takes NaN and Infinity.
_decoder = json.JSONDecoder(parse_constant=_refuse_constant)


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a .jsonl file, one for each line, read as they are asked for. Raises DataError."""
    for number, line in enumerate(_lines(path), start=1):
        try:
            record = _decoder.decode(line.decode())
        except (ValueError, RecursionError) as error:  # RecursionError: brackets nested a thousand deep
            if not line.endswith(b"\n"):  # the last line, and torn
                return
            raise DataError(f"{path}:{number}: is not JSON: {error}") from error
        if not isinstance(record, dict):
            raise DataError(f"{path}:{number}: expected a JSON object, not {shown(record)}")
        yield record


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise DataError(f"{path}: can't be read: {error.strerror}") from error


def read_object(path: Path) -> dict[str, Any]:
    """The one object that a .json file holds. Raises DataError, naming `path`."""
    try:
        value = _decoder.decode(read_file(path).decode())
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise DataError(f"{path}: expected a JSON object, not {shown(value)}")
    return value


#: For each type of column: what JSON may hold there, the array's dtype, and the name in messages. An integer may
#: stand for a float (1 for 1.0), and None is the float that was not finite: numpy makes NaN of it.
_COLUMN_TYPES: dict[type, tuple[set[type], type, str]] = {
    int: ({int}, np.int64, "a 64-bit integer"),
    float: ({float, int, type(None)}, np.float64, "a number"),
    str: ({str}, np.object_, "a string"),
}


def columns(
    path: Path,
    records: Iterable[Mapping[str, Any]],
    types: Mapping[str, type],
    optional: frozenset[str] = frozenset(),
) -> dict[str, Array]:
    """The columns of a .jsonl file's records. A column in `optional` is in every record or in none."""
    values: dict[str, list[Any]] = {key: [] for key in types}
    for number, record in enumerate(records, start=1):
        for key, column in values.items():
            num_before = len(column)
            if num_before < number - 1 if key in record else column or key not in optional:
                raise DataError(f'{path}:{num_before + 1}: "{key}" is missing')
            if key in record:
                column.append(checked(f"{path}:{number}", key, record[key], types[key]))
    return {
        key: np.array(column, _COLUMN_TYPES[types[key]][1])
        for key, column in values.items()
        if column or key not in optional
    }


def checked(place: str, key: str, value: Any, kind: type) -> Any:
    """`value`, if it is of this type of column. Raises DataError, which names the place and the key."""
    accepted, _, description = _COLUMN_TYPES[kind]
    # type() and not isinstance: true is an instance of int.
    if type(value) not in accepted or (type(value) is int and abs(value) >= 2**63):
        raise DataError(f'{place}: "{key}" is {shown(value)}, expected {description}')
    return value


def shown(value: object) -> str:
    """`value` in a message: as JSON, and not more of it than a line holds."""
    return one_line(json.dumps(value), LONGEST_VALUE)
