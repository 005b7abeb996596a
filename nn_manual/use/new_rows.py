"""Rows of a table that training hasn't seen, made into numbers as its own rows were: from a CSV, or from memory."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.data import Transform
from nn_manual.data.categories import Categories
from nn_manual.data.csv_files import CsvForm, read_csv
from nn_manual.data.prepared import numbers_of
from nn_manual.data.tables import Kind, Part


def numbers_in(file: Path | io.StringIO, transform: Transform, kind: Kind, delimiter: str | None = None) -> Array:
    """The numbers in a CSV's columns of training, found by their names, float64 or int64: one for each name of a column
    of names, and NaN for an empty cell that training fills. Raises DataError, which names the line.
    """
    dtype, no_target = np.dtype(np.float64), Part([], Kind.NUMBERS, np.dtype(np.float64))
    categories = {name: Categories(names) for name, names in transform.categories}
    may_miss = transform.filled is not None
    input = Part(list(transform.names.input or []), kind, dtype, categories, may_miss=may_miss)
    read_csv(file, input, no_target, CsvForm(delimiter, advice="a run trained with `missing: mean` takes them"))
    return numbers_of(input)


def as_csv(examples: Any, transform: Transform) -> io.StringIO | None:
    """A pandas DataFrame, or rows that have names, or None for an empty cell, as the text of a CSV with commas. None
    for numbers alone, or if the columns of training had no headings.
    """
    names = transform.names.input
    if names is None:
        return None
    if hasattr(examples, "columns") and hasattr(examples, "to_csv"):
        return io.StringIO(examples.to_csv(index=False))
    if (array := np.asarray(examples)).dtype.kind not in "OU" or array.ndim != 2:
        return None
    array = array if array is examples else np.asarray(examples, object)  # numpy makes a text of a NaN beside names
    if not transform.categories and not any(cell is None for cell in array.flat):
        return None
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(names)
    writer.writerows(["" if cell is None or cell != cell else cell for cell in row] for row in array.tolist())
    text.seek(0)
    return text
