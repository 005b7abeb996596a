"""The encoder of a Transformer beside torch's classes, and what they are made of."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from comparing import assert_equal

from nn_manual import (
    Dropout,
    LayerNorm,
    Linear,
    MultiheadAttention,
    Padded,
    PaddedTransformerEncoderLayer,
    Sequential,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from nn_manual.arrays import Array, Shape
from nn_manual.layers import LayerWithNoise

#: Some ten layers of sums of some ten products of numbers near 1, by the digits of the dtype.
TOLERANCES = {"float64": 1e-13, "float32": 3e-5}

SETTINGS: list[dict[str, Any]] = [
    {},
    {"norm_first": True},
    {"activation": "gelu"},
    {"activation": "gelu", "norm_first": True, "bias": False},
    {"bias": False, "layer_norm_eps": 0.1},
]


def drawn(layer: TransformerEncoderLayer | TransformerEncoder, dtype: str) -> Sequential:
    """A model of this layer with random parameters, the biases among them."""
    model = Sequential(layer, dtype=dtype)
    model.param_arena[:] = np.random.default_rng(2).standard_normal(model.num_parameters)
    return model


def of_torch(settings: dict[str, Any], dtype: str) -> torch.nn.TransformerEncoderLayer:
    return torch.nn.TransformerEncoderLayer(6, 3, 5, **settings, batch_first=True, dtype=getattr(torch, dtype))


def assert_same(model: Sequential, theirs: torch.nn.Module, shape: Shape, dtype: str) -> None:
    """Whether theirs takes our parameters by name and computes the same, in training without dropout and, by its own
    fast path, in evaluation.
    """
    state = {name.removeprefix("0."): torch.from_numpy(a.copy()) for name, a in model.state_dict().items()}
    assert list(state) == list(theirs.state_dict())
    theirs.load_state_dict(state)
    generator = np.random.default_rng(1)
    input, grad_output = (generator.standard_normal(shape).astype(dtype) for _ in range(2))
    leaf = torch.from_numpy(input.copy()).requires_grad_()
    expected = theirs(leaf)
    torch.autograd.backward(expected, torch.from_numpy(grad_output))
    output, saved = model.forward(input)
    assert leaf.grad is not None
    found = {"input": model.backward(saved, grad_output), **vars(model.grad)}
    wanted = {"input": leaf.grad, **{f"0.{name}": each.grad for name, each in theirs.named_parameters()}}
    assert_equal(output, expected.detach().numpy(), tolerance=TOLERANCES[dtype])
    for name, gradient in found.items():
        largest = max(1.0, float(np.abs(gradient).max()))
        assert_equal(gradient, np.asarray(wanted[name]), tolerance=TOLERANCES[dtype], scale=largest)
    with torch.no_grad():
        evaluated: Array = theirs.eval()(torch.from_numpy(input)).numpy()
    assert_equal(model(input), evaluated, tolerance=TOLERANCES[dtype])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(2, 4, 6), (1, 1, 6), (3, 1, 6), (1, 7, 6)], ids=str)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_layer_is_torchs(settings: dict[str, Any], shape: Shape, dtype: str) -> None:
    model = drawn(TransformerEncoderLayer(6, 3, 5, dropout=0, **settings), dtype)
    assert_same(model, of_torch({**settings, "dropout": 0}, dtype), shape, dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("num_layers", [1, 3])
def test_an_encoder_is_torchs(num_layers: int, norm: bool, dtype: str) -> None:
    layer = TransformerEncoderLayer(6, 3, 5, dropout=0, norm_first=norm)
    model = drawn(TransformerEncoder(layer, num_layers, LayerNorm(6) if norm else None), dtype)
    theirs = torch.nn.TransformerEncoder(
        of_torch({"dropout": 0, "norm_first": norm}, dtype),
        num_layers,
        torch.nn.LayerNorm(6, dtype=getattr(torch, dtype)) if norm else None,
        enable_nested_tensor=False,
    )
    assert_same(model, theirs, (2, 4, 6), dtype)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("window", [None, 2])
def test_causal_layers_are_torchs_with_a_mask(window: int | None, norm_first: bool) -> None:
    layer = TransformerEncoderLayer(6, 3, 5, dropout=0, norm_first=norm_first, causal=True, window=window)
    model = drawn(TransformerEncoder(layer, 2), "float64")
    theirs = torch.nn.TransformerEncoder(
        of_torch({"dropout": 0, "norm_first": norm_first}, "float64"), 2, enable_nested_tensor=False
    )
    theirs.load_state_dict({name.removeprefix("0."): torch.from_numpy(a) for name, a in model.state_dict().items()})
    input = np.random.default_rng(0).standard_normal((2, 5, 6))
    ahead = torch.arange(5) - torch.arange(5)[:, None]
    hidden = (ahead > 0) | (ahead.abs() >= (window or 5))
    expected = theirs(torch.from_numpy(input), mask=hidden).detach().numpy()
    assert_equal(model(input), expected, tolerance=TOLERANCES["float64"])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
def test_padded_layers_are_torchs_with_a_padding_mask(norm_first: bool, causal: bool) -> None:
    """Infinite padding changes nothing."""
    layer = PaddedTransformerEncoderLayer(6, 3, 5, dropout=0, norm_first=norm_first, causal=causal)
    model = drawn(TransformerEncoder(layer, 2), "float64")
    theirs = torch.nn.TransformerEncoder(
        of_torch({"dropout": 0, "norm_first": norm_first}, "float64"), 2, enable_nested_tensor=False
    )
    theirs.load_state_dict({name.removeprefix("0."): torch.from_numpy(a) for name, a in model.state_dict().items()})
    generator = np.random.default_rng(0)
    (input, grad_output), lengths = generator.standard_normal((2, 3, 5, 6)), np.array([2, 5, 3])
    counts = np.arange(5) < lengths[:, np.newaxis]
    later = torch.ones(5, 5, dtype=torch.bool).triu(1) if causal else None
    leaf = torch.from_numpy(input.copy()).requires_grad_()
    expected = theirs(leaf, mask=later, src_key_padding_mask=torch.from_numpy(~counts))
    expected = torch.where(torch.from_numpy(counts)[..., None], expected, 0)
    torch.autograd.backward(expected, torch.from_numpy(grad_output))
    input[~counts] = np.inf
    output, saved = model.forward(Padded(input, lengths))
    assert_equal(output, expected.detach().numpy(), tolerance=TOLERANCES["float64"])
    assert leaf.grad is not None
    assert_equal(model.backward(saved, grad_output), leaf.grad.numpy(), tolerance=TOLERANCES["float64"], scale=10)
    for name, parameter in theirs.named_parameters():
        gradient = vars(model.grad)[f"0.{name}"]
        largest = max(1.0, float(np.abs(gradient).max()))
        assert_equal(gradient, np.asarray(parameter.grad), tolerance=TOLERANCES["float64"], scale=largest)
    np.testing.assert_array_equal(model(Padded(input, lengths)), output)


def test_without_dropout_in_evaluation() -> None:
    """Also beside torch's class, which drops nothing then."""
    model = drawn(TransformerEncoderLayer(6, 3, 5, dropout=0.5), "float64")
    theirs = of_torch({"dropout": 0.5}, "float64").eval()
    theirs.load_state_dict({name.removeprefix("0."): torch.from_numpy(a) for name, a in model.state_dict().items()})
    input = np.random.default_rng(0).standard_normal((2, 4, 6))
    with torch.no_grad():
        expected = theirs(torch.from_numpy(input)).numpy()
    assert_equal(model(input), expected, tolerance=TOLERANCES["float64"])
    assert np.abs(model.forward(input)[0] - expected).max() > 0.1


