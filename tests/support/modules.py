"""A small model for torch's models to hold, and a tensor for it."""

from __future__ import annotations

import numpy as np
import torch

from nn_manual import Linear, ReLU, Sequential, Tanh


def net(dtype: str = "float64", seed: int = 1) -> Sequential:
    return Sequential(Linear(3, 4), Tanh(), Sequential(Linear(4, 2), ReLU()), seed=seed, dtype=dtype)


def draw(*shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).standard_normal(shape)).requires_grad_()
