"""A net of ours as a user of JAX would write it: functions of parameters, for XLA to compile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.translation import Translation, not_translated
from nn_manual import (
    GELU,
    LSTM,
    BatchNorm2d,
    CausalSelfAttention,
    Conv2d,
    Embedding,
    Flatten,
    Layer,
    LayerNorm,
    LearnedPositions,
    Linear,
    MaxPool2d,
    ReLU,
    Residual,
    Sequential,
    Unflatten,
)

T = TypeVar("T")
#: The parameters and buffers by their names, which begin with the layer's.
Values = dict[str, Any]
#: What a layer computes from the values and its input, and the buffers that it changes.
Function = Callable[[Values, Any], tuple[Any, Values]]


def jax_net(model: Sequential | Residual) -> Function:
    """A function of parameters and buffers by their names, and of an input: what the last of the layers puts out, and
    the new buffers. Raises NotImplementedError for a layer, and for a setting of one, that isn't translated.
    """
    functions = {name: in_jax(layer, TRANSLATIONS) for name, layer in model.children().items()}

    def function(values: Values, input: Any) -> tuple[Any, Values]:
        changed: Values = {}
        for name, inner in functions.items():
            own = {key.removeprefix(f"{name}."): value for key, value in values.items() if key.startswith(f"{name}.")}
            input, of_inner = inner(own, input)
            changed |= {f"{name}.{key}": value for key, value in of_inner.items()}
        return input, changed

    return function


def in_jax(ours: Any, translations: Mapping[type, Translation[T]]) -> T:
    """What stands for a layer, loss or optimizer. Raises NotImplementedError for a class without a translation, and for
    a setting that has none.
    """
    if type(ours) not in translations:
        raise NotImplementedError(f"there is no {type(ours).__name__} in JAX here")
    return translations[type(ours)](ours)


def _residual(layer: Residual) -> Function:
    inner = jax_net(layer)

    def function(values: Values, input: Any) -> tuple[Any, Values]:
        output, changed = inner(values, input)
        return input + output, changed

    return function


def _batch_norm(layer: BatchNorm2d) -> Function:
    momentum = layer.momentum
    if momentum is None:
        raise not_translated(layer, "momentum")

    def function(values: Values, input: Any) -> tuple[Any, Values]:
        axes, count = (0, 2, 3), input.size // input.shape[1]
        mean, variance = input.mean(axes), input.var(axes)
        changed = {
            "running_mean": (1 - momentum) * values["running_mean"] + momentum * mean,
            "running_var": (1 - momentum) * values["running_var"] + momentum * variance * count / (count - 1),
        }
        scale = values["weight"] * lax.rsqrt(variance + layer.eps)
        return (input - mean[:, None, None]) * scale[:, None, None] + values["bias"][:, None, None], changed

    return function


def _linear(_: Linear, values: Values, input: Any) -> Any:
    return input @ values["weight"].T + values.get("bias", 0)


def _layer_norm(layer: LayerNorm, values: Values, input: Any) -> Any:
    mean, variance = input.mean(layer.axes, keepdims=True), input.var(layer.axes, keepdims=True)
    return (input - mean) * lax.rsqrt(variance + layer.eps) * values["weight"] + values["bias"]


def _shaped(layer: Flatten | Unflatten, _: Values, input: Any) -> Any:
    return input.reshape(layer.output_shape(input.shape))


def _attention(layer: CausalSelfAttention, values: Values, input: Any) -> Any:
    batch, time, width = input.shape
    shape = batch, time, layer.num_heads, width // layer.num_heads
    projected = input @ values["in_proj_weight"].T + values["in_proj_bias"]
    query, key, value = (part.reshape(shape) for part in jnp.split(projected, 3, axis=-1))
    output = jax.nn.dot_product_attention(query, key, value, is_causal=True)
    return output.reshape(batch, time, width) @ values["out_proj.weight"].T + values["out_proj.bias"]


def _convolution(layer: Conv2d, values: Values, input: Any) -> Any:
    padding = layer.padding
    pads = padding.upper() if isinstance(padding, str) else [(size, size) for size in _pair(padding)]
    numbers = ("NCHW", "OIHW", "NCHW")
    return lax.conv_general_dilated(input, values["weight"], _pair(layer.stride), pads, dimension_numbers=numbers)


def _max_pool(layer: MaxPool2d, _: Values, input: Any) -> Any:
    window = (1, 1, *_pair(layer.kernel_size))
    return lax.reduce_window(input, -jnp.inf, lax.max, window, window, "VALID")


def _lstm(layer: LSTM, values: Values, input: Any) -> Any:
    gates = input @ values["weight_ih_l0"].T + values["bias_ih_l0"] + values["bias_hh_l0"]
    zeros = jnp.zeros((input.shape[0], layer.hidden_size), input.dtype)

    def step(state: tuple[Any, Any], of_input: Any) -> tuple[tuple[Any, Any], Any]:
        hidden, cell = state
        i, f, g, o = jnp.split(of_input + hidden @ values["weight_hh_l0"].T, 4, axis=-1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
        return (hidden, cell), hidden

    _, output = lax.scan(step, (zeros, zeros), gates.swapaxes(0, 1))
    return output.swapaxes(0, 1)


def _pair(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else tuple(size)


def _pure(function: Callable[[Any, Values, Any], Any], *heeded: str, **needed: object) -> Translation[Function]:
    """That of a layer without buffers: `function` computes the output from the layer, its values and the input."""
    return Translation(lambda layer: lambda values, input: (function(layer, values, input), {}), *heeded, **needed)


TRANSLATIONS: Mapping[type[Layer], Translation[Function]] = {
    Sequential: Translation(jax_net),
    Residual: Translation(_residual, "layers"),
    BatchNorm2d: Translation(_batch_norm, "num_features", "eps", "momentum"),
    Linear: _pure(_linear, "in_features", "out_features", "bias"),
    ReLU: _pure(lambda _layer, _values, input: jax.nn.relu(input)),
    GELU: _pure(lambda layer, _, input: jax.nn.gelu(input, approximate=layer.approximate == "tanh"), "approximate"),
    LayerNorm: _pure(_layer_norm, "normalized_shape", "eps"),
    Embedding: _pure(lambda _, values, input: values["weight"][input], "num_embeddings", "embedding_dim"),
    LearnedPositions: _pure(
        lambda _, values, input: input + values["weight"][: input.shape[1]], "num_positions", "embedding_dim"
    ),
    Flatten: _pure(_shaped, "start_dim", "end_dim"),
    Unflatten: _pure(_shaped, "dim", "unflattened_size"),
    CausalSelfAttention: _pure(_attention, "embed_dim", "num_heads"),
    Conv2d: _pure(_convolution, "in_channels", "out_channels", "kernel_size", "stride", "padding", bias=False),
    MaxPool2d: _pure(_max_pool, "kernel_size"),
    LSTM: _pure(_lstm, "input_size", "hidden_size", batch_first=True),
}
