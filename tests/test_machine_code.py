"""The package's own functions as machine code: kept where that can be, compiled anew elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from numba import njit

from nn_manual.machine_code import machine_code

SOURCE = "def twice(number):\n    return 2 * number\n"


def without_a_file() -> Any:
    """A function for whose code numba finds no folder, as in a package and a home that can't be written to."""
    names: dict[str, Any] = {}
    exec(SOURCE, names)
    return names["twice"]


def test_a_function_whose_code_cannot_be_kept_is_compiled() -> None:
    with pytest.raises(RuntimeError, match="no locator available"):
        njit("int64(int64)", cache=True)(without_a_file())
    twice = machine_code("int64(int64)", nogil=True)(without_a_file())
    assert twice(21) == 42
    assert twice.nopython_signatures


def test_another_error_is_raised() -> None:
    with pytest.raises(Exception, match="int65"):
        machine_code("int65(int64)")(without_a_file())
