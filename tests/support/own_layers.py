"""Layers that a user would write without a reference, each with the mistakes that one makes in its backward."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from nn_manual import Layer
from nn_manual.arrays import Array, Shape

Backward = Callable[..., dict[str, Array]]


class Formulas(NamedTuple):
    """`forward(input, **parameters)` gives output and saved, `backward(saved, grad_output, **parameters)` all gradients
    by name; `wrong` are backward passes with a mistake. `shapes` are those of the parameters for so many features.
    """

    forward: Callable[..., tuple[Array, Any]]
    backward: Backward
    wrong: list[Backward]
    shapes: Callable[[int], dict[str, Shape]] = lambda features: {}  # noqa: ARG005 - most have no parameters
    num_outputs: Callable[[int], int] = lambda features: features


def own_layer(name: str, features: int, backward: Backward) -> Layer:
    """The layer of FORMULAS[name] for inputs (batch, features), with this backward."""
    formulas = FORMULAS[name]

    class Own(Layer):
        def parameter_shapes(self) -> dict[str, Shape]:
            return formulas.shapes(features)

        def reset_parameters(self, generator: np.random.Generator) -> None:
            for view in vars(self.param).values():
                view[...] = generator.uniform(-1, 1, view.shape)

        def output_shape(self, input_shape: Shape) -> Shape:
            return (*input_shape[:-1], formulas.num_outputs(features))

        def forward(self, input: Array) -> tuple[Array, Any]:
            output, saved = formulas.forward(input, **vars(self.param))
            return output.astype(input.dtype), saved

        def backward(self, saved: Any, grad_output: Array) -> Array:
            grads = backward(saved, grad_output, **vars(self.param))
            for name, view in vars(self.grad).items():
                view[...] = grads[name]
            return grads["input"].astype(grad_output.dtype)

    Own.__name__ = name
    return Own()


def rms_norm(input: Array, weight: Array) -> tuple[Array, Any]:
    inverse = 1 / np.sqrt((input * input).mean(axis=-1, keepdims=True) + 1e-6)
    return input * inverse * weight, (input * inverse, inverse)


def rms_norm_backward(saved: Any, grad: Array, weight: Array, sum: Callable[..., Array] = np.mean) -> dict[str, Array]:
    normal, inverse = saved
    grad_normal = grad * weight
    projection = sum(grad_normal * normal, axis=-1, keepdims=True)
    return {"weight": (grad * normal).sum(axis=0), "input": inverse * (grad_normal - normal * projection)}


def standardized(axis: int) -> tuple[Callable[..., Any], Backward, Backward]:
    """Forward, backward and a backward without the mean's share, over one axis."""

    def forward(input: Array) -> tuple[Array, Any]:
        centered = input - input.mean(axis=axis, keepdims=True)
        inverse = 1 / np.sqrt((centered * centered).mean(axis=axis, keepdims=True) + 1e-5)
        return centered * inverse, (centered * inverse, inverse)

    def without_mean(saved: Any, grad: Array) -> dict[str, Array]:
        normal, inverse = saved
        return {"input": inverse * (grad - normal * (grad * normal).mean(axis=axis, keepdims=True))}

    def backward(saved: Any, grad: Array) -> dict[str, Array]:
        return without_mean(saved, grad - grad.mean(axis=axis, keepdims=True))

    return forward, backward, without_mean


def softmax(scores: Array) -> Array:
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    result: Array = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return result


def softmax_backward(output: Array, grad: Array) -> Array:
    grad_scores: Array = output * (grad - (grad * output).sum(axis=-1, keepdims=True))
    return grad_scores


def attention(input: Array, query: Array, key: Array, value: Array, key_bias: Array) -> tuple[Array, Any]:
    queries, keys, values = input @ query, input @ key + key_bias, input @ value
    weights = softmax(queries @ keys.T / np.sqrt(len(query)))
    return weights @ values, (input, queries, keys, values, weights)


def attention_backward(
    saved: Any, grad: Array, query: Array, key: Array, value: Array, key_bias: Array, scaled: bool = True
) -> dict[str, Array]:
    """The gradient of `key_bias` is 0: it adds the same to all scores of a row."""
    input, queries, keys, values, weights = saved
    grad_scores = softmax_backward(weights, grad @ values.T) / (np.sqrt(len(key_bias)) if scaled else 1)
    grads = {"query": grad_scores @ keys, "key": grad_scores.T @ queries, "value": weights.T @ grad}
    grad_input = grads["query"] @ query.T + grads["key"] @ key.T + grads["value"] @ value.T
    of_weights = {name: input.T @ grad for name, grad in grads.items()}
    return {**of_weights, "key_bias": grads["key"].sum(axis=0), "input": grad_input}


