"""Steps of an optimizer beside torch's, on the same gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nn_manual import Linear, Sequential, Tanh, optim
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
