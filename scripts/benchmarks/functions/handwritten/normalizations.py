"""Normalizations of batches, layers and groups, by the deviation or by the root of the mean square."""

from typing import Any

import numpy as np
from torch.nn import functional

from benchmarks.functions.handwritten.draws import normals
from benchmarks.functions.subject import Handwriting
from nn_manual import HandwrittenClass

EPS = 1e-5


def batchnorm_steps_forward(x: Any, gamma: Any, beta: Any) -> Any:
    mu = x.mean(axis=0)
    xmu = x - mu
    var = (xmu**2).mean(axis=0)
    sqrtvar = np.sqrt(var + EPS)
    ivar = 1.0 / sqrtvar
    xhat = xmu * ivar
    return gamma * xhat + beta, (xhat, gamma, xmu, ivar, sqrtvar)


def batchnorm_steps_backward(dout: Any, cache: Any) -> Any:
    """Each node of the graph by itself."""
    xhat, gamma, xmu, ivar, sqrtvar = cache
    n, d = dout.shape
    dbeta = np.sum(dout, axis=0)
    dgamma = np.sum(dout * xhat, axis=0)
    dxhat = dout * gamma
    divar = np.sum(dxhat * xmu, axis=0)
    dxmu = dxhat * ivar
    dsqrtvar = -1.0 / sqrtvar**2 * divar
    dvar = 0.5 / sqrtvar * dsqrtvar
    dsquares = np.ones((n, d)) / n * dvar
    dxmu += 2 * xmu * dsquares
    dmu = -np.sum(dxmu, axis=0)
    dx = dxmu + np.ones((n, d)) / n * dmu
    return dx, dgamma, dbeta


def batchnorm_forward(x: Any, gamma: Any, beta: Any) -> Any:
    ivar = 1 / np.sqrt(x.var(axis=0) + EPS)
    xhat = (x - x.mean(axis=0)) * ivar
    return gamma * xhat + beta, (xhat, ivar, gamma)


def batchnorm_constant_backward(dout: Any, cache: Any) -> Any:
    """Mean and variance depend on x, too."""
    xhat, ivar, gamma = cache
    return dout * gamma * ivar, (dout * xhat).sum(axis=0), dout.sum(axis=0)


def batchnorm_writing_backward(dout: Any, cache: Any) -> Any:
    """Right once: xhat in the cache is another one afterwards."""
    xhat, ivar, gamma = cache
    dgamma = (dout * xhat).sum(axis=0)
    dxhat = dout * gamma
    xhat *= (dxhat * xhat).mean(axis=0)
    dx = ivar * (dxhat - dxhat.mean(axis=0) - xhat)
    return dx, dgamma, dout.sum(axis=0)


def batchnorm(x: Any, gamma: Any, beta: Any) -> Any:
    return functional.batch_norm(x, None, None, gamma, beta, training=True, eps=EPS)


class LayerNorm:
    """Writes its gradients into arrays that stay the same."""

    def __init__(self, gamma: Any, beta: Any):
        self.params = [gamma, beta]
        self.grads = [np.zeros_like(gamma), np.zeros_like(beta)]

    def forward(self, x: Any) -> Any:
        gamma, beta = self.params
        centered = x.T - x.T.mean(axis=0)
        self.std = np.sqrt(np.mean(centered * centered, axis=0) + EPS)
        self.xhat = centered / self.std
        return gamma * self.xhat.T + beta

    def backward(self, dout: Any) -> Any:
        self.grads[0][...] = np.einsum("nd,dn->d", dout, self.xhat)
        self.grads[1][...] = np.einsum("nd->d", dout)
        dxhat = (dout * self.params[0]).T
        d = dxhat.shape[0]
        dx = d * dxhat - dxhat.sum(axis=0) - self.xhat * (dxhat * self.xhat).sum(axis=0)
        return (dx / (d * self.std)).T


def layernorm_forward(x: Any, gamma: Any, beta: Any) -> Any:
    centered = x - x.mean(axis=-1, keepdims=True)
    var = (centered**2).mean(axis=-1, keepdims=True)
    xhat = centered / np.sqrt(var + EPS)
    return gamma * xhat + beta, (xhat, centered, var, gamma)


def layernorm_no_eps_backward(dout: Any, cache: Any) -> Any:
    """EPS is missing below the root."""
    xhat, centered, var, gamma = cache
    d = dout.shape[-1]
    ivar = 1 / np.sqrt(var)
    dxhat = dout * gamma
    dvar = (dxhat * centered).sum(axis=-1, keepdims=True) * -0.5 * ivar**3
    dmu = -(dxhat * ivar).sum(axis=-1, keepdims=True)
    dx = dxhat * ivar + dvar * 2 * centered / d + dmu / d
    return dx, (dout * xhat).sum(axis=0), dout.sum(axis=0)


def layernorm(x: Any, gamma: Any, beta: Any) -> Any:
    return functional.layer_norm(x, x.shape[-1:], gamma, beta, eps=EPS)


def rmsnorm_forward(x: Any, weight: Any) -> Any:
    """Computes in float64, and returns what it got."""
    wide = x.astype(np.float64)
    inverse = (np.mean(wide * wide, axis=-1, keepdims=True) + EPS) ** -0.5
    return (wide * inverse * weight).astype(x.dtype), (x, weight, inverse)


def rmsnorm_backward(dout: Any, cache: Any) -> Any:
    x, weight, inverse = cache
    normalized = x * inverse
    g = dout * weight
    dx = inverse * (g - normalized * np.mean(g * normalized, axis=-1, keepdims=True))
    dweight = np.einsum("ntd,ntd->d", dout, normalized)
    return dx.astype(x.dtype), dweight.astype(weight.dtype)


