"""A model of models, ours and torch's."""

from __future__ import annotations

from typing import Any

import torch

from nn_manual import Linear, ReLU, Sequential, Tanh


def nested(**options: Any) -> Sequential:
    return Sequential(
        Tanh(),
        Sequential(Linear(3, 4), ReLU(), Sequential(Linear(4, 4, bias=False), Tanh())),
        ReLU(),
        Linear(4, 2),
        **options,
    )


#: torch's names for the parameters of `nested()`, with their shapes.
SHAPES = {"1.0.weight": (4, 3), "1.0.bias": (4,), "1.2.0.weight": (4, 4), "3.weight": (2, 4), "3.bias": (2,)}


def torch_nested(dtype: str) -> torch.nn.Sequential:
    return torch.nn.Sequential(
        torch.nn.Tanh(),
        torch.nn.Sequential(
            torch.nn.Linear(3, 4),
            torch.nn.ReLU(),
            torch.nn.Sequential(torch.nn.Linear(4, 4, bias=False), torch.nn.Tanh()),
        ),
        torch.nn.ReLU(),
        torch.nn.Linear(4, 2),
    ).to(getattr(torch, dtype))


def as_torch(model: Sequential) -> torch.nn.Sequential:
    """torch's model with copies of our parameters."""
    theirs = torch_nested(str(model.dtype))
    theirs.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in model.state_dict().items()})
    return theirs
