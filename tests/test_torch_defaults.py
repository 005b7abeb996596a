"""A setting that is left out is what it is in torch."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields
from typing import Any

import pytest
import torch

from nn_manual.layers import Layer
from nn_manual.losses import Loss
from nn_manual.optim import Optimizer, Scheduler
from nn_manual.registry import components

HOMES: dict[type, Any] = {
    Layer: torch.nn,
    Loss: torch.nn,
    Optimizer: torch.optim,
    Scheduler: torch.optim.lr_scheduler,
}
CLASSES = [(name, owner, home) for kind, home in HOMES.items() for name, owner in components(kind).items()]


@pytest.mark.parametrize(("name", "owner", "home"), CLASSES, ids=[name for name, _, _ in CLASSES])
def test_defaults_are_torchs(name: str, owner: type[Any], home: Any) -> None:
    torchs = getattr(home, name, None)
    if torchs is None:
        pytest.skip("torch has no class of this name")
    parameters = inspect.signature(torchs).parameters
    for field in fields(owner):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        of_torch = parameters[field.name].default if field.name in parameters else inspect.Parameter.empty
        if MISSING is default or of_torch is inspect.Parameter.empty:
            continue
        assert _plain(default) == _plain(of_torch), field.name


def _plain(value: Any) -> Any:
    if inspect.isfunction(value):  # of torch.nn.functional, which a config calls by its name
        return value.__name__
    return list(value) if isinstance(value, tuple | list) else value


def test_it_sees_the_defaults() -> None:
    seen = {(name, field.name) for name, owner, home in CLASSES for field in fields(owner) if hasattr(home, name)}
    assert {("SGD", "lr"), ("Adam", "betas"), ("LayerNorm", "eps"), ("CrossEntropyLoss", "reduction")} <= seen
    assert ("StepLR", "gamma") in seen
