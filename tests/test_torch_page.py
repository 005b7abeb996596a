"""docs/torch.md: each class and each setting of torch's is here, or on the page with what to write instead."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from test_torch_defaults import CLASSES

from nn_manual.layers import Layer
from nn_manual.losses import Loss
from nn_manual.optim import Optimizer, Scheduler
from nn_manual.registry import components

PAGE = (Path(__file__).parents[1] / "docs" / "torch.md").read_text(encoding="utf-8")


def stated(heading: str) -> list[str]:
    """The names in the first column of a section's table."""
    (text,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| (`.*?) \|", str(text), re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def classes_of(module: Any, base: type) -> set[str]:
    return {name for name, value in vars(module).items() if inspect.isclass(value) and issubclass(value, base)}


def test_its_version_is_the_installed_one() -> None:
    (version,) = re.findall(r"torch (\d+\.\d+) has beyond them", PAGE)
    assert torch.__version__.startswith(f"{version}.")


def test_each_class_of_torch_nn_is_here_or_on_the_page() -> None:
    names = stated("Layers and losses")
    assert len(names) == len(set(names))
    assert set(names) == classes_of(torch.nn, torch.nn.Module) - components(Layer).keys() - components(Loss).keys()


def test_each_optimizer_and_schedule_is_here_or_on_the_page() -> None:
    names = stated("Optimizers and schedules")
    schedules = classes_of(torch.optim.lr_scheduler, torch.optim.lr_scheduler.LRScheduler)
    torchs = classes_of(torch.optim, torch.optim.Optimizer) | {name for name in schedules if name[0] != "_"}
    assert set(names) == torchs - components(Optimizer).keys() - components(Scheduler).keys()


def test_each_setting_of_torchs_is_here_or_on_the_page() -> None:
    missing = set[str]()
    for name, owner, home in CLASSES:
        if is_dataclass(owner) and hasattr(home, name):
            parameters = inspect.signature(getattr(home, name)).parameters.values()
            named = {each.name for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)}
            missing |= named - {field.name for field in fields(owner)}
    assert set(stated("Settings")) == missing



@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_each_setting_of_torchs_recurrent_nets_is_here(name: str) -> None:
    """Their own signature in torch is *args."""
    settings = set(inspect.signature(torch.nn.RNNBase).parameters) - {"mode", "device", "dtype"}
    settings -= set() if name == "LSTM" else {"proj_size"}  # torch says: for LSTM alone
    assert settings <= {field.name for field in fields(components(Layer)[name])}
