"""Whether a state dict fits a model."""

from __future__ import annotations

from collections.abc import Container, Mapping

import numpy as np

from nn_manual.arrays import Array


def check_state_dict(
    state_dict: Mapping[str, Array], own: Mapping[str, Array], buffers: Container[str], first_of: Mapping[str, str]
) -> None:
    """Raise ValueError for a missing or unexpected name, a shape that doesn't fit, or a shared parameter whose values
    differ from name to name; TypeError for values that can't be cast to the model's dtype.

    `own` is the model's state dict, and `buffers` has the names of the buffers in it. `first_of` maps each further name
    of a shared parameter to its first name.
    """

    def described(name: str) -> str:
        return f"{'buffer' if name in buffers else 'parameter'} {name!r}"

    for name in sorted((own.keys() ^ state_dict.keys()) - (first_of.keys() - state_dict.keys())):
        raise ValueError(f"{'missing' if name in own else 'unexpected'} {described(name)} in the state dict")
    for name, value in state_dict.items():
        if value.shape != own[name].shape:
            raise ValueError(f"{described(name)} has shape {own[name].shape}, the state dict's {value.shape}")
        if not np.can_cast(value.dtype, own[name].dtype, "same_kind"):
            raise TypeError(f"{described(name)} is {own[name].dtype}, the state dict's {value.dtype}")
    for other in first_of.keys() & state_dict.keys():
        if not np.array_equal(state_dict[other], state_dict[first_of[other]], equal_nan=True):
            raise ValueError(f"{other!r} is {first_of[other]!r} in this model, the state dict's two differ")
