"""A model's state dict: torch's, copied in, and refused where it doesn't fit."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from comparing import TOLERANCES, assert_equal
from nested import SHAPES, as_torch, nested, torch_nested

from nn_manual.arrays import Array


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_a_state_dict_goes_to_torch_and_back(dtype: str) -> None:
    theirs = torch_nested(dtype)
    ours = nested(dtype=dtype)
    ours.load_state_dict(theirs.state_dict())
    for name, value in as_torch(ours).state_dict().items():
        assert torch.equal(value, theirs.state_dict()[name])
    input = np.random.default_rng(0).normal(size=(2, 5, 3)).astype(dtype)
    assert_equal(ours(input), theirs(torch.from_numpy(input)).detach().numpy())


def test_a_loaded_state_dict_is_a_copy_in_the_models_dtype() -> None:
    model, source = nested(), {name: np.full(shape, 0.1) for name, shape in SHAPES.items()}
    model.load_state_dict(source)
    assert np.all(model.param_arena == np.float32(0.1))
    source["3.bias"][...] = 5
    assert np.all(model.param_arena == np.float32(0.1))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"3.bias": None}, ValueError, "missing parameter '3.bias' in the state dict"),
        ({"4.bias": np.ones(2)}, ValueError, "unexpected parameter '4.bias' in the state dict"),
        ({"4.bias": np.ones(2), "1.0.bias": None}, ValueError, "missing parameter '1.0.bias' in the state dict"),
        ({"3.bias": np.ones(1)}, ValueError, "parameter '3.bias' has shape (2,), the state dict's (1,)"),
        ({"3.weight": np.ones((4, 2))}, ValueError, "parameter '3.weight' has shape (2, 4), the state dict's (4, 2)"),
        ({"3.bias": np.ones(2, complex)}, TypeError, "parameter '3.bias' is float32, the state dict's complex128"),
        ({"3.bias": np.array(["a", "b"])}, TypeError, "parameter '3.bias' is float32, the state dict's <U1"),
    ],
)
def test_a_state_dict_that_does_not_fit_changes_nothing(
    changes: dict[str, Array | None], error: type[Exception], message: str
) -> None:
    model = nested()
    before = model.param_arena.copy()
    state_dict = {name: np.ones(shape) for name, shape in SHAPES.items()} | changes
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        model.load_state_dict({name: value for name, value in state_dict.items() if value is not None})
    np.testing.assert_array_equal(model.param_arena, before)
