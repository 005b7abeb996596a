"""Exercises of matrix calculus: products, quadratic forms, norms, determinants, the largest of a row."""

from typing import Any

import numpy as np
import torch

from benchmarks.functions.handwritten.draws import normals
from benchmarks.functions.subject import Handwriting


def quadratic_forward(x: Any, A: Any) -> Any:
    return x @ A @ x, {"x": x, "A": A}


def quadratic_backward(dout: Any, cache: Any) -> Any:
    x, a = cache["x"], cache["A"]
    return dout * (a + a.T) @ x, dout * np.outer(x, x)


def quadratic_symmetric_backward(dout: Any, cache: Any) -> Any:
    """2 A x holds only if A is symmetric."""
    x, a = cache["x"], cache["A"]
    return dout * 2 * a @ x, dout * np.outer(x, x)


def quadratic(x: Any, A: Any) -> Any:
    return x @ A @ x


def logdet_forward(d: Any) -> Any:
    return np.log(d).sum(), d


def logdet_backward(cache: Any) -> Any:
    """The inverse of diag(d), of which only the diagonal is a gradient."""
    return 1.0 / cache


def logdet(d: Any) -> Any:
    return torch.log(d).sum()


def row_max_forward(x: Any) -> Any:
    return x.max(axis=1), (x, x.max(axis=1))


def row_max_first_backward(dout: Any, cache: Any) -> Any:
    """The first of equal ones gets all."""
    x, _ = cache
    dx = np.zeros(x.shape)
    for i in range(x.shape[0]):
        dx[i, np.argmax(x[i])] = dout[i]
    return dx


def row_max_all_backward(dout: Any, cache: Any) -> Any:
    """Each of equal ones gets all."""
    x, out = cache
    return (x == out[:, None]) * dout[:, None]


def row_max(x: Any) -> Any:
    return x.amax(1)


def norms_forward(x: Any) -> Any:
    out = np.sqrt((x * x).sum(axis=1))
    return out, (x, out)


def norms_backward(dout: Any, cache: Any) -> Any:
    """Zero at zero, where there is no direction."""
    x, out = cache
    safe = np.where(out > 0, out, 1)
    return x * (dout / safe)[:, None]


def norms(x: Any) -> Any:
    return torch.linalg.vector_norm(x, dim=1)


def bilinear_forward(x: Any, W: Any, y: Any) -> Any:
    return np.einsum("ni,ij,nj->n", x, W, y), [x, W, y]


def bilinear_backward(dout: Any, cache: Any) -> Any:
    x, w, y = cache
    dx = np.einsum("n,ij,nj->ni", dout, w, y)
    dw = np.einsum("n,ni,nj->ij", dout, x, y)
    dy = np.einsum("n,ij,ni->nj", dout, w, x)
    return dx, dw, dy


def bilinear(x: Any, W: Any, y: Any) -> Any:
    return ((x @ W) * y).sum(1)


def outer_forward(x: Any, y: Any) -> Any:
    return np.outer(x, y), (x, y)


def outer_backward(dout: Any, cache: Any) -> Any:
    """dout is transposed in one product too many."""
    x, y = cache
    return dout.T @ y, dout.T @ x


def outer(x: Any, y: Any) -> Any:
    return torch.outer(x, y)


def cosine_forward(x: Any, y: Any) -> Any:
    dot = (x * y).sum(axis=1)
    length = np.sqrt((x * x).sum(axis=1)) * np.sqrt((y * y).sum(axis=1)) + 1e-8
    return dot / length, (x, y, length)


def cosine_backward(dout: Any, cache: Any) -> Any:
    """The lengths depend on x and y, too."""
    x, y, length = cache
    factor = (dout / length)[:, None]
    return factor * y, factor * x


def cosine(x: Any, y: Any) -> Any:
    return (x * y).sum(1) / (torch.linalg.vector_norm(x, dim=1) * torch.linalg.vector_norm(y, dim=1) + 1e-8)


LAST: dict[str, Any] = {}


def dot_forward(x: Any, y: Any) -> Any:
    LAST["x"], LAST["y"] = x, y
    return (x * y).sum(axis=-1), None


def dot_backward(dout: Any, cache: Any) -> Any:
    """A global has what the last forward got, not what this one got."""
    return dout[:, None] * LAST["y"], dout[:, None] * LAST["x"]


def dot(x: Any, y: Any) -> Any:
    return torch.einsum("nd,nd->n", x, y)


RIGHT = [
    Handwriting("quadratic form", (quadratic_forward, quadratic_backward), quadratic, normals(20, (4,), (4, 4))),
    Handwriting(
        "logarithm of the determinant of a diagonal",
        (logdet_forward, logdet_backward),
        logdet,
        [np.random.default_rng(21).uniform(0.5, 2, 6)],
    ),
    Handwriting(
        "largest of each row, the first of equal ones in a loop",
        (row_max_forward, row_max_first_backward),
        row_max,
        normals(22, (4, 5)),
    ),
    Handwriting("length of each row, safe at zero", (norms_forward, norms_backward), norms, normals(23, (4, 3))),
    Handwriting(
        "bilinear form by einsum",
        (bilinear_forward, bilinear_backward),
        bilinear,
        normals(24, (4, 3), (3, 5), (4, 5)),
    ),
]
WRONG = [
    Handwriting(
        "quadratic form as if symmetric",
        (quadratic_forward, quadratic_symmetric_backward),
        quadratic,
        normals(20, (4,), (4, 4)),
        "2 A x, though A isn't symmetric",
        ("grad_x",),
    ),
    Handwriting(
        "outer product",
        (outer_forward, outer_backward),
        outer,
        normals(25, (4,), (4,)),
        "dout is transposed in the gradient of x",
        ("grad_x",),
    ),
    Handwriting(
        "largest of each row, by a mask",
        (row_max_forward, row_max_all_backward),
        row_max,
        normals(22, (4, 5)),
        "each of equal ones gets the full gradient",
        ("kinds tied", "grad_x"),
    ),
    Handwriting(
        "cosine of the angle between rows",
        (cosine_forward, cosine_backward),
        cosine,
        normals(26, (4, 3), (4, 3)),
        "the lengths are treated as constant",
        ("grad_x", "grad_y"),
    ),
    Handwriting(
        "dot products with a global cache",
        (dot_forward, dot_backward),
        dot,
        normals(27, (4, 3), (4, 3)),
        "the cache is a global",
        ("two forwards",),
    ),
]
