"""Tensor operations, each with its vector-Jacobian product derived by hand.

    from nn_manual import ops

    product, backward_matmul = ops.vjp(ops.matmul, x, weight)
    f, backward_sum = ops.vjp(ops.sum, product)
    grad_x, grad_weight = backward_matmul(backward_sum(1.0))

`ops.matmul(x, weight)` is the answer alone. Operands are numpy arrays or torch tensors. Read the modules from easy to
tricky: elementwise, arithmetic, products, shapes, reductions. `operation` is the contract that they share.
"""

from nn_manual.ops.arithmetic import add, divide, maximum, minimum, multiply, power, subtract
from nn_manual.ops.chain import chain_gradients
from nn_manual.ops.elementwise import abs, clip, exp, log, reciprocal, relu, sqrt, square, tanh
from nn_manual.ops.numerical import numerical_gradient
from nn_manual.ops.operation import Operation, unbroadcast, vjp
from nn_manual.ops.products import matmul, outer, trace
from nn_manual.ops.reductions import logsumexp, max, mean, min, softmax, sum
from nn_manual.ops.shapes import broadcast_to, concatenate, diagonal, index, reshape, transpose

__all__ = [
    "Operation",
    "abs",
    "add",
    "broadcast_to",
    "chain_gradients",
    "clip",
    "concatenate",
    "diagonal",
    "divide",
    "exp",
    "index",
    "log",
    "logsumexp",
    "matmul",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "multiply",
    "numerical_gradient",
    "outer",
    "power",
    "reciprocal",
    "relu",
    "reshape",
    "softmax",
    "sqrt",
    "square",
    "subtract",
    "sum",
    "tanh",
    "trace",
    "transpose",
    "unbroadcast",
    "vjp",
]
