"""What is said of shapes that don't fit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from exercise_files import module

from nn_manual.exercises.running.shapes import misfit

SELF = SimpleNamespace(param=SimpleNamespace(weight=np.ones((4, 2))))


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("x @ y", "the shapes don't fit in x @ y: x is (2, 3), y is (2, 3)"),
        ("x @ (2 * y)", "the shapes don't fit in x @ (2 * y): x is (2, 3), y is (2, 3)"),
        ("1 + x * self.param.weight", "the shapes don't fit in x * self.param.weight: x is (2, 3), "
         "self.param.weight is (4, 2)"),
        ("np.dot(x.T, x.T)", "the shapes don't fit in np.dot(x.T, x.T): x.T is (3, 2)"),
        ("x.reshape(\n    5)", "the shapes don't fit in x.reshape( 5): x is (2, 3)"),
        ("np.ones(2) @ np.ones(3)", ""),
        ("int('x')", ""),
        ("x / 0 + [][1]", ""),
    ],
)
def test_misfit(expression: str, said: str) -> None:
    own: Any = module(f"import numpy as np\n\n\ndef run(x, y, self):\n    return ({expression})\n", "misfit")
    with np.errstate(all="ignore"), pytest.raises(Exception) as caught:  # noqa: PT011 - any error
        own.run(np.ones((2, 3)), np.ones((2, 3)), SELF)
    assert misfit(caught.value, own.run.__code__.co_filename) == said
    assert misfit(caught.value, "another file") == ""
