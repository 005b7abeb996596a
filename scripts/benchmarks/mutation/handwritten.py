"""Wrong backward passes written by hand: the mistakes that people make, ten or more of each class that stands here.

Each is a formula for one gradient that takes the place of the right one, everything else staying as it is. A class that
does not stand here has the mistakes that are made by rule.
"""

# ruff: noqa: ARG005 - the formulas of one table take the same arguments, and being wrong, many leave some out

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.mutation.mutants import Mutant
from benchmarks.mutation.replacing import Formula, method_of, replace_gradient
from nn_manual.arrays import Array, rows
from nn_manual.layers import Linear, ReLU, Tanh
from nn_manual.losses import CrossEntropyLoss, Loss, MSELoss, TraceLoss


def _batch(loss: Loss, array: Array) -> int:
    return len(array) if loss.reduction == "mean" else 1


def _count(loss: Loss, array: Array) -> int:
    return array.size if loss.reduction == "mean" else 1


def _onehot(log_probability: Array, target: Array) -> Array:
    return np.eye(log_probability.shape[1], dtype=log_probability.dtype)[target]


def _expected(log_probability: Array, target: Array, smoothing: float) -> Array:
    """q of CrossEntropyLoss's formula."""
    expected: Array = (1 - smoothing) * _onehot(log_probability, target) + smoothing / log_probability.shape[1]
    return expected


LAYERS: dict[type, dict[str, dict[str, Formula]]] = {
    ReLU: {
        "grad_input": {
            "the derivative is lost": lambda relu, output, grad: grad.copy(),
            "the mask is the gradient's": lambda relu, output, grad: grad * (grad > 0),
            "the gradient is rectified": lambda relu, output, grad: np.maximum(grad, 0),
            "the kink passes the gradient": lambda relu, output, grad: grad * (output >= 0),
            "the kink passes half of it": lambda relu, output, grad: grad * np.heaviside(output, grad.dtype.type(0.5)),
            "the other side passes": lambda relu, output, grad: grad * (output <= 0),
            "scaled by the output": lambda relu, output, grad: grad * output,
            "the mask alone": lambda relu, output, grad: (output > 0).astype(grad.dtype),
            "the output alone": lambda relu, output, grad: output.copy(),
            "leaks a hundredth": lambda relu, output, grad: np.where(output > 0, grad, grad / 100),
            "open from 0.01 on": lambda relu, output, grad: grad * (output > 0.01),
            "closed above 6": lambda relu, output, grad: grad * ((output > 0) & (output < 6)),
            "the mask of the first row": lambda relu, output, grad: grad * (output[:1] > 0),
            "zero": lambda relu, output, grad: np.zeros_like(grad),
        },
    },
    Tanh: {
        "grad_input": {
            "1 - output": lambda tanh, output, grad: grad * (1 - output),
            "1 + output**2": lambda tanh, output, grad: grad * (1 + output**2),
            "the gradient squared": lambda tanh, output, grad: grad * (1 - grad**2),
            "tanh of the output": lambda tanh, output, grad: grad * (1 - np.tanh(output) ** 2),
            "the sigmoid's": lambda tanh, output, grad: grad * output * (1 - output),
            "the arctangent's": lambda tanh, output, grad: grad / (1 + output**2),
            "the inverse's": lambda tanh, output, grad: grad / (1 - output**2 + grad.dtype.type(1e-6)),
            "the derivative is lost": lambda tanh, output, grad: grad.copy(),
            "the derivative alone": lambda tanh, output, grad: 1 - output**2,
            "the upstream sign alone": lambda tanh, output, grad: np.sign(grad) * (1 - output**2),
            "half of it": lambda tanh, output, grad: grad * (1 - output**2) / 2,
            "1 - |output|": lambda tanh, output, grad: grad * (1 - np.abs(output)),
            "the second derivative": lambda tanh, output, grad: grad * -2 * output * (1 - output**2),
            "output**2 - 1": lambda tanh, output, grad: grad * (output**2 - 1),
            "a mean over the batch": lambda tanh, output, grad: grad * (1 - output**2) / len(output),
        },
    },
    Linear: {
        "grad_weight": {
            "transposed": lambda linear, input, grad: rows(input).T @ rows(grad),
            "a mean over the batch": lambda linear, input, grad: rows(grad).T @ rows(input) / len(rows(input)),
            "of the first example": lambda linear, input, grad: np.outer(rows(grad)[0], rows(input)[0]),
            "of sums": lambda linear, input, grad: np.outer(rows(grad).sum(axis=0), rows(input).sum(axis=0)),
            "with weight decay": lambda linear, input, grad: rows(grad).T @ rows(input) + 0.01 * linear.param.weight,
            "the bias's": lambda linear, input, grad: rows(grad).sum(axis=0)[:, np.newaxis] + 0 * linear.param.weight,
            "added to the last": lambda linear, input, grad: linear.grad.weight + rows(grad).T @ rows(input),
        },
        "grad_bias": {
            "a mean over the batch": lambda linear, input, grad: rows(grad).mean(axis=0),
            "over the wrong axis": lambda linear, input, grad: rows(grad).sum(axis=1),
            "over everything": lambda linear, input, grad: rows(grad).sum(),
            "of the first example": lambda linear, input, grad: rows(grad)[0],
            "over the first leading dimension": lambda linear, input, grad: rows(grad.sum(axis=0, keepdims=True))[0],
            "zero": lambda linear, input, grad: np.zeros_like(linear.param.bias),
        },
        "grad_input": {
            "weight transposed": lambda linear, input, grad: grad @ linear.param.weight.T,
            "its own output": lambda linear, input, grad: input @ linear.param.weight.T,
            "the weight's signs": lambda linear, input, grad: grad @ np.sign(linear.param.weight),
            "with the bias": lambda linear, input, grad: (grad - linear.param.bias) @ linear.param.weight,
            "a mean over the outputs": lambda linear, input, grad: grad @ linear.param.weight / grad.shape[-1],
            "zero": lambda linear, input, grad: np.zeros_like(input),
            "through the weight twice": lambda linear, input, grad: (
                grad @ linear.param.weight @ linear.param.weight.T @ linear.param.weight
            ),
        },
    },
}

