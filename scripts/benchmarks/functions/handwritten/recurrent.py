"""Vanilla recurrent networks: a step, and whole sequences."""

from typing import Any

import numpy as np
import torch

from benchmarks.functions.subject import Handwriting
from nn_manual import HandwrittenClass


def step(x: torch.Tensor, h_prev: torch.Tensor, Wx: torch.Tensor, Wh: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x @ Wx + h_prev @ Wh + b)


class RNNCell:
    def __init__(self, Wx: Any, Wh: Any, b: Any) -> None:
        self.params = [Wx, Wh, b]
        self.grads = [np.zeros_like(Wx), np.zeros_like(Wh), np.zeros_like(b)]
        self.cache: Any = None

    def forward(self, x: Any, h_prev: Any) -> Any:
        wx, wh, b = self.params
        h_next = np.tanh(np.dot(h_prev, wh) + np.dot(x, wx) + b)
        self.cache = (x, h_prev, h_next)
        return h_next

    def backward(self, dh_next: Any) -> Any:
        wx, wh, _ = self.params
        x, h_prev, h_next = self.cache
        dt = dh_next * (1 - h_next**2)
        self.grads[0][...] = np.dot(x.T, dt)
        self.grads[1][...] = np.dot(h_prev.T, dt)
        self.grads[2][...] = np.sum(dt, axis=0)
        return np.dot(dt, wx.T), np.dot(dt, wh.T)


def sequence(x: torch.Tensor, h0: torch.Tensor, Wx: torch.Tensor, Wh: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    hidden, states = h0, []
    for t in range(x.shape[1]):
        hidden = torch.tanh(x[:, t] @ Wx + hidden @ Wh + b)
        states.append(hidden)
    return torch.stack(states, 1)


def step_forward(x: Any, prev_h: Any, Wx: Any, Wh: Any, b: Any) -> Any:
    next_h = np.tanh(x @ Wx + prev_h @ Wh + b)
    return next_h, (x, prev_h, Wx, Wh, next_h)


def step_backward(dnext_h: Any, cache: Any) -> Any:
    x, prev_h, wx, wh, next_h = cache
    da = dnext_h * (1 - next_h) * (1 + next_h)
    return da @ wx.T, da @ wh.T, x.T @ da, prev_h.T @ da, da.sum(axis=0)


def rnn_forward(x: Any, h0: Any, Wx: Any, Wh: Any, b: Any) -> Any:
    n, steps, _ = x.shape
    h = np.zeros((n, steps, h0.shape[1]))
    prev_h, caches = h0, []
    for t in range(steps):
        prev_h, cache = step_forward(x[:, t, :], prev_h, Wx, Wh, b)
        h[:, t, :] = prev_h
        caches.append(cache)
    return h, caches


def rnn_backward(dh: Any, caches: Any) -> Any:
    x, prev_h, wx, wh, _ = caches[0]
    n, steps, hidden = dh.shape
    dx = np.zeros((n, steps, x.shape[1]))
    dprev_h = np.zeros_like(prev_h)
    dwx, dwh, db = np.zeros_like(wx), np.zeros_like(wh), np.zeros(hidden)
    for t in reversed(range(steps)):
        dx[:, t, :], dprev_h, dwx_t, dwh_t, db_t = step_backward(dh[:, t, :] + dprev_h, caches[t])
        dwx += dwx_t
        dwh += dwh_t
        db += db_t
    return {"dx": dx, "dh0": dprev_h, "dWx": dwx, "dWh": dwh, "db": db}


def rnn_backward_each_time_alone(dh: Any, caches: Any) -> Any:
    """The gradient that comes from later times is left out."""
    steps = dh.shape[1]
    grads = [step_backward(dh[:, t, :], caches[t]) for t in range(steps)]
    dx = np.stack([each[0] for each in grads], axis=1)
    dwx, dwh, db = (sum(each[i] for each in grads) for i in (2, 3, 4))
    return dx, grads[0][1], dwx, dwh, db


def rnn_backward_into_dh(dh: Any, caches: Any) -> Any:
    """Adds the gradient from later times into dh, which is the caller's."""
    steps = dh.shape[1]
    dx = [None] * steps
    dwx: Any = 0
    dwh: Any = 0
    db: Any = 0
    dprev_h = None
    for t in range(steps - 1, -1, -1):
        if dprev_h is not None:
            dh[:, t] += dprev_h
        dx[t], dprev_h, dwx_t, dwh_t, db_t = step_backward(dh[:, t], caches[t])
        dwx, dwh, db = dwx + dwx_t, dwh + dwh_t, db + db_t
    return np.stack(dx, axis=1), dprev_h, dwx, dwh, db  # type: ignore[arg-type]


generator = np.random.default_rng(6)
STEP = [generator.standard_normal(shape) for shape in ((3, 2), (3, 4), (2, 4), (4, 4), (4,))]
SEQUENCE = [generator.standard_normal(shape) for shape in ((2, 4, 3), (2, 4), (3, 4), (4, 4), (4,))]
RIGHT = [
    Handwriting(
        "rnn cell", HandwrittenClass(RNNCell, {"Wx": "grads[0]", "Wh": "grads[1]", "b": "grads[2]"}), step, STEP
    ),
    Handwriting("rnn sequence", (rnn_forward, rnn_backward), sequence, SEQUENCE),
]
WRONG = [
    Handwriting(
        "rnn each time alone",
        (rnn_forward, rnn_backward_each_time_alone),
        sequence,
        SEQUENCE,
        "the gradient of later times is left out",
        ("grad_x", "grad_h0", "grad_Wx", "grad_Wh", "grad_b"),
    ),
    Handwriting(
        "rnn writes into dh",
        (rnn_forward, rnn_backward_into_dh),
        sequence,
        SEQUENCE,
        "adds to the gradient of the output in place",
        ("writes grad_output",),
    ),
]
