"""The user's own data in one call."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import Any

from nn_manual.arrays import DTYPES
from nn_manual.data.arrays_dataset import Arrays, Task
from nn_manual.data.base import Split
from nn_manual.messages.text import advice, quoted


def load_data(
    file: str | os.PathLike[str],
    target: str | list[str],
    task: Task,
    *,
    seed: int = 0,
    dtype: str = "float32",
    **settings: Any,
) -> Split:
    """The examples of a .csv, a .csv.gz or an .npz, split into a training and a validation part.

        train, validation, num_classes, transform = load_data("flowers.csv", "species", "classification")

    `settings` are the other fields of the data set Arrays: `input`, `standardize`, `validation_fraction`, and more. A
    config with the same fields and the same seed gives the same examples. Raises TypeError for another setting,
    ValueError for settings that are out of range, and DataError, which names the place, for a file that can't be read
    or holds what it may not.
    """
    known = [field.name for field in fields(Arrays)]
    for name in settings:
        if name not in known:
            raise TypeError(f"load_data has no setting {quoted(name)}{advice(name, known)}")
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be {' or '.join(DTYPES)}, not {dtype}")
    return Arrays(file=Path(file), target=target, task=task, **settings).load(seed, DTYPES[dtype])