@pytest.mark.parametrize("norm_first", [False, True])
def test_where_it_drops(norm_first: bool) -> None:
    """All that attention and the feed-forward net add is dropped with probability 1, and the LayerNorms stay."""
    layer = TransformerEncoderLayer(6, 3, 5, dropout=1, norm_first=norm_first)
    model, input = Sequential(layer, dtype="float64"), np.random.default_rng(0).standard_normal((2, 4, 6))
    centered = input - input.mean(axis=-1, keepdims=True)
    normalized = centered / np.sqrt(centered.var(axis=-1, keepdims=True) + 1e-5)
    normalized /= np.sqrt(normalized.var(axis=-1, keepdims=True) + 1e-5)
    assert_equal(model.forward(input)[0], input if norm_first else normalized, tolerance=TOLERANCES["float64"])
    dropping = [name for name, each in layer.children().items() if isinstance(each, Dropout)]
    assert dropping == ["dropout", "dropout1", "dropout2"]
    assert layer.input_shapes((2, 4, 6))["dropout"] == (2, 4, 5)
    assert layer.input_shapes((2, 4, 6))["dropout2"] == (2, 4, 6)


def test_no_random_numbers_without_dropout() -> None:
    children = TransformerEncoderLayer(6, 3, 5, dropout=0).children().values()
    assert not any(child.noise_shapes((2, 4, 6)) for child in children if isinstance(child, LayerWithNoise))


