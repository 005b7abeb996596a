"""Gates: LSTM, GRU, GLU, highway."""

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks.functions.subject import Handwriting
from nn_manual import HandwrittenClass


def sigmoid(x: Any) -> Any:
    """Of a negative x, exp(x) / (1 + exp(x)): nothing overflows."""
    z = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + z), z / (1 + z))


def lstm_step(x: Any, h: Any, c: Any, Wx: Any, Wh: Any, b: Any) -> Any:
    i, f, o, g = (x @ Wx + h @ Wh + b).chunk(4, dim=1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def lstm_step_forward(x: Any, h: Any, c: Any, Wx: Any, Wh: Any, b: Any) -> Any:
    size = h.shape[1]
    a = x @ Wx + h @ Wh + b
    i, f, o = sigmoid(a[:, :size]), sigmoid(a[:, size : 2 * size]), sigmoid(a[:, 2 * size : 3 * size])
    g = np.tanh(a[:, 3 * size :])
    next_c = f * c + i * g
    next_h = o * np.tanh(next_c)
    return (next_h, next_c), (x, h, c, Wx, Wh, i, f, o, g, next_c)


def lstm_step_backward(dnext_h: Any, dnext_c: Any, cache: Any) -> Any:
    x, h, c, wx, wh, i, f, o, g, next_c = cache
    tanh_c = np.tanh(next_c)
    dc = dnext_c + dnext_h * o * (1 - tanh_c**2)
    da = np.hstack(
        (
            dc * g * i * (1 - i),
            dc * c * f * (1 - f),
            dnext_h * tanh_c * o * (1 - o),
            dc * i * (1 - g**2),
        )
    )
    return da @ wx.T, da @ wh.T, dc * f, x.T @ da, h.T @ da, da.sum(axis=0)


def lstm(x: Any, h0: Any, Wx: Any, Wh: Any, b: Any) -> Any:
    h, c, states = h0, torch.zeros_like(h0), []
    for t in range(x.shape[1]):
        h, c = lstm_step(x[:, t], h, c, Wx, Wh, b)
        states.append(h)
    return torch.stack(states, dim=1)


def lstm_forward(x: Any, h0: Any, Wx: Any, Wh: Any, b: Any) -> Any:
    h, c = h0, np.zeros_like(h0)
    states, caches = [], []
    for t in range(x.shape[1]):
        (h, c), cache = lstm_step_forward(x[:, t], h, c, Wx, Wh, b)
        states.append(h)
        caches.append(cache)
    return np.stack(states, axis=1), caches


def lstm_backward_without_cell_path(dh: Any, caches: Any) -> Any:
    """The cell's gradient isn't handed to the time before."""
    dprev_h = np.zeros_like(dh[:, 0])
    dc = np.zeros_like(dprev_h)
    dxs: list[Any] = []
    dwx, dwh, db = 0, 0, 0
    for t in range(dh.shape[1])[::-1]:
        dx, dprev_h, _, dwx_t, dwh_t, db_t = lstm_step_backward(dh[:, t] + dprev_h, dc, caches[t])
        dxs.insert(0, dx)
        dwx, dwh, db = dwx + dwx_t, dwh + dwh_t, db + db_t
    return np.stack(dxs, axis=1), dprev_h, dwx, dwh, db


def gru_cell(x: Any, h_prev: Any, W: Any, U: Any, b: Any) -> Any:
    wz, wr, wn = W.chunk(3, dim=1)
    uz, ur, un = U.chunk(3, dim=1)
    bz, br, bn = b.chunk(3)
    z = torch.sigmoid(x @ wz + h_prev @ uz + bz)
    r = torch.sigmoid(x @ wr + h_prev @ ur + br)
    n = torch.tanh(x @ wn + (r * h_prev) @ un + bn)
    return (1 - z) * h_prev + z * n


def gru(x: Any, W: Any, U: Any, b: Any) -> Any:
    h, states = x.new_zeros(x.shape[0], U.shape[0]), []
    for t in range(x.shape[1]):
        h = gru_cell(x[:, t], h, W, U, b)
        states.append(h)
    return torch.stack(states, dim=1)


def gru_forward(x: Any, W: Any, U: Any, b: Any) -> Any:
    size = U.shape[0]
    hs = np.zeros((x.shape[0], x.shape[1] + 1, size))
    zs, rs, ns = [], [], []
    projected = x @ W + b
    for t in range(x.shape[1]):
        h = hs[:, t]
        gates = sigmoid(projected[:, t, : 2 * size] + h @ U[:, : 2 * size])
        z, r = gates[:, :size], gates[:, size:]
        n = np.tanh(projected[:, t, 2 * size :] + (r * h) @ U[:, 2 * size :])
        hs[:, t + 1] = (1 - z) * h + z * n
        zs.append(z)
        rs.append(r)
        ns.append(n)
    return hs[:, 1:].copy(), {"x": x, "W": W, "U": U, "h": hs, "z": zs, "r": rs, "n": ns}


def gru_backward(dout: Any, cache: Any) -> Any:
    x, w, u, hs = cache["x"], cache["W"], cache["U"], cache["h"]
    size = u.shape[0]
    uz, ur, un = u[:, :size], u[:, size : 2 * size], u[:, 2 * size :]
    da = np.zeros((*dout.shape[:2], 3 * size))
    du = np.zeros_like(u)
    dh = np.zeros_like(dout[:, 0])
    for t in reversed(range(dout.shape[1])):
        h, z, r, n = hs[:, t], cache["z"][t], cache["r"][t], cache["n"][t]
        dh = dh + dout[:, t]
        dn = dh * z * (1 - n * n)
        dz = dh * (n - h) * z * (1 - z)
        drh = dn @ un.T
        dr = drh * h * r * (1 - r)
        du += np.concatenate([h.T @ dz, h.T @ dr, (r * h).T @ dn], axis=1)
        dh = dh * (1 - z) + dz @ uz.T + dr @ ur.T + drh * r
        da[:, t] = np.concatenate([dz, dr, dn], axis=1)
    return da @ w.T, np.einsum("ntd,nta->da", x, da), du, da.sum(axis=(0, 1))


class GRUCell:
    """h_prev also enters by r * h_prev: this term of its gradient is missing."""

    def __init__(self, W: Any, U: Any, b: Any) -> None:
        self.parameters = {"W": W, "U": U, "b": b}
        self.gradients: dict[str, Any] = {}

    def forward(self, x: Any, h_prev: Any) -> Any:
        wz, wr, wn = np.split(self.parameters["W"], 3, axis=1)
        uz, ur, un = np.split(self.parameters["U"], 3, axis=1)
        bz, br, bn = np.split(self.parameters["b"], 3)
        self.x, self.h_prev = x, h_prev
        self.z = sigmoid(x @ wz + h_prev @ uz + bz)
        self.r = sigmoid(x @ wr + h_prev @ ur + br)
        self.n = np.tanh(x @ wn + (self.r * h_prev) @ un + bn)
        return (1 - self.z) * h_prev + self.z * self.n

    def backward(self, dh: Any) -> Any:
        uz, ur, un = np.split(self.parameters["U"], 3, axis=1)
        dn = dh * self.z * (1 - self.n**2)
        dz = dh * (self.n - self.h_prev) * self.z * (1 - self.z)
        dr = (dn @ un.T) * self.h_prev * self.r * (1 - self.r)
        da = np.hstack([dz, dr, dn])
        self.gradients["W"] = self.x.T @ da
        recurrent = [self.h_prev.T @ dz, self.h_prev.T @ dr, (self.r * self.h_prev).T @ dn]
        self.gradients["U"] = np.hstack(recurrent)
        self.gradients["b"] = da.sum(0)
        wz_wr_wn = self.parameters["W"]
        return da @ wz_wr_wn.T, dh * (1 - self.z) + dz @ uz.T + dr @ ur.T


def glu(x: torch.Tensor) -> torch.Tensor:
    return functional.glu(x)


def glu_forward(x: Any) -> Any:
    a, b = np.split(x, 2, axis=-1)
    gate = sigmoid(b)
    return a * gate, (a, gate)


def glu_backward(dout: Any, cache: Any) -> Any:
    a, gate = cache
    dx = np.concatenate([dout, dout], axis=-1)
    half = a.shape[-1]
    dx[..., :half] *= gate
    dx[..., half:] *= a * gate * (1 - gate)
    return dx


def highway(x: Any, Wh: Any, Wt: Any, bt: Any) -> Any:
    t = torch.sigmoid(x @ Wt + bt)
    return t * torch.relu(x @ Wh) + (1 - t) * x


def highway_forward(x: Any, Wh: Any, Wt: Any, bt: Any) -> Any:
    h, t = np.maximum(x @ Wh, 0), sigmoid(x @ Wt + bt)
    return t * h + (1 - t) * x, (x, Wh, Wt, h, t)


def highway_backward(dout: Any, cache: Any) -> Any:
    """The gate's gradient has h, and not h - x."""
    x, wh, wt, h, t = cache
    dh = dout * t * (h > 0)
    da = dout * h * t * (1 - t)
    return dout * (1 - t) + dh @ wh.T + da @ wt.T, x.T @ dh, x.T @ da, da.sum(0)


def draw(seed: int, *shapes: tuple[int, ...]) -> list[Any]:
    generator = np.random.default_rng(seed)
    return [generator.standard_normal(shape) for shape in shapes]


ALL = ("grad_x", "grad_h0", "grad_Wx", "grad_Wh", "grad_b")
LSTM = (lstm_forward, lstm_backward_without_cell_path)
HIGHWAY = (highway_forward, highway_backward)
GRU_CELL = HandwrittenClass(GRUCell, {name: f"gradients['{name}']" for name in ("W", "U", "b")})
STEP = draw(7, (2, 3), (2, 3), (2, 3), (3, 12), (3, 12), (12,))
SEQUENCE = draw(8, (2, 4, 2), (2, 3), (2, 12), (3, 12), (12,))
GRU = draw(9, (2, 4, 2), (2, 9), (3, 9), (9,))
CELL = draw(10, (3, 2), (3, 3), (2, 9), (3, 9), (9,))
HALVES = [draw(11, (4, 6))[0].astype(np.float32)]
SQUARE = draw(12, (5, 4), (4, 4), (4, 4), (4,))
RIGHT = [
    Handwriting("lstm step", (lstm_step_forward, lstm_step_backward), lstm_step, STEP),
    Handwriting("gru sequence", (gru_forward, gru_backward), gru, GRU),
    Handwriting("glu", (glu_forward, glu_backward), glu, HALVES),
]
WRONG = [
    Handwriting("lstm without cell path", LSTM, lstm, SEQUENCE, "the cell's gradient ends at each step", ALL),
    Handwriting("gru cell", GRU_CELL, gru_cell, CELL, "a term of the product rule is missing", ("grad_h_prev",)),
    Handwriting("highway", HIGHWAY, highway, SQUARE, "the gate's gradient lacks -x", ("grad_x", "grad_Wt", "grad_bt")),
]
