"""A net of ours as a user of JAX would write it: functions of parameters, for XLA to compile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

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

#: The parameters and buffers by their names, which begin with the layer's.
Values = dict[str, Any]
#: What a layer computes from the values and its input, and the buffers that it changes.
Function = Callable[[Values, Any], tuple[Any, Values]]


def jax_net(model: Sequential) -> Function:
    """A function of parameters and buffers by their names, and of an input: the model's output, and the new buffers."""
    return _chain([(name, _version(layer)) for name, layer in model.children().items()])


def _chain(functions: list[tuple[str, Function]]) -> Function:
    def function(values: Values, input: Any) -> tuple[Any, Values]:
        changed: Values = {}
        for name, inner in functions:
            own = {key.removeprefix(f"{name}."): value for key, value in values.items() if key.startswith(f"{name}.")}
            input, of_inner = inner(own, input)
            changed |= {f"{name}.{key}": value for key, value in of_inner.items()}
        return input, changed

    return function


def _version(layer: Layer) -> Function:
    match layer:
        case Residual():
            inner = _chain([(name, _version(child)) for name, child in layer.children().items()])
            return lambda values, input: _added(input, *inner(values, input))
        case Sequential():
            return jax_net(layer)
        case BatchNorm2d():
            return _batch_norm(layer)
    function = _pure(layer)
    return lambda values, input: (function(values, input), {})


def _added(input: Any, output: Any, changed: Values) -> tuple[Any, Values]:
    return input + output, changed


def _pure(layer: Layer) -> Callable[[Values, Any], Any]:
    match layer:
        case Linear():
            return lambda values, input: input @ values["weight"].T + values.get("bias", 0)
        case ReLU():
            return lambda _, input: jax.nn.relu(input)
        case GELU():
            return lambda _, input: jax.nn.gelu(input, approximate=layer.approximate == "tanh")
        case LayerNorm():
            return lambda values, input: _normalized(input, -1, layer.eps) * values["weight"] + values["bias"]
        case Embedding():
            return lambda values, input: values["weight"][input]
        case LearnedPositions():
            return lambda values, input: input + values["weight"][: input.shape[1]]
        case Flatten():
            return lambda _, input: input.reshape(layer.output_shape(input.shape))
        case Unflatten():
            return lambda _, input: input.reshape(layer.output_shape(input.shape))
        case CausalSelfAttention():
            return _attention(layer)
        case Conv2d():
            return _convolution(layer)
        case MaxPool2d():
            return _max_pool(layer)
        case LSTM():
            return _lstm(layer)
    raise NotImplementedError(f"there is no {type(layer).__name__} in JAX here")


def _normalized(input: Any, axis: Any, eps: float) -> Any:
    mean, variance = input.mean(axis, keepdims=True), input.var(axis, keepdims=True)
    return (input - mean) * lax.rsqrt(variance + eps)


def _batch_norm(layer: BatchNorm2d) -> Function:
    assert layer.momentum is not None  # the nets of config/ have one
    momentum = layer.momentum

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


def _attention(layer: CausalSelfAttention) -> Callable[[Values, Any], Any]:
    def function(values: Values, input: Any) -> Any:
        batch, time, width = input.shape
        shape = batch, time, layer.num_heads, width // layer.num_heads
        projected = input @ values["in_proj_weight"].T + values["in_proj_bias"]
        query, key, value = (part.reshape(shape) for part in jnp.split(projected, 3, axis=-1))
        output = jax.nn.dot_product_attention(query, key, value, is_causal=True)
        return output.reshape(batch, time, width) @ values["out_proj.weight"].T + values["out_proj.bias"]

    return function


def _convolution(layer: Conv2d) -> Callable[[Values, Any], Any]:
    assert not layer.bias  # the nets of config/ have none
    (stride, padding) = (_pair(layer.stride), _pair(layer.padding))

    def function(values: Values, input: Any) -> Any:
        numbers = ("NCHW", "OIHW", "NCHW")
        pads = [(size, size) for size in padding]
        return lax.conv_general_dilated(input, values["weight"], stride, pads, dimension_numbers=numbers)

    return function


def _max_pool(layer: MaxPool2d) -> Callable[[Values, Any], Any]:
    window = (1, 1, *_pair(layer.kernel_size))
    return lambda _, input: lax.reduce_window(input, -jnp.inf, lax.max, window, window, "VALID")


def _lstm(layer: LSTM) -> Callable[[Values, Any], Any]:
    assert layer.batch_first
    assert layer.num_layers == 1  # as the net of config/

    def function(values: Values, input: Any) -> Any:
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

    return function


def _pair(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else tuple(size)
