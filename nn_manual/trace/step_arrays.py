"""The arrays that a step gets, by their names in a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nn_manual.arrays import Array, unpadded
from nn_manual.layers.composite import counter_names, descendants
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer
from nn_manual.trace.trace import CannotTrace


def given(
    model: Sequential, optimizer: Optimizer, input: Array, target: Array, *, with_update: bool = True
) -> dict[str, Array]:
    """The arrays that the optimizer's next step is given, by name. They are the model's and the optimizer's own arrays,
    except for input, target, flat buffers and coefficients, which are copies. Without an update the optimizer's arrays
    are left out. Raises CannotTrace for a model that heeds lengths.
    """
    if model.lengths_heeded_by:
        raise CannotTrace(f"{model.lengths_heeded_by} heeds lengths, which a trace doesn't take")
    input, target = unpadded(input).copy(), target.copy()
    model.bind_noise(input.shape)
    buffer, counters = flat_buffers(model)
    arrays = {"param": model.param_arena, "grad": model.grad_arena, "input": input, "target": target}
    arrays |= {"buffer": buffer, "counters": counters}
    arrays |= {f"{name}.grad of this use": grad for name, grad in model.ties.use_grads.items()}
    for name, layer in descendants(model):
        if hasattr(layer, "noise"):
            arrays |= {f"{name}.noise.{key}": noise for key, noise in vars(layer.noise).items()}
    return arrays | (given_to_update(optimizer) if with_update else {})


def given_to_update(optimizer: Optimizer) -> dict[str, Array]:
    """The optimizer's vectors, and the coefficients of its next step."""
    arrays = dict(optimizer.vectors)
    for i, part in enumerate(optimizer.parts):
        coefficients = part.rounded_coefficients(optimizer.num_steps + 1)
        arrays |= {f"{i}.{name}": coefficient.copy() for name, coefficient in coefficients.items()}
    return arrays


def flat_buffers(model: Sequential) -> tuple[Array, Array]:
    """A model's buffers as two vectors: those in its dtype, and the counters."""
    buffers = vars(model.buffer)
    counts = {name: buffers[name] for name in counter_names(model)}
    values = {name: buffer for name, buffer in buffers.items() if name not in counts}
    return _flat(values, model.dtype), _flat(counts, np.dtype(np.int64))


def _flat(arrays: Mapping[str, Array], dtype: np.dtype[Any]) -> Array:
    return np.concatenate([np.ravel(array) for array in arrays.values()], dtype=dtype) if arrays else np.empty(0, dtype)