#: MSELoss and TraceLoss save prediction - target; their right formula is 2 * difference, and / N for a mean.
SQUARES: dict[str, Formula] = {
    "the 2 is lost": lambda loss, difference: difference / _count(loss, difference),
    "the sign": lambda loss, difference: -2 * difference / _count(loss, difference),
    "1/N is lost, or one too many": lambda loss, difference: (
        2 * difference / (1 if loss.reduction == "mean" else difference.size)
    ),
    "divided by the batch alone": lambda loss, difference: 2 * difference / len(difference),
    "divided by the outputs alone": lambda loss, difference: 2 * difference / difference.shape[-1],
    "the absolute error's": lambda loss, difference: np.sign(difference) / _count(loss, difference),
    "the absolute difference": lambda loss, difference: 2 * np.abs(difference) / _count(loss, difference),
    "not derived": lambda loss, difference: difference**2 / _count(loss, difference),
    "of the batch's mean": lambda loss, difference: (
        2 * (difference.mean(axis=0) + 0 * difference) / _count(loss, difference)
    ),
    "scaled by the loss": lambda loss, difference: 2 * difference * (difference**2).sum() / _count(loss, difference),
    "clipped to 1": lambda loss, difference: 2 * np.clip(difference, -1, 1) / _count(loss, difference),
    "scaled by its first element": lambda loss, difference: (
        2 * difference * difference.flat[0] / _count(loss, difference)
    ),
}


def _negative(formula: Formula) -> Formula:
    return lambda loss, saved: -formula(loss, saved)


NEGATIVE_SQUARES = {description: _negative(formula) for description, formula in SQUARES.items()}


def _cross_entropy(wrong: Callable[[CrossEntropyLoss, Array, Array, Array], Array]) -> Formula:
    """A formula of the loss, the probabilities p, the expected ones q, and the target; divided by the batch."""

    def formula(loss: CrossEntropyLoss, saved: tuple[Array, Array]) -> Array:
        log_probability, target = saved
        q = _expected(log_probability, target, loss.label_smoothing)
        return wrong(loss, np.exp(log_probability), q, target) / _batch(loss, log_probability)

    return formula


CROSS_ENTROPY: dict[str, Formula] = {
    "minus onehot is lost": _cross_entropy(lambda loss, p, q, target: p),
    "the softmax is lost": _cross_entropy(lambda loss, p, q, target: -q),
    "the sign": _cross_entropy(lambda loss, p, q, target: q - p),
    "the log-probability's": _cross_entropy(lambda loss, p, q, target: np.log(p) - q),
    "1/N is lost, or one too many": _cross_entropy(
        lambda loss, p, q, target: (p - q) * (len(p) if loss.reduction == "mean" else 1 / len(p))
    ),
    "a mean over the classes, too": _cross_entropy(lambda loss, p, q, target: (p - q) / p.shape[1]),
    "smoothing is ignored, or made up": _cross_entropy(
        lambda loss, p, q, target: p - _expected(p, target, 0 if loss.label_smoothing else 0.1)
    ),
    "smoothing leaves out the target, or adds to it": _cross_entropy(
        lambda loss, p, q, target: p - q + (loss.label_smoothing or 0.1) / p.shape[1] * _onehot(p, target)
    ),
    "through the softmax twice": _cross_entropy(lambda loss, p, q, target: p * (p - q)),
    "the softmax over the batch": _cross_entropy(lambda loss, p, q, target: p / p.sum(axis=0) - q),
    "one label for all": _cross_entropy(lambda loss, p, q, target: p - q[:1]),
    "labels off by one": _cross_entropy(lambda loss, p, q, target: p - np.roll(q, 1, axis=1)),
    "labels reversed": _cross_entropy(lambda loss, p, q, target: p - q[::-1]),
    "the target's class alone": _cross_entropy(lambda loss, p, q, target: (p - q) * _onehot(p, target)),
}

LOSSES: dict[type, dict[str, dict[str, Formula]]] = {
    MSELoss: {"grad_prediction": SQUARES, "grad_target": NEGATIVE_SQUARES},
    TraceLoss: {"grad_prediction": SQUARES, "grad_target": NEGATIVE_SQUARES},
    CrossEntropyLoss: {"grad_prediction": CROSS_ENTROPY},
}


def handwritten(owner: type) -> Iterator[Mutant]:
    """The wrong backward passes of a layer or a loss; none of a class that has none here."""
    for tensor, formulas in (LAYERS | LOSSES).get(owner, {}).items():
        for description, formula in formulas.items():
            changed = replace_gradient(owner, tensor, formula)
            mistake, method = f"{tensor}: {description}", method_of(owner, tensor)
            yield Mutant(owner, method, "by hand", tensor, mistake, frozenset({tensor}), changed)
