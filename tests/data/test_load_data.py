"""The user's own data in one call."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from user_files import CSV, load, write

from nn_manual import load_data


def test_the_same_as_a_config(tmp_path: Path) -> None:
    file = write(tmp_path, CSV)
    settings: dict[str, Any] = {"input": ["age", "height"], "standardize": True, "validation_fraction": 0.25}
    split = load_data(str(file), "class", "classification", dtype="float64", **settings)
    expected = load(file, **settings)
    assert np.array_equal(split.train.input, expected.train.input)
    assert np.array_equal(split.validation.target, expected.validation.target)
    assert load_data(file, "class", "classification", input="age").train.input.dtype == np.float32


def test_what_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path, CSV)
    with pytest.raises(ValueError, match=r"^dtype must be float32 or float64, not int8$"):
        load_data(file, "class", "classification", dtype="int8")
    with pytest.raises(ValueError, match=r"^missing must be null, mean or drop, not x$"):
        load_data(file, "class", "classification", missing="x")
    with pytest.raises(TypeError, match=r"^load_data has no setting 'standardise'; did you mean 'standardize'\?$"):
        load_data(file, "class", "classification", standardise=True)
