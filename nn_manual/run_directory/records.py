"""Files of JSON, read: one object, or one object in each line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from nn_manual.errors import DataError, raise_if_out_of_memory
from nn_manual.messages.text import LONGEST_VALUE, one_line
from nn_manual.run_directory.files import read_file


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


# By default, Python's decoder takes NaN and Infinity.
_decoder = json.JSONDecoder(parse_constant=_refuse_constant)
#: An escape that may be half of a character: JSON needs two escapes for one beyond the first 65,536.
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def _decoded(line: bytes) -> Any:
    """The value of a JSON text. Raises ValueError, and RecursionError for brackets nested a thousand deep."""
    text = line.decode()
    value = _decoder.decode(text)
    if _HALF.search(text):
        json.dumps(value, ensure_ascii=False).encode()  # raises for half a character, which has no bytes
    return value


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a .jsonl file, one for each line, read as they are asked for. Raises DataError."""
    for number, line in enumerate(_lines(path), start=1):
        try:
            record = _decoded(line)
        except (ValueError, RecursionError) as error:
            if not line.endswith(b"\n"):  # the last line, which lacks its end
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
        raise_if_out_of_memory(error)
        raise DataError(f"{path}: can't be read: {error.strerror}") from error


def read_object(path: Path) -> dict[str, Any]:
    """The one object that a .json file holds. Raises DataError, naming `path`."""
    try:
        value = _decoded(read_file(path))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise DataError(f"{path}: expected a JSON object, not {shown(value)}")
    return value


def shown(value: object) -> str:
    """`value` as a message shows it: as JSON, shortened where it is long."""
    try:
        return one_line(json.dumps(value), LONGEST_VALUE)
    except RecursionError:  # when it was read, less of the stack was in use
        return "a list" if isinstance(value, list) else "an object"
