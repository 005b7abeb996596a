"""Losses: cross entropy, hinge, squared error, Huber, divergence, over a batch."""

from typing import Any

import numpy as np
from torch.nn import functional

from benchmarks.functions.handwritten.draws import normals
from benchmarks.functions.subject import Handwriting
from nn_manual import HandwrittenClass


def softmax_loss(scores: Any, y: Any) -> Any:
    n = len(y)
    shifted = scores - scores.max(axis=1, keepdims=True)
    z = np.exp(shifted).sum(axis=1)
    loss = (np.log(z) - shifted[range(n), y]).mean()
    dscores = np.exp(shifted) / z[:, np.newaxis]
    dscores[range(n), y] -= 1
    dscores /= n
    return loss, dscores


def softmax_loss_sum_gradient(scores: Any, y: Any) -> Any:
    """The loss is a mean, the gradient that of the sum."""
    n = len(y)
    shifted = scores - scores.max(axis=1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    loss = -logp[np.arange(n), y].sum() / n
    dscores = np.exp(logp)
    dscores[np.arange(n), y] -= 1
    return loss, dscores


def cross_entropy(scores: Any, y: Any) -> Any:
    return functional.cross_entropy(scores, y)


def hinge_loops(scores: Any, y: Any) -> Any:
    """A margin of exactly zero has slope 0."""
    n, classes = scores.shape
    loss = 0.0
    dscores = np.zeros_like(scores)
    for i in range(n):
        for j in range(classes):
            if j == y[i]:
                continue
            margin = scores[i, j] - scores[i, y[i]] + 1
            if margin > 0:
                loss += margin
                dscores[i, j] += 1
                dscores[i, y[i]] -= 1
    return loss / n, dscores / n


def hinge_forward(scores: Any, y: Any) -> Any:
    rows = np.arange(len(y))
    margins = np.maximum(0, scores - scores[rows, y][:, None] + 1)
    margins[rows, y] = 0
    return margins.sum() / len(y), (margins, rows, y)


def hinge_backward(dout: Any, cache: Any) -> Any:
    """The right class gets -1, whatever the number of positive margins."""
    margins, rows, y = cache
    dscores = (margins > 0).astype(float)
    dscores[rows, y] = -1
    return dout * dscores / len(y)


def hinge(scores: Any, y: Any) -> Any:
    margins = (scores - scores.gather(1, y[:, None]) + 1).clamp(min=0)
    return (margins.sum() - margins.gather(1, y[:, None]).sum()) / len(y)


def bce_forward(z: Any, y: Any) -> Any:
    loss = np.maximum(z, 0) - z * y + np.log1p(np.exp(-np.abs(z)))
    return np.mean(loss), (z, y)


def careful_sigmoid(z: Any) -> Any:
    e = np.exp(-np.abs(z))
    return np.where(z >= 0, 1, e) / (1 + e)


def bce_backward(cache: Any) -> Any:
    z, y = cache
    return (careful_sigmoid(z) - y) / z.size


def bce_constant_backward(dout: Any, cache: Any) -> Any:
    """dout isn't used."""
    z, y = cache
    return (careful_sigmoid(z) - y) / z.size


def bce(z: Any, y: Any) -> Any:
    return functional.binary_cross_entropy_with_logits(z, y.to(z.dtype))


class HuberLoss:
    """backward takes nothing, and returns nothing."""

    def forward(self, prediction: Any, target: Any) -> Any:
        self.difference = prediction - target
        size = np.abs(self.difference)
        return np.where(size < 1, 0.5 * self.difference**2, size - 0.5).mean()

    def backward(self) -> None:
        self.dprediction = np.clip(self.difference, -1, 1) / self.difference.size
        self.dtarget = -self.dprediction


def huber(prediction: Any, target: Any) -> Any:
    return functional.huber_loss(prediction, target)


DELTA = 2.0


def huber_forward(prediction: Any, target: Any) -> Any:
    r = prediction - target
    inside = np.abs(r) <= DELTA
    loss = np.where(inside, 0.5 * r**2, DELTA * (np.abs(r) - 0.5 * DELTA))
    return loss.mean(), {"r": r, "inside": inside}


def huber_backward(dout: Any, cache: Any) -> Any:
    """Outside, the slope is the sign times DELTA, not the sign."""
    r = cache["r"]
    dr = np.where(cache["inside"], r, np.sign(r)) * dout / r.size
    return {"dprediction": dr, "dtarget": -dr}


def wide_huber(prediction: Any, target: Any) -> Any:
    return functional.huber_loss(prediction, target, delta=DELTA)


def log_softmax(z: Any) -> Any:
    z = z - z.max(axis=1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=1, keepdims=True))


