"""Groups of parameters with settings of their own."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from comparing import assert_equal

from nn_manual import SGD, Adam, AdamW, Linear, Sequential, Tanh
from nn_manual.optim.groups import group_of_each, runs, without_parameters

NAMES = ["0.weight", "0.bias", "2.weight", "2.bias"]


def net(dtype: str = "float64") -> Sequential:
    return Sequential(Linear(3, 4), Tanh(), Linear(4, 2), dtype=dtype)


def test_the_first_group_that_matches_counts() -> None:
    groups = [{"parameters": "0.*"}, {"parameters": "*.bias"}, {"parameters": "?.weight"}]
    assert group_of_each(groups, NAMES) == [1, 1, 3, 2]
    assert group_of_each(groups[1:2], NAMES) == [0, 1, 0, 1]
    assert group_of_each([], NAMES) == [0, 0, 0, 0]


def test_what_lies_end_to_end_is_one_run() -> None:
    shapes = {"0.weight": (4, 3), "0.bias": (4,), "2.weight": (2, 4), "2.bias": (2,)}
    for groups, expected in (
        ([], [[(0, 26)]]),
        ([{"parameters": "*.bias"}], [[(0, 12), (16, 24)], [(12, 16), (24, 26)]]),
        ([{"parameters": "0.bias"}, {"parameters": "2*"}], [[(0, 12)], [(12, 16)], [(16, 26)]]),
        ([{"parameters": "*"}], [[], [(0, 26)]]),
    ):
        found = runs(groups, shapes, apart=False)
        assert [[(run.where.start, run.where.stop) for run in own] for own in found] == expected
        assert all(run == (run.where, run.where, None) for own in found for run in own)


def test_parameters_that_move_apart_are_runs_of_their_own() -> None:
    shapes = {"0.weight": (4, 3), "1.weight": (2, 4), "2.weight": (2, 2)}
    found = runs([{"parameters": "1*"}], shapes, apart=True)
    first, last = (slice(0, 12), slice(0, 12), (4, 3)), (slice(20, 24), slice(20, 24), (2, 2))
    assert found == [[first, last], [(slice(12, 20), slice(12, 20), (2, 4))]]
    assert list(found[0][0].pieces()) == [slice(0, 12)]


def torchs(optimizer: Any, groups: list[dict[str, Any]], params: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
    """torch's optimizer, the parameters sorted into groups one by one."""
    settings = {name: getattr(optimizer, name) for name in optimizer.setting_names()}
    places = group_of_each(groups, NAMES)
    torch_groups = []
    for number, group in enumerate([{}, *groups]):
        own = {name: value for name, value in group.items() if name != "parameters"}
        members = [param for param, place in zip(params, places, strict=True) if place == number]
        torch_groups.append({"params": members, **own})
    result: torch.optim.Optimizer = getattr(torch.optim, type(optimizer).__name__)(torch_groups, **settings)
    return result


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("optimizer_class", "settings", "groups"),
    [
        (SGD, {"momentum": 0.9, "weight_decay": 0.1}, [{"parameters": "*.bias", "weight_decay": 0.0}]),
        (SGD, {"momentum": 0.9}, [{"parameters": "0.*", "momentum": 0.0, "lr": 0.5}]),
        (SGD, {"momentum": 0.9}, [{"parameters": "2.bias", "maximize": True}, {"parameters": "2*", "nesterov": True}]),
        (Adam, {"amsgrad": True}, [{"parameters": "*", "amsgrad": False, "betas": (0.5, 0.9)}]),
        (AdamW, {}, [{"parameters": "0.bias", "lr": 0.0}, {"parameters": "*.bias", "weight_decay": 0.0, "eps": 0.1}]),
    ],
)
def test_groups_are_torchs(optimizer_class: Any, settings: Any, groups: list[dict[str, Any]], dtype: str) -> None:
    model = net(dtype)
    optimizer = optimizer_class(model, lr=0.1, groups=groups, **settings)
    params = [torch.nn.Parameter(torch.from_numpy(value.copy())) for value in model.state_dict().values()]
    theirs = torchs(optimizer, groups, params)
    generator, start = np.random.default_rng(0), model.param_arena.copy()
    for step in range(1, 11):
        model.grad_arena[...] = generator.normal(size=model.num_parameters)
        for param, grad in zip(params, vars(model.grad).values(), strict=True):
            param.grad = torch.from_numpy(grad.copy())
        if step == 5:  # as a schedule does it
            for member, torch_group in zip(optimizer.members, theirs.param_groups, strict=True):
                member.lr /= 2
                torch_group["lr"] /= 2
        optimizer.step()
        theirs.step()
        for value, param in zip(model.state_dict().values(), params, strict=True):
            assert_equal(value, param.detach().numpy())
    assert not np.array_equal(model.param_arena, start)


def test_a_step_of_many_blocks_is_that_of_one() -> None:
    """A group in the middle of a vector that is longer than a block."""
    moved = []
    for groups in ([], [{"parameters": "0.bias", "lr": 0.1}]):
        model = Sequential(Linear(600, 600), Tanh(), Linear(600, 600))
        model.grad_arena[...] = np.random.default_rng(0).normal(size=model.num_parameters)
        SGD(model, lr=0.1, momentum=0.9, groups=groups).step()
        moved.append(model.param_arena)
    np.testing.assert_array_equal(moved[0], moved[1])


def test_the_members_have_lrs_of_their_own() -> None:
    optimizer = SGD(net(), lr=0.1, groups=[{"parameters": "0.*", "lr": 0.2}, {"parameters": "*"}])
    assert optimizer.members[0] is optimizer
    assert [member.lr for member in optimizer.members] == [0.1, 0.2, 0.1]


@pytest.mark.parametrize(
    ("optimizer_class", "settings", "groups", "message"),
    [
        (SGD, {}, [{"parameters": "*.gain"}],
         "groups.0.parameters '*.gain' matches no parameter; there are 0.weight, 0.bias, 2.weight, 2.bias"),
        (SGD, {}, [{"parameters": "0.*"}, {"parameters": "0.bias"}],
         "groups.1.parameters '0.bias' matches only parameters of groups before it"),
        (SGD, {}, [{"lr": 0.1}], "groups.0 needs parameters, a pattern of parameter names"),
        (SGD, {}, [{"parameters": "*", "momentun": 0.1}], "groups.0.momentun is no setting of SGD"),
        (SGD, {}, [{"parameters": "*", "groups": []}], "groups.0.groups is no setting of SGD"),
        (SGD, {}, [{"parameters": "0.*"}, {"parameters": "*", "weight_decay": -1}],
         "groups.1.weight_decay must be at least 0, not -1"),
        (SGD, {"momentum": 0.9, "nesterov": True}, [{"parameters": "*", "momentum": 0.0}],
         "groups.0.nesterov needs a momentum above 0 and a dampening of 0"),
        (SGD, {}, [{"parameters": "*", "lr": 0.1, "momentum": 0.9}],
         "groups.0.momentum must not be 0.9 if SGD itself has momentum 0.0, and so no momentum_buffer"),
        (AdamW, {}, [{"parameters": "*", "amsgrad": True}],
         "groups.0.amsgrad must not be True if AdamW itself has amsgrad False, and so no max_exp_avg_sq"),
    ],
)  # fmt: skip - one case a line
def test_what_is_refused(optimizer_class: Any, settings: Any, groups: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        optimizer_class(net(), groups=groups, **settings)


def test_a_model_without_parameters_has_none_to_match() -> None:
    assert without_parameters([{"parameters": "*.bias"}], []) == {}
    SGD(Sequential(), groups=[{"parameters": "*.bias"}]).step()
