"""The nets that are timed in JAX are the same nets."""

from __future__ import annotations

import numpy as np
import pytest

from nn_manual import (
    GELU,
    LSTM,
    SGD,
    Adam,
    AdamW,
    BatchNorm2d,
    CausalSelfAttention,
    Conv2d,
    CrossEntropyLoss,
    Embedding,
    Flatten,
    Layer,
    LayerNorm,
    LearnedPositions,
    Linear,
    MaxPool2d,
    MSELoss,
    ReLU,
    Residual,
    Sequential,
    Tanh,
    Unflatten,
)
from nn_manual.optim import Optimizer

pytest.importorskip("jax", reason="no jax: pip install 'nn_manual[bench]'")

from benchmarks.peers.jax_nets import in_jax, jax_net
from benchmarks.peers.jax_training import LOSSES, UPDATES

IMAGES, TOKENS = (2, 3, 6, 6), (2, 5, 8)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (Linear(8, 3), TOKENS),
        (Linear(8, 3, bias=False), TOKENS),
        (ReLU(), TOKENS),
        (GELU(), TOKENS),
        (GELU("tanh"), TOKENS),
        (LayerNorm(8, eps=0.1), TOKENS),
        (LayerNorm([5, 8]), TOKENS),
        (LearnedPositions(7, 8), TOKENS),
        (Flatten(), IMAGES),
        (Flatten(2, 3), IMAGES),
        (Unflatten(2, [2, 4]), TOKENS),
        (CausalSelfAttention(8, 2), TOKENS),
        (Conv2d(3, 2, [2, 3], bias=False), IMAGES),
        (Conv2d(3, 2, 3, [1, 2], padding=[1, 0], bias=False), IMAGES),
        (Conv2d(3, 2, [2, 3], padding="same", bias=False), IMAGES),
        (Conv2d(3, 2, 3, padding="valid", bias=False), IMAGES),
        (MaxPool2d(2), IMAGES),
        (MaxPool2d([3, 2]), IMAGES),
        (LSTM(8, 4, batch_first=True), TOKENS),
        (BatchNorm2d(3, eps=0.1, momentum=0.3), IMAGES),
        (Residual(Linear(8, 8), ReLU()), TOKENS),
        (Sequential(Linear(8, 8), ReLU()), TOKENS),
    ],
)
def test_a_layer_computes_what_ours_does(layer: Layer, shape: tuple[int, ...]) -> None:
    model, input = Sequential(layer), np.random.default_rng(0).standard_normal(shape, np.float32)
    values = {**vars(model.param), **vars(model.buffer)}
    output, changed = jax_net(model)(values, input)
    expected, saved = model.forward(input)
    np.testing.assert_allclose(output, expected, rtol=0, atol=1e-5)
    model.update_buffers(saved)
    assert len(changed) == 2 * isinstance(layer, BatchNorm2d)  # nothing is computed from its number of batches
    for name, buffer in changed.items():
        np.testing.assert_allclose(buffer, vars(model.buffer)[name], rtol=0, atol=1e-5)


def test_an_embedding_looks_up_what_ours_does() -> None:
    model, input = Sequential(Embedding(5, 3)), np.array([[4, 0], [1, 4]])
    output, _ = jax_net(model)(dict(vars(model.param)), input)
    assert np.array_equal(output, model.forward(input)[0])


@pytest.mark.parametrize(
    ("layer", "what"),
    [
        (LayerNorm(8, bias=False), "LayerNorm with bias=False"),
        (Embedding(5, 3, padding_idx=0), "Embedding with padding_idx=0"),
        (CausalSelfAttention(8, 2, dropout=0.5), "CausalSelfAttention with dropout=0.5"),
        (CausalSelfAttention(8, 2, window=2), "CausalSelfAttention with window=2"),
        (CausalSelfAttention(8, 2, num_kv_heads=1), "CausalSelfAttention with num_kv_heads=1"),
        (CausalSelfAttention(8, 2, positions="alibi"), "CausalSelfAttention with positions='alibi'"),
        (Conv2d(3, 2, 3), "Conv2d with bias=True"),
        (Conv2d(3, 2, 3, bias=False, dilation=2), "Conv2d with dilation=2"),
        (Conv2d(4, 2, 3, bias=False, groups=2), "Conv2d with groups=2"),
        (MaxPool2d(3, stride=2), "MaxPool2d with stride=2"),
        (LSTM(8, 4), "LSTM with batch_first=False"),
        (LSTM(8, 4, 2, batch_first=True), "LSTM with num_layers=2"),
        (LSTM(8, 4, batch_first=True, proj_size=2), "LSTM with proj_size=2"),
        (BatchNorm2d(3, momentum=None), "BatchNorm2d with momentum=None"),
        (Residual(LSTM(8, 4, batch_first=True, bias=False)), "LSTM with bias=False"),
    ],
)
def test_a_setting_that_is_not_translated_is_refused(layer: Layer, what: str) -> None:
    with pytest.raises(NotImplementedError) as refused:
        jax_net(Sequential(layer))
    assert str(refused.value) == f"{what} isn't translated here"


@pytest.mark.parametrize(
    ("optimizer", "what"),
    [
        (SGD(Sequential(Linear(2, 2)), nesterov=True, momentum=0.9), "SGD with nesterov=True"),
        (Adam(Sequential(Linear(2, 2)), weight_decay=0.1), "Adam with weight_decay=0.1"),
        (AdamW(Sequential(Linear(2, 2)), amsgrad=True), "AdamW with amsgrad=True"),
    ],
)
def test_so_is_one_of_an_optimizer(optimizer: Optimizer, what: str) -> None:
    with pytest.raises(NotImplementedError) as refused:
        in_jax(optimizer, UPDATES)
    assert str(refused.value) == f"{what} isn't translated here"


def test_so_is_one_of_a_loss() -> None:
    with pytest.raises(NotImplementedError, match=r"CrossEntropyLoss with label_smoothing=0.1 isn't translated here"):
        in_jax(CrossEntropyLoss(label_smoothing=0.1), LOSSES)


def test_a_class_without_a_translation_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="there is no Tanh in JAX here"):
        jax_net(Sequential(Tanh()))
    with pytest.raises(NotImplementedError, match="there is no MSELoss in JAX here"):
        in_jax(MSELoss(), LOSSES)
