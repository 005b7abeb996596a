"""Affine maps, and nets of two layers that are one pair."""

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks.functions.handwritten.draws import normals
from benchmarks.functions.subject import Handwriting
from nn_manual import HandwrittenClass


def flat_affine_forward(x: Any, w: Any, b: Any) -> Any:
    rows = x.reshape(x.shape[0], -1)
    return rows.dot(w) + b, (x, w)


def flat_affine_backward(dout: Any, cache: Any) -> Any:
    x, w = cache
    rows = x.reshape(x.shape[0], -1)
    grads = {}
    grads["dx"] = dout.dot(w.T).reshape(x.shape)
    grads["dw"] = rows.T.dot(dout)
    grads["db"] = dout.sum(axis=0)
    return grads


def flat_affine(x: Any, w: Any, b: Any) -> Any:
    return x.flatten(1) @ w + b


def affine_relu_forward(x: Any, w: Any, b: Any) -> Any:
    a = x @ w + b
    out = np.where(a >= 0, a, 0)
    fc_cache, relu_cache = (x, w, b), a
    return out, (fc_cache, relu_cache)


def affine_relu_backward(dout: Any, cache: Any) -> Any:
    """The slope at zero is 1."""
    (x, w, _), a = cache
    da = dout * (a >= 0)
    dx = np.dot(da, w.T)
    dw = np.dot(x.T, da)
    db = np.ones(len(da)) @ da
    return dx, dw, db


def affine_relu(x: Any, w: Any, b: Any) -> Any:
    return torch.relu(x @ w + b)


class TanhNet:
    """The gradients add up, until somebody sets them to zero."""

    def __init__(self, W1: Any, b1: Any, W2: Any, b2: Any):
        self.params = {"W1": W1, "b1": b1, "W2": W2, "b2": b2}
        self.gradients = {name: np.zeros_like(value) for name, value in self.params.items()}

    def forward(self, x: Any) -> Any:
        self.x = x
        self.hidden = np.tanh(x @ self.params["W1"] + self.params["b1"])
        return self.hidden @ self.params["W2"] + self.params["b2"]

    def backward(self, dout: Any) -> Any:
        self.gradients["W2"] += self.hidden.T @ dout
        self.gradients["b2"] += dout.sum(axis=0)
        dhidden = dout @ self.params["W2"].T
        da = dhidden * (1 - self.hidden**2)
        self.gradients["W1"] += self.x.T @ da
        self.gradients["b1"] += da.sum(axis=0)
        return da @ self.params["W1"].T


def tanh_net(x: Any, W1: Any, b1: Any, W2: Any, b2: Any) -> Any:
    return torch.tanh(x @ W1 + b1) @ W2 + b2


def sequence_affine_forward(x: Any, w: Any, b: Any) -> Any:
    return x @ w + b, (x, w)


def sequence_affine_backward(dout: Any, cache: Any) -> Any:
    """The bias is added in each row and at each time: its gradient isn't summed over time."""
    x, w = cache
    dx = dout @ w.T
    dw = np.einsum("ntd,ntm->dm", x, dout)
    db = dout.sum(axis=0)
    return dx, dw, db


def affine(x: Any, w: Any, b: Any) -> Any:
    return x @ w + b


def relu_net_forward(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    h = np.maximum(0, x @ w1 + b1)
    return h @ w2 + b2, [x, w1, h, w2]


def relu_net_backward(dout: Any, cache: Any) -> Any:
    """The mask looks at the gradient, where it should look at h."""
    x, w1, h, w2 = cache
    dw2 = h.T @ dout
    db2 = dout.sum(0)
    dh = dout @ w2.T
    dh[dh <= 0] = 0
    return dh @ w1.T, x.T @ dh, dh.sum(0), dw2, db2


def relu_net(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    return torch.relu(x @ w1 + b1) @ w2 + b2


DATA = normals(10, (5, 4))[0]
LABELS = np.array([2, 0, 1, 1, 2])
REGULARIZATION = 0.1


def classifier(w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    """The loss has reg * sum(w**2), the gradient reg * w: the 2 is missing."""
    n = DATA.shape[0]
    h = np.maximum(0, DATA @ w1 + b1)
    scores = h @ w2 + b2
    scores = scores - scores.max(axis=1, keepdims=True)
    logp = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    loss = -logp[np.arange(n), LABELS].mean() + REGULARIZATION * (np.sum(w1 * w1) + np.sum(w2 * w2))

    dscores = np.exp(logp)
    dscores[np.arange(n), LABELS] -= 1
    dscores /= n
    grads = {"w2": h.T @ dscores + REGULARIZATION * w2, "b2": dscores.sum(axis=0)}
    dh = dscores @ w2.T
    dh[h <= 0] = 0
    grads["w1"] = DATA.T @ dh + REGULARIZATION * w1
    grads["b1"] = dh.sum(axis=0)
    return loss, grads


def classifier_loss(w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    scores = torch.relu(torch.from_numpy(DATA).to(w1) @ w1 + b1) @ w2 + b2
    penalty = w1.square().sum() + w2.square().sum()
    return functional.cross_entropy(scores, torch.from_numpy(LABELS)) + REGULARIZATION * penalty


NET = normals(3, (4, 3), (3, 5), (5,), (5, 2), (2,))
RIGHT = [
    Handwriting(
        "affine of flattened images, gradients in a dict",
        (flat_affine_forward, flat_affine_backward),
        flat_affine,
        [array.astype(np.float32) for array in normals(1, (4, 2, 3), (6, 5), (5,))],
    ),
    Handwriting(
        "affine and ReLU with slope 1 at zero",
        (affine_relu_forward, affine_relu_backward),
        affine_relu,
        normals(2, (5, 4), (4, 3), (3,)),
    ),
    Handwriting(
        "two layers with tanh, a class whose gradients add up",
        HandwrittenClass(TanhNet, {name: f"gradients['{name}']" for name in ("W1", "b1", "W2", "b2")}),
        tanh_net,
        NET,
    ),
]
WRONG = [
    Handwriting(
        "affine of sequences",
        (sequence_affine_forward, sequence_affine_backward),
        affine,
        normals(4, (3, 2, 4), (4, 5), (5,)),
        "the bias's gradient isn't summed over time",
        ("grad_b",),
    ),
    Handwriting(
        "two layers with ReLU",
        (relu_net_forward, relu_net_backward),
        relu_net,
        NET,
        "ReLU's mask looks at the gradient",
        ("grad_x", "grad_w1", "grad_b1"),
    ),
    Handwriting(
        "two layers, cross entropy and a penalty",
        (classifier, lambda grads: grads),
        classifier_loss,
        normals(5, (4, 6), (6,), (6, 3), (3,)),
        "the penalty's gradient lacks a factor 2",
        ("grad_w1", "grad_w2"),
    ),
]