def divergence_forward(teacher: Any, student: Any) -> Any:
    log_p, log_q = log_softmax(teacher), log_softmax(student)
    rows = (np.exp(log_p) * (log_p - log_q)).sum(axis=1, keepdims=True)
    return rows.mean(), (log_p, log_q, rows)


def divergence_backward(dout: Any, cache: Any) -> Any:
    log_p, log_q, rows = cache
    p, q = np.exp(log_p), np.exp(log_q)
    dteacher = p * (log_p - log_q - rows) / len(p)
    dstudent = (q - p) / len(p)
    return dout * dteacher, dout * dstudent


def divergence(teacher: Any, student: Any) -> Any:
    log_p, log_q = functional.log_softmax(teacher, 1), functional.log_softmax(student, 1)
    return functional.kl_div(log_q, log_p, reduction="batchmean", log_target=True)


def squared_error_forward(prediction: Any, target: Any) -> Any:
    difference = prediction - target
    return (difference**2).mean(), difference


def squared_error_backward(dout: Any, difference: Any) -> Any:
    """The mean is over all numbers, not over the rows."""
    dprediction = dout * 2 * difference / difference.shape[0]
    return dprediction, -dprediction


def squared_error(prediction: Any, target: Any) -> Any:
    return functional.mse_loss(prediction, target)


SCORES = [*normals(50, (5, 4)), np.array([3, 0, 1, 1, 2])]
LOGITS = [*normals(51, (4, 3)), np.array([[0, 1, 1], [1, 0, 0], [1, 1, 0], [0, 0, 1]])]
WIDE = [3 * array for array in normals(52, (4, 3), (4, 3))]
PREDICTIONS = ("grad_prediction", "grad_target")
RIGHT = [
    Handwriting("cross entropy that returns its gradient", (softmax_loss, lambda dx: dx), cross_entropy, SCORES),
    Handwriting("hinge in loops", (hinge_loops, lambda dx: dx), hinge, SCORES),
    Handwriting("binary cross entropy with logits", (bce_forward, bce_backward), bce, LOGITS),
    Handwriting(
        "Huber, a class without arguments of backward",
        HandwrittenClass(HuberLoss, {"prediction": "dprediction", "target": "dtarget"}),
        huber,
        WIDE,
    ),
    Handwriting(
        "divergence of two softmaxes",
        (divergence_forward, divergence_backward),
        divergence,
        normals(53, (4, 5), (4, 5)),
    ),
]
WRONG = [
    Handwriting(
        "cross entropy, a mean",
        (softmax_loss_sum_gradient, lambda dx: dx),
        cross_entropy,
        SCORES,
        "the gradient isn't divided by the batch",
        ("grad_scores",),
    ),
    Handwriting(
        "hinge by masks", (hinge_forward, hinge_backward), hinge, SCORES, "margins aren't counted", ("grad_scores",)
    ),
    Handwriting(
        "binary cross entropy", (bce_forward, bce_constant_backward), bce, LOGITS, "dout isn't used", ("grad_z",)
    ),
    Handwriting(
        "Huber with delta", (huber_forward, huber_backward), wide_huber, WIDE, "the slope lacks delta", PREDICTIONS
    ),
    Handwriting(
        "squared error",
        (squared_error_forward, squared_error_backward),
        squared_error,
        WIDE,
        "divided by the rows, not by all numbers",
        PREDICTIONS,
    ),
]