def residual(input: Array, weight: Array, bias: Array) -> tuple[Array, Any]:
    hidden = input @ weight + bias
    return input + np.maximum(hidden, 0), (input, hidden)


def residual_backward(saved: Any, grad: Array, weight: Array, bias: Array, skip: float = 1) -> dict[str, Array]:  # noqa: ARG001 - it gets all parameters
    input, hidden = saved
    grad_hidden = grad * (hidden > 0)
    grad_input = skip * grad + grad_hidden @ weight.T
    return {"weight": input.T @ grad_hidden, "bias": grad_hidden.sum(axis=0), "input": grad_input}


def gated(input: Array) -> tuple[Array, Any]:
    values, scores = np.split(input, 2, axis=-1)
    gate = (1 + np.tanh(scores / 2)) / 2  # the sigmoid, which doesn't overflow
    return values * gate, (values, gate)


def gated_backward(saved: Any, grad: Array, power: int = 1) -> dict[str, Array]:
    values, gate = saved
    return {"input": np.concatenate([grad * gate, grad * values * gate * (1 - gate) ** power], axis=-1)}


def largest(input: Array) -> tuple[Array, Any]:
    return input.max(axis=-1, keepdims=True), input


def largest_backward(input: Array, grad: Array) -> dict[str, Array]:
    """To the first of those that are tied."""
    return {"input": grad * (np.arange(input.shape[-1]) == input.argmax(axis=-1)[:, None])}


def elementwise(function: Callable[[Array], Array], slope: Callable[[Array], Array], wrong: Any) -> Formulas:
    return Formulas(
        lambda input: (function(input), input),
        lambda input, grad: {"input": grad * slope(input)},
        [lambda input, grad: {"input": grad * wrong(input)}],
    )


layer_norm, layer_norm_backward, layer_norm_wrong = standardized(axis=-1)
batch_norm, batch_norm_backward, batch_norm_wrong = standardized(axis=0)

FORMULAS: dict[str, Formulas] = {
    "RMSNorm": Formulas(
        rms_norm,
        rms_norm_backward,
        [partial(rms_norm_backward, sum=np.sum)],
        lambda features: {"weight": (features,)},
    ),
    "OverFeatures": Formulas(layer_norm, layer_norm_backward, [layer_norm_wrong]),
    "OverBatch": Formulas(batch_norm, batch_norm_backward, [batch_norm_wrong]),
    "Probabilities": Formulas(
        lambda input: (softmax(input),) * 2,
        lambda output, grad: {"input": softmax_backward(output, grad)},
        [lambda output, grad: {"input": grad * output * (1 - output)}],
    ),
    "Attention": Formulas(
        attention,
        attention_backward,
        [partial(attention_backward, scaled=False)],
        lambda features: dict.fromkeys(("query", "key", "value"), (features, features)) | {"key_bias": (features,)},
    ),
    "Residual": Formulas(
        residual,
        residual_backward,
        [partial(residual_backward, skip=0)],
        lambda features: {"weight": (features, features), "bias": (features,)},
    ),
    "Gated": Formulas(
        gated,
        gated_backward,
        [partial(gated_backward, power=0)],
        num_outputs=lambda features: features // 2,
    ),
    "Largest": Formulas(
        largest,
        largest_backward,
        [lambda input, grad: {"input": grad * np.full_like(input, 1 / input.shape[-1])}],
        num_outputs=lambda features: 1,  # noqa: ARG005 - one output for any features
    ),
    "Elu": elementwise(
        lambda input: np.where(input > 0, input, np.expm1(np.minimum(input, 0))),
        lambda input: np.exp(np.minimum(input, 0)),
        lambda input: np.where(input > 0, 1, np.expm1(np.minimum(input, 0))),
    ),
    "Shrunk": elementwise(
        lambda input: np.sign(input) * np.maximum(np.abs(input) - 0.5, 0),
        lambda input: np.abs(input) > 0.5,
        lambda input: input > 0.5,
    ),
    "Magnitude": elementwise(np.abs, np.sign, np.ones_like),
    "FastSine": elementwise(lambda x: np.sin(30 * x), lambda x: 30 * np.cos(30 * x), lambda x: np.cos(30 * x)),
}
