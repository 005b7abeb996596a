"""Clipping: a bound on the norm of the whole gradient."""

from __future__ import annotations

import numpy as np

from nn_manual.arrays import Array, blocks


@np.errstate(over="ignore")  # an infinite norm is part of the formula
def clip_grad_norm(grad: Array, max_norm: float) -> np.float64:
    """Scale `grad` in place so that its norm is at most `max_norm`; return the norm that it had.

        norm = sqrt(sum(grad**2))
        grad = grad * min(1, max_norm / (norm + 1e-6))

    The 1e-6 is the one of torch.nn.utils.clip_grad_norm_. Squares are added in grad's dtype within a block, and in
    float64 across blocks. If squares overflow, the norm is infinite and the gradient becomes 0, as in torch.
    """
    squares = (np.dot(grad[block], grad[block]).astype(np.float64) for block in blocks(grad.size))
    norm: np.float64 = np.sqrt(sum(squares, start=np.float64(0)))
    scale = np.minimum(1, max_norm / (norm + 1e-6))
    grad *= scale.astype(grad.dtype)
    return norm
