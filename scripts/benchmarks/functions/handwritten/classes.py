"""Classes as courses have them: a net with its loss, a layer with dinputs."""

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks.functions.subject import Handwriting
from nn_manual import HandwrittenClass


def net(x: Any, t: Any, W1: Any, b1: Any, W2: Any, b2: Any) -> Any:
    return functional.cross_entropy(torch.relu(x @ W1 + b1) @ W2 + b2, t)


class TwoLayerNet:
    """The ReLU has the slope 1 at zero."""

    def __init__(self, W1: Any, b1: Any, W2: Any, b2: Any) -> None:
        self.params = {"W1": W1, "b1": b1, "W2": W2, "b2": b2}
        self.grads: dict[str, Any] = {}

    def loss(self, x: Any, t: Any) -> Any:
        p = self.params
        self.x, self.t = x, t
        self.a1 = x @ p["W1"] + p["b1"]
        self.z1 = np.maximum(0, self.a1)
        scores = self.z1 @ p["W2"] + p["b2"]
        scores -= scores.max(axis=1, keepdims=True)
        total = np.exp(scores).sum(axis=1)
        self.y = np.exp(scores) / total[:, None]
        return np.mean(np.log(total) - scores[np.arange(len(t)), t])

    def gradient(self) -> Any:
        batch_size = len(self.t)
        dscores = self.y.copy()
        dscores[np.arange(batch_size), self.t] -= 1
        dscores /= batch_size
        self.grads["W2"] = self.z1.T @ dscores
        self.grads["b2"] = dscores.sum(axis=0)
        dz1 = dscores @ self.params["W2"].T
        da1 = np.where(self.a1 >= 0, dz1, 0)
        self.grads["W1"] = self.x.T @ da1
        self.grads["b1"] = da1.sum(axis=0)
        return da1 @ self.params["W1"].T


def dropped(inputs: Any, mask: Any, weights: Any, biases: Any) -> Any:
    return inputs * mask / 0.8 @ weights + biases


class DenseWithDropout:
    """The gradient of the inputs is masked, and not divided by the rate of those that are kept."""

    def __init__(self, weights: Any, biases: Any) -> None:
        self.weights, self.biases = weights, biases

    def forward(self, inputs: Any, mask: Any) -> Any:
        self.mask = mask
        self.kept = inputs * mask / 0.8
        self.output = np.dot(self.kept, self.weights) + self.biases
        return self.output

    def backward(self, dvalues: Any) -> None:
        self.dweights = np.dot(self.kept.T, dvalues)
        self.dbiases = np.sum(dvalues, axis=0, keepdims=True)
        self.dinputs = np.dot(dvalues, self.weights.T) * self.mask


generator = np.random.default_rng(18)
LABELLED = [
    generator.standard_normal((5, 3)),
    generator.integers(0, 4, 5),
    *(generator.standard_normal(shape) for shape in ((3, 6), (6,), (6, 4), (4,))),
]
MASKED = [
    generator.standard_normal((4, 5)),
    generator.random((4, 5)) < 0.8,
    generator.standard_normal((5, 3)),
    generator.standard_normal((1, 3)),
]
PLACES = {name: f"grads['{name}']" for name in ("W1", "b1", "W2", "b2")}
RIGHT = [
    Handwriting(
        "two layer net", HandwrittenClass(TwoLayerNet, PLACES, forward="loss", backward="gradient"), net, LABELLED
    )
]
WRONG = [
    Handwriting(
        "dropout without scale",
        HandwrittenClass(DenseWithDropout, {"inputs": "dinputs", "weights": "dweights", "biases": "dbiases"}),
        dropped,
        MASKED,
        "the dropout's scale is forgotten in backward",
        ("grad_inputs",),
    )
]
