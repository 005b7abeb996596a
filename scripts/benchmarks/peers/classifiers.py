"""The classifiers of scikit-learn and thinc: nets of Linear and ReLU, as their users write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.peers.subjects import Subject
from nn_manual import Linear, ReLU
from nn_manual.arrays import Array


class CannotTakeError(Exception):
    """A trainer that has no such layers."""


def scikit_learn(subject: Subject) -> Callable[[], object]:
    """MLPClassifier.partial_fit, one call an epoch. For two classes it predicts one number, not two."""
    from sklearn.neural_network import MLPClassifier

    sizes, (inputs, targets) = _sizes(subject), subject.stacked()
    classifier = MLPClassifier(
        sizes[1:-1],
        solver="sgd",
        alpha=0,
        batch_size=inputs.shape[1],
        learning_rate_init=0.01,
        momentum=0.9,
        nesterovs_momentum=False,
        shuffle=False,
    )
    classes = np.arange(sizes[-1])
    examples = inputs.reshape(-1, sizes[0])
    return lambda: classifier.partial_fit(examples, targets.ravel(), classes=classes)


def thinc(subject: Subject) -> Callable[[], object]:
    """chain(Relu, ..., Softmax) with SGD, which has no momentum."""
    from thinc.api import SGD, NumpyOps, Relu, Softmax, chain, set_current_ops

    set_current_ops(NumpyOps())
    sizes, (inputs, targets) = _sizes(subject), subject.stacked()
    layers: list[Any] = [Relu(size) for size in sizes[1:-1]]
    model, optimizer = chain(*layers, Softmax(sizes[-1])), SGD(0.01)
    model.initialize(X=inputs[0], Y=_one_hot(targets[0], sizes[-1]))
    batches = [(input, _one_hot(target, sizes[-1])) for input, target in zip(inputs, targets, strict=True)]

    def epoch() -> None:
        for input, expected in batches:
            prediction, backprop = model.begin_update(input)
            backprop((prediction - expected) / len(input))
            model.finish_update(optimizer)

    return epoch


def _sizes(subject: Subject) -> tuple[int, ...]:
    layers = subject.new_trainer().model.layers
    if not all(isinstance(layer, Linear | ReLU) for layer in layers):
        raise CannotTakeError("it has Linear and ReLU alone")
    linears = [layer for layer in layers if isinstance(layer, Linear)]
    return (linears[0].in_features, *(layer.out_features for layer in linears))


def _one_hot(target: Array, num_classes: int) -> Array:
    return np.eye(num_classes, dtype=np.float32)[target]
