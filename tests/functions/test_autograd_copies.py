"""Our layers inside torch's models, copied, saved, and loaded."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable

import numpy as np
import pytest
import torch
from modules import draw, net

from nn_manual import Layer, ReLU, as_autograd_function


def saved_and_loaded(module: torch.nn.Module) -> torch.nn.Module:
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    loaded: torch.nn.Module = torch.load(file, weights_only=False)
    return loaded


def gradients(module: torch.nn.Module) -> list[torch.Tensor]:
    return list(torch.autograd.grad(torch.sin(module(draw(5, 3))).sum(), list(module.parameters())))


@pytest.mark.parametrize("make", [copy.deepcopy, saved_and_loaded])
@pytest.mark.parametrize("whole", [False, True])
def test_a_copy_is_a_module_of_its_own(make: Callable[[torch.nn.Module], torch.nn.Module], whole: bool) -> None:
    model = net()
    ours = as_autograd_function(model if whole else model.layers[0])
    before = model.param_arena.copy()
    theirs = make(torch.nn.Sequential(ours, torch.nn.Tanh()))[0]  # type: ignore[index]
    layer = theirs.layer
    assert isinstance(layer, Layer)
    assert list(theirs.state_dict()) == list(ours.state_dict())
    expected = gradients(ours)
    assert all(torch.equal(*pair) for pair in zip(gradients(theirs), expected, strict=True))

    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.5)
    theirs(draw(5, 3)).sum().backward()
    optimizer.step()
    assert np.array_equal(model.param_arena, before)
    assert all(torch.equal(*pair) for pair in zip(gradients(ours), expected, strict=True))
    moved = np.concatenate([parameter.detach().numpy().ravel() for parameter in theirs.parameters()])
    assert np.array_equal(moved, np.concatenate([view.ravel() for view in vars(layer.param).values()]))
    assert not np.allclose(moved, before[: len(moved)])
    model.param_arena[:] = 7
    assert not any((parameter == 7).any() for parameter in theirs.parameters())


def test_an_average_of_the_parameters_follows_the_layer() -> None:
    model = net()
    module = as_autograd_function(model)
    average = torch.optim.swa_utils.AveragedModel(module, avg_fn=lambda mean, new, _: (mean + new) / 2)
    average.update_parameters(module)
    first = model.param_arena.copy()
    model.param_arena += 1
    average.update_parameters(module)
    output = average(draw(5, 3))
    model.param_arena[:] = first + 0.5
    torch.testing.assert_close(output, module(draw(5, 3)), rtol=1e-12, atol=0)


def test_a_module_without_parameters_is_copied() -> None:
    module = copy.deepcopy(as_autograd_function(ReLU()))
    assert torch.equal(module(torch.tensor([-1.0, 2.0])), torch.tensor([0.0, 2.0]))


def test_a_shallow_copy_shares_the_memory() -> None:
    model = net()
    module = copy.copy(as_autograd_function(model))
    model.param_arena[:] = 7
    assert all((parameter == 7).all() for parameter in module.parameters())


def test_a_state_dict_goes_from_one_module_to_another_and_to_torch() -> None:
    source, model = as_autograd_function(net()), net(seed=2)
    module = as_autograd_function(model)
    module.load_state_dict(source.state_dict())
    assert all(torch.equal(*pair) for pair in zip(gradients(module), gradients(source), strict=True))
    assert np.array_equal(model.param_arena, np.concatenate([p.detach().numpy().ravel() for p in source.parameters()]))
    module.load_state_dict(source.state_dict(), assign=True)
    with pytest.raises(RuntimeError, match="no longer shares memory"):
        module(draw(5, 3))
