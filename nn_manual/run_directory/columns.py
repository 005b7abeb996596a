"""The columns of a .jsonl file: an array for each key, whose values have been checked one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from pydantic import TypeAdapter

from nn_manual.arrays import Array
from nn_manual.errors import DataError
from nn_manual.run_directory.values import Count, Text, validated


class Column(NamedTuple):
    """The type of each value in a column, and the dtype of its array."""

    kind: TypeAdapter[Any]
    dtype: type


def columns_of(record: type) -> dict[str, Column]:
    """A column for each key of a TypedDict of the schema. Counts are int64, texts are objects and all else is float64,
    in which null, which stands for a float that was not finite, becomes NaN.
    """
    kinds = get_type_hints(record, include_extras=True)
    dtypes: dict[Any, type] = {Count: np.int64, Text: np.object_}
    return {key: Column(TypeAdapter(kind), dtypes.get(kind, np.float64)) for key, kind in kinds.items()}


def columns(
    path: Path,
    records: Iterable[Mapping[str, Any]],
    types: Mapping[str, Column],
    optional: Set[str] = frozenset(),
) -> dict[str, Array]:
    """The columns of the records of a .jsonl file. A key in `optional` is in every record or in none, any other in
    every one. Raises DataError, with the file, the line and the key.
    """
    values: dict[str, list[Any]] = {key: [] for key in types}
    for number, record in enumerate(records, start=1):
        for key, column in values.items():
            num_before = len(column)
            if num_before < number - 1 if key in record else column or key not in optional:
                raise DataError(f'{path}:{num_before + 1}: "{key}" is missing')
            if key in record:
                column.append(validated(f"{path}:{number}", record[key], types[key].kind, key))
    return {
        key: np.array(column, types[key].dtype) for key, column in values.items() if column or key not in optional
    }
