"""The contract that every optimizer keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from nn_manual.arrays import Array, blocks
from nn_manual.model import Sequential


class Optimizer(ABC):
    """Moves the parameters of a model along its gradients.

    A concrete optimizer is a dataclass whose fields, but for `model`, are keyword arguments of the torch.optim class of
    the same name. They are the keys in YAML, too. Its docstring states the formulas, its `move` is those formulas.

    What an optimizer remembers from step to step lies in flat vectors, laid out as the model's `param_arena`. `vectors`
    holds them by the names that torch has for them in its state ("momentum_buffer"). They are zeros before the first
    step, as `num_steps` is. `lr` may be set between steps.
    """

    model: Sequential
    lr: float
    num_steps: int
    vectors: dict[str, Array]

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """The settings, as keyword arguments, with which the catalogue checks the class. Together they use each line
        of its formula, and each pair of lines that could interfere.
        """
        return [{}]

    def remember(self, *names: str) -> None:
        """Start at step 0 with a vector of zeros for each name. A constructor calls this."""
        self.num_steps = 0
        self.vectors = {name: np.zeros_like(self.model.param_arena) for name in names}

    def step(self) -> None:
        """Move the model's parameters once, along its gradients: a cache-sized block of the flat vectors at a time."""
        for block in blocks(self.model.param_arena.size):
            self.move(block)
        self.num_steps += 1

    @abstractmethod
    def move(self, block: slice) -> None:
        """One step of the parameters and of the vectors in this block. `num_steps` steps were made before."""

    def state(self) -> dict[str, Array]:
        """`num_steps`, an int64 scalar, and the vectors by name, as views: a copy is the caller's to make."""
        return {"num_steps": np.array(self.num_steps), **self.vectors}

    def load_state(self, state: Mapping[str, Array]) -> None:
        """Copy in what `state` returned. Raises ValueError for a missing or unexpected name and for a shape that
        doesn't fit, before anything is changed.
        """
        own = self.state()
        for name in sorted(own.keys() ^ state.keys()):
            raise ValueError(f"{'missing' if name in own else 'unexpected'} {name!r} in the optimizer's state")
        for name, value in state.items():
            if value.shape != own[name].shape:
                raise ValueError(f"{name!r} has shape {own[name].shape}, the state's has {value.shape}")
        self.num_steps = int(state["num_steps"])
        for name, vector in self.vectors.items():
            vector[...] = state[name]