def test_each_layer_has_its_own_parameters() -> None:
    layer = TransformerEncoderLayer(6, 3, 5)
    one, other = (Sequential(TransformerEncoder(layer, 2), seed=seed) for seed in (0, 0))
    state = one.state_dict()
    assert not np.array_equal(state["0.layers.0.linear1.weight"], state["0.layers.1.linear1.weight"])
    np.testing.assert_array_equal(one.param_arena, other.param_arena)
    assert not hasattr(layer, "param")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ((0, 1), "d_model must be at least 1, not 0"),
        ((6, 0), "nhead must be at least 1, not 0"),
        ((6, 4), "nhead must divide d_model=6, 4 doesn't"),
        ((6, 3, 0), "dim_feedforward must be at least 1, not 0"),
        ((6, 3, 5, 1.5), "dropout must be between 0 and 1, not 1.5"),
        ((6, 3, 5, 0.1, "tanh"), "activation must be relu or gelu, not 'tanh'"),
        ((6, 3, 5, 0.1, "relu", -1.0), "layer_norm_eps must be at least 0, not -1.0"),
        ((6, 3, 5, 0.1, "relu", float("nan")), "layer_norm_eps must be at least 0, not nan"),
    ],
)
def test_refused_settings(settings: Any, words: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        TransformerEncoderLayer(*settings)


def test_refused_encoders() -> None:
    layer = TransformerEncoderLayer(6, 3, 5)
    for num_layers in (0, 1001):
        with pytest.raises(ValueError, match=f"^num_layers must be between 1 and 1000, not {num_layers}$"):
            TransformerEncoder(layer, num_layers)
    with pytest.raises(TypeError, match=r"^encoder_layer must be a TransformerEncoderLayer, not Linear"):
        TransformerEncoder(Linear(2, 2), 1)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(TypeError, match=r"^norm must be a LayerNorm, not MultiheadAttention"):
        TransformerEncoder(layer, 1, MultiheadAttention(2, 1))  # type: ignore[arg-type]  # as above
    with pytest.raises(ValueError, match=r"LayerNorm takes normalized_shape=5"):
        TransformerEncoder(layer, 1, LayerNorm(5)).output_shape((2, 4, 6))


@pytest.mark.parametrize("shape", [(6,), (4, 6), (2, 4, 5), (1, 2, 4, 6)], ids=str)
def test_refused_shapes(shape: Shape) -> None:
    words = f"TransformerEncoderLayer takes (batch, time, d_model=6), the input has shape {shape}"
    with pytest.raises(ValueError, match=re.escape(words)):
        TransformerEncoder(TransformerEncoderLayer(6, 3, 5), 2).output_shape(shape)
