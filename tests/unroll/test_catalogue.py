"""Each layer, loss and optimizer of the package as a script: bit for bit the step, for two sizes of the batch."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from nn_manual import SGD, AdamW, CrossEntropyLoss, Linear, MSELoss, Sequential, Tanh
from nn_manual.arrays import DTYPES, Array, Shape
from nn_manual.layers import Layer
from nn_manual.losses import Loss
from nn_manual.optim import Optimizer
from nn_manual.registry import components, examples
from nn_manual.unroll.command import proven_script
from nn_manual.unroll.sections import Subject

#: But for those whose first dimension isn't the batch.
LAYERS = [
    (layer, shape)
    for layer, shape in examples(components(Layer))
    if getattr(layer, "batch_first", True) and getattr(layer, "start_dim", 1)
]
LOSSES = examples(components(Loss))
OPTIMIZERS = [
    (optimizer, settings) for optimizer in components(Optimizer).values() for settings in optimizer.examples()
]

#: How many examples the largest batch has, and the one that is proven beside it.
SIZES = 6, 3


def page_of(model: Sequential, loss: Loss, optimizer: Optimizer, input: Array, target: Array) -> str:
    kind = "indices" if target.dtype.kind == "i" else "probabilities"
    subject = Subject("a test", model, loss, optimizer, kind, is_scheduled=False)
    _, text = proven_script(subject, [(input[:size], target[:size]) for size in SIZES], max_norm=0.3)
    return text


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("layer", "shape"), LAYERS, ids=[str(layer) for layer, _ in LAYERS])
def test_each_layer(layer: Layer, shape: Shape, dtype: str) -> None:
    generator = np.random.default_rng(0)
    model = Sequential(copy.deepcopy(layer), seed=0, dtype=dtype)
    model.param_arena[:] = generator.uniform(-1, 1, model.num_parameters)
    shape = (SIZES[0], *shape[1:])
    input = generator.uniform(0.2, 1, shape).astype(dtype)
    if isinstance(layer.domain, range):
        input = generator.integers(layer.domain.start, layer.domain.stop, shape)
    target = generator.uniform(-1, 1, layer.output_shape(shape)).astype(dtype)
    text = page_of(model, MSELoss(), AdamW(model, lr=0.01), input, target)
    assert "as_strided" not in text
    assert "nn_manual" not in text


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_each_loss(loss: Loss) -> None:
    generator = np.random.default_rng(0)
    model = Sequential(Linear(4, 5), seed=0)
    input, values = generator.standard_normal((6, 4), np.float32), generator.standard_normal((6, 5), np.float32)
    targets = [values]
    if isinstance(loss, CrossEntropyLoss):
        targets = [generator.integers(0, 5, 6), abs(values) / abs(values).sum(axis=1, keepdims=True)]
        targets = targets[: 1 + (loss.ignore_index < 0)]
    for target in targets:
        page_of(model, loss, SGD(model, lr=0.1), input, target)


@pytest.mark.parametrize(("optimizer", "settings"), OPTIMIZERS, ids=str)
def test_each_optimizer(optimizer: Any, settings: dict[str, Any]) -> None:
    generator = np.random.default_rng(0)
    model = Sequential(Linear(4, 5), Tanh(), Linear(5, 3), seed=0)
    input, target = (generator.standard_normal((6, size), np.float32) for size in (4, 3))
    text = page_of(model, MSELoss(), optimizer(model, **settings), input, target)
    assert " + 0.0" not in text