def rmsnorm_raw_backward(dout: Any, cache: Any) -> Any:
    """The gradient of the weight takes x, where it should take the normalized x."""
    x, weight, inverse = cache
    normalized = x * inverse
    g = dout * weight
    dx = inverse * (g - normalized * np.mean(g * normalized, axis=-1, keepdims=True))
    return dx, (dout * x).sum(axis=(0, 1))


def rmsnorm(x: Any, weight: Any) -> Any:
    return functional.rms_norm(x, x.shape[-1:], weight, eps=EPS)


GROUPS = 2


def groupnorm_forward(x: Any, gamma: Any, beta: Any) -> Any:
    n, c, h, w = x.shape
    grouped = x.reshape(n, GROUPS, -1)
    centered = grouped - grouped.mean(axis=2, keepdims=True)
    std = np.sqrt((centered**2).mean(axis=2, keepdims=True) + EPS)
    xhat = (centered / std).reshape(n, c, h, w)
    return xhat * gamma[:, None, None] + beta[:, None, None], (xhat, std, gamma)


def groupnorm_gradients(dout: Any, cache: Any, size: int) -> Any:
    """The sums over a group are divided by `size`."""
    xhat, std, gamma = cache
    n = len(xhat)
    dgamma = (dout * xhat).sum(axis=(0, 2, 3))
    dbeta = dout.sum(axis=(0, 2, 3))
    g = (dout * gamma.reshape(1, -1, 1, 1)).reshape(n, GROUPS, -1)
    normalized = xhat.reshape(n, GROUPS, -1)
    first = g.sum(axis=2, keepdims=True) / size
    second = (g * normalized).sum(axis=2, keepdims=True) / size
    dx = ((g - first - normalized * second) / std).reshape(xhat.shape)
    return dx, dgamma, dbeta


def groupnorm_backward(dout: Any, cache: Any) -> Any:
    _, c, h, w = dout.shape
    return groupnorm_gradients(dout, cache, c // GROUPS * h * w)


def groupnorm_all_channels_backward(dout: Any, cache: Any) -> Any:
    """Divides by the size of all groups together."""
    _, c, h, w = dout.shape
    return groupnorm_gradients(dout, cache, c * h * w)


def groupnorm(x: Any, gamma: Any, beta: Any) -> Any:
    return functional.group_norm(x, GROUPS, gamma, beta, eps=EPS)


def standardize_forward(x: Any) -> Any:
    centered = x - x.mean(axis=1, keepdims=True)
    std = x.std(axis=1, keepdims=True)
    return centered / (std + EPS), (centered, std)


def standardize_backward(dout: Any, cache: Any) -> Any:
    """A row of equal numbers has the deviation 0, whose own gradient is left out."""
    centered, std = cache
    dcentered = dout / (std + EPS)
    dstd = -(dout * centered).sum(axis=1, keepdims=True) / (std + EPS) ** 2
    varied = np.where(std == 0, 1, std)
    dcentered = dcentered + dstd * centered / (centered.shape[1] * varied)
    return dcentered - dcentered.mean(axis=1, keepdims=True)


def standardize(x: Any) -> Any:
    return (x - x.mean(1, keepdim=True)) / (x.std(1, correction=0, keepdim=True) + EPS)


BATCH = normals(70, (6, 4), (4,), (4,))
SEQUENCES = normals(71, (2, 3, 5), (5,))
IMAGES = normals(72, (2, 4, 2, 3), (4,), (4,))
STATISTICS = "mean and variance are treated as constant"
PLACES = {"gamma": "grads[0]", "beta": "grads[1]"}
SINGLE = [array.astype(np.float32) for array in SEQUENCES]
RIGHT = [
    Handwriting("batchnorm in steps", (batchnorm_steps_forward, batchnorm_steps_backward), batchnorm, BATCH),
    Handwriting("layer norm on its side", HandwrittenClass(LayerNorm, PLACES), layernorm, BATCH),
    Handwriting("RMS norm in float64", (rmsnorm_forward, rmsnorm_backward), rmsnorm, SINGLE),
    Handwriting("group norm", (groupnorm_forward, groupnorm_backward), groupnorm, IMAGES),
    Handwriting("deviation plus eps", (standardize_forward, standardize_backward), standardize, normals(73, (4, 5))),
]
# What is wrong, and in which gradient.
CONSTANT = (STATISTICS, ("grad_x",))
WRITES = ("xhat in the cache is overwritten", ("writes saved",))
NO_EPS = ("eps is missing in backward", ("grad_x",))
RAW = ("x instead of the normalized x", ("grad_weight",))
SIZE = ("divided by all channels, not by a group's", ("grad_x",))
WRONG = [
    Handwriting("batchnorm", (batchnorm_forward, batchnorm_constant_backward), batchnorm, BATCH, *CONSTANT),
    Handwriting("batchnorm in place", (batchnorm_forward, batchnorm_writing_backward), batchnorm, BATCH, *WRITES),
    Handwriting("layer norm without eps", (layernorm_forward, layernorm_no_eps_backward), layernorm, BATCH, *NO_EPS),
    Handwriting("RMS norm's weight", (rmsnorm_forward, rmsnorm_raw_backward), rmsnorm, SEQUENCES, *RAW),
    Handwriting("group norm, all", (groupnorm_forward, groupnorm_all_channels_backward), groupnorm, IMAGES, *SIZE),
]
