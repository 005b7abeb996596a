"""Steps beside torch's: of an optimizer on the same gradients, and of a whole training, each side with its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from nn_manual import Dropout, Linear, Sequential, Tanh, Trainer, optim
from nn_manual.arrays import Array


def trajectory(
    name: str, sizes: tuple[int, int], dtype: str, options: dict[str, Any]
) -> tuple[list[Array], list[Array]]:
    """The parameters after each of 20 steps of ours and of torch's, on the same gradients and learning rates."""
    model = Sequential(Linear(*sizes), Tanh(), Linear(sizes[1], 1), dtype=dtype)
    ours = getattr(optim, name)(model, **options)
    parameter = torch.nn.Parameter(torch.from_numpy(model.param_arena.copy()))
    theirs = getattr(torch.optim, name)([parameter], **options)
    generator = np.random.default_rng(0)
    steps: tuple[list[Array], list[Array]] = ([], [])
    for step in range(20):
        kind = 1e-3 if step % 5 == 3 else float(step % 7 != 2)  # now and then tiny, or zero
        model.grad_arena[...] = kind * generator.normal(size=model.num_parameters)
        before = model.grad_arena.copy()
        parameter.grad = torch.from_numpy(before.copy())
        ours.lr = theirs.param_groups[0]["lr"] = 0.1 / (1 + step // 4)
        ours.step()
        theirs.step()
        np.testing.assert_array_equal(model.grad_arena, before)
        steps[0].append(model.param_arena.copy())
        steps[1].append(parameter.detach().numpy().copy())
    return steps


class Masked(torch.nn.Module):
    """Dropout in torch with the mask that our layer has for the step: its own generator would draw another."""

    def __init__(self, ours: Dropout) -> None:
        super().__init__()
        self.ours = ours

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return input * torch.tensor(self.ours.noise.mask) if self.training else input


def start_as(model: Sequential, module: torch.nn.Module) -> None:
    """Give torch's module copies of our parameters and buffers."""
    module.load_state_dict({name: torch.tensor(value) for name, value in model.state_dict().items()})


def train_beside(
    trainer: Trainer,
    module: torch.nn.Module,
    loss: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    scheduler: torch.optim.lr_scheduler.LRScheduler | None,
    batches: Iterable[tuple[Array, Array]],
) -> None:
    """Train both on the same batches, each side with its own gradients."""
    for input, target in batches:
        trainer.train_step(input, target)
        optimizer.zero_grad()
        loss(module(torch.from_numpy(input)), torch.from_numpy(target)).backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()


def largest_difference(model: Sequential, module: torch.nn.Module) -> float:
    """Of all parameters and buffers, from torch's of the same names."""
    ours, theirs = model.state_dict(), module.state_dict()
    assert list(ours) == list(theirs)
    return max(float(np.abs(value - theirs[name].numpy()).max()) for name, value in ours.items())
