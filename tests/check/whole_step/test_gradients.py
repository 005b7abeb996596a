"""check_gradients: what it is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nn_manual import Linear, MSELoss, Sequential, check_gradients

INPUT = np.ones((4, 2), np.float32)


@pytest.mark.parametrize(
    ("model", "input", "target", "message"),
    [
        (Linear(2, 2), INPUT, INPUT, r"the model is Linear\(.*\), and must be a Sequential: Seq"),
        (Sequential(Linear(2, 2)), INPUT.tolist(), INPUT, "the input must be a numpy array, not list"),
        (Sequential(Linear(2, 2)), INPUT, INPUT.tolist(), "the target must be a numpy array, not list"),
    ],
)
def test_what_is_no_model_and_no_array(model: Any, input: Any, target: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"^{message}"):
        check_gradients(model, MSELoss(), input, target)
