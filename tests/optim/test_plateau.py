"""ReduceLROnPlateau is torch's, loss by loss."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import torch

from nn_manual.optim import ReduceLROnPlateau

SETTINGS: list[dict[str, Any]] = [
    {},
    {"patience": 0},
    {"patience": 2, "factor": 0.5, "cooldown": 3},
    {"patience": 1, "threshold": 0.2},
    {"patience": 1, "threshold": 0.2, "threshold_mode": "abs"},
    {"patience": 0, "factor": 0.5, "min_lr": 0.02},
    {"patience": 0, "factor": 0.5, "eps": 0.02},
    {"patience": 0, "factor": 0.0},
]


def losses() -> list[float]:
    """They fall, waver, jump, and are not numbers at the end."""
    generator = np.random.default_rng(0)
    falling = 1 / (1 + np.arange(15)) + 0.1 * generator.random(15)
    return [*falling, *generator.random(20), 1e9, math.inf, math.nan, -1.0]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_torch_agrees(settings: dict[str, Any]) -> None:
    ours = ReduceLROnPlateau(**settings)
    optimizer = torch.optim.SGD([{"params": [torch.zeros(1)], "lr": lr} for lr in (0.1, 0.01)])
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **settings)
    for epoch, loss in enumerate(losses()):
        assert [ours.lr(lr, epoch) for lr in (0.1, 0.01)] == [group["lr"] for group in optimizer.param_groups]
        ours.observe(loss)
        theirs.step(loss)
        for name in ("best", "num_bad_epochs", "cooldown_counter"):
            assert ours.state()[name] == getattr(theirs, name)
    assert ours.num_reductions > 0


EDGES: dict[str, list[Any]] = {
    "mode": ["min", "max", "mean"],
    "factor": [-0.5, 0, 0.0, 1e-9, 0.999, 1, 1.0, 2],
    "patience": [-1, 0, 1, 10**9, 1.5],
    "threshold": [-0.1, 0, 1, 2.0, 1e9],
    "threshold_mode": ["rel", "abs", "none"],
    "cooldown": [-1, 0, 1, 10**9, 1.5],
    "min_lr": [-0.1, 0, 0.05, 0.1, 1.0, 1e9],
    "eps": [-0.1, 0, 0.05, 1e9],
}


def is_refused_here(name: str, value: Any) -> bool:
    """What torch takes and the package does not: docs/configs.md says so."""
    if isinstance(value, str):
        return value == "max"
    return value < 0 or (name in ("patience", "cooldown") and not isinstance(value, int))


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in EDGES.items() for value in values])
@pytest.mark.parametrize("others", [{"patience": 0, "factor": 0.5}, {"patience": 1, "cooldown": 2, "min_lr": 0.02}])
def test_what_torch_takes_at_the_edges(name: str, value: Any, others: dict[str, Any]) -> None:
    settings, initial_lrs = others | {name: value}, (0.1, 0.0, 1e3)
    optimizer = torch.optim.SGD([{"params": [torch.zeros(1)], "lr": lr} for lr in initial_lrs])
    try:
        theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **settings)
    except ValueError:
        theirs = None
    if theirs is None or is_refused_here(name, value):
        with pytest.raises(ValueError, match=f"^{name} must be "):
            ReduceLROnPlateau(**settings)
        return
    ours = ReduceLROnPlateau(**settings)
    for epoch, loss in enumerate(losses()):
        assert [ours.lr(lr, epoch) for lr in initial_lrs] == [group["lr"] for group in optimizer.param_groups]
        ours.observe(loss)
        theirs.step(loss)


def test_defaults_are_torchs() -> None:
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(torch.optim.SGD([torch.zeros(1)], lr=0.1))
    for name, value in asdict(ReduceLROnPlateau()).items():
        assert value == (theirs.min_lrs[0] if name == "min_lr" else getattr(theirs, name))


def test_a_state_goes_on_where_it_was_taken() -> None:
    first = ReduceLROnPlateau(patience=1, factor=0.5, cooldown=2)
    for loss in losses()[:20]:
        first.observe(loss)
    second = ReduceLROnPlateau(patience=1, factor=0.5, cooldown=2)
    second.load_state(first.state())
    for loss in losses()[20:]:
        first.observe(loss)
        second.observe(loss)
        assert second.lr(0.1, 0) == first.lr(0.1, 0)
    assert second.state() == first.state()
    with pytest.raises(ValueError, match=r"^ReduceLROnPlateau keeps \['best', .*\], not \['best'\]$"):
        second.load_state({"best": 1.0})


@pytest.mark.parametrize("name", ["num_bad_epochs", "cooldown_counter", "num_reductions"])
@pytest.mark.parametrize("value", [-1, 0.5, math.inf, math.nan])
def test_a_count_that_is_none(name: str, value: float) -> None:
    schedule = ReduceLROnPlateau()
    with pytest.raises(ValueError, match=f"^{name} must be an integer of at least 0, not {value}$"):
        schedule.load_state(schedule.state() | {name: value})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "max"}, "mode must be min, not max"),
        ({"factor": 1.0}, "factor must be at least 0 and below 1, not 1.0"),
        ({"patience": -1}, "patience must be at least 0, not -1"),
        ({"cooldown": -1}, "cooldown must be at least 0, not -1"),
        ({"min_lr": -0.1}, "min_lr must be at least 0, not -0.1"),
        ({"eps": math.nan}, "eps must be at least 0, not nan"),
        ({"threshold_mode": "relative"}, "threshold_mode must be rel or abs, not relative"),
    ],
)
def test_values_out_of_range_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        ReduceLROnPlateau(**settings)
