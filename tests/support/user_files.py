"""The user's own .csv and .npz, made up for tests, and what Arrays makes of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nn_manual.data import Arrays, Split
from nn_manual.errors import DataError

FLOAT64 = np.dtype(np.float64)

#: Twelve rows: an id that is text, two inputs, and a class.
CSV = "name,age,height,class\n" + "".join(f"row{row},{row},{1.5 * row},{row % 3}\n" for row in range(12))


def write(folder: Path, content: str | bytes, name: str = "file.csv") -> Path:
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def load(file: Path, **fields: Any) -> Split:
    """The classification by the column `class`, without validation, unless `fields` say otherwise."""
    defaults: dict[str, Any] = {"target": "class", "task": "classification", "validation_fraction": 0.0}
    return Arrays(file=file, **(defaults | fields)).load(0, FLOAT64)


def message(file: Path, **fields: Any) -> str:
    """What the DataError says, after the name of the file."""
    with pytest.raises(DataError) as caught:
        load(file, **fields)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(str(file))
    return text.removeprefix(str(file))


def write_npz(folder: Path, **arrays: Any) -> Path:
    file = folder / "file.npz"
    np.savez(file, **arrays)
    return file


X = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
Y = np.array([0, 1, 1, 0])


def changed(array: np.ndarray, index: tuple[int, ...], value: float) -> np.ndarray:
    array = array.astype(np.float64)
    array[index] = value
    return array
