"""Clipping: a bound on the norm of the whole gradient."""

from __future__ import annotations

import numpy as np

from nn_manual.arrays import Array, blocks


def clip_grad_norm(grad: Array, max_norm: float) -> float:
    """Scale `grad` in place so that its norm is at most `max_norm`; return the norm that it had.

        norm = sqrt(sum(grad**2))
        grad = grad * min(1, max_norm / (norm + 1e-6))

    The 1e-6 is torch.nn.utils.clip_grad_norm_'s. The sum of squares runs block by block in grad's dtype, in float64
    across blocks; squares that overflow make the norm infinite and the gradient zero, as torch's do.
    """
    norm = float(np.sqrt(sum(float(np.dot(grad[block], grad[block])) for block in blocks(grad.size))))
    scale = max_norm / (norm + 1e-6)
    if scale < 1:
        grad *= scale
    return norm
