"""Operations: each has an answer, and for each operand a vector-Jacobian product derived by hand."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from nn_manual.arrays import Shape, namespace
from nn_manual.errors import raise_if_nobodys_fault

#: A numpy array or a torch tensor: the formulas use names that both libraries have, so they run on either.
Tensor: TypeAlias = Any
#: From the gradient for the answer to the gradient for one operand.
Backward: TypeAlias = Callable[[Tensor], Tensor]
#: A rule returns this: the answer, then one Backward for each operand.
Differentiated: TypeAlias = tuple[Tensor, *tuple[Backward, ...]]


class Operation:
    """A function of arrays, with the vector-Jacobian product of each of its operands.

    Called as a function, it returns the answer; `vjp` returns the way back, too. Operands are numpy arrays or torch
    tensors, all of one library, or Python numbers, which are constants; options follow as keywords. `analytic` says
    that the formula extends to complex operands, so that a complex step gives its derivative but for rounding.

    Infinities are values, as in torch: 1 / 0 and log(0) raise nothing. Raises TypeError for operands that are neither,
    or of two libraries. Raises ValueError, which names the operation and the shapes, for shapes and axes that don't
    fit, and if an entry of the answer isn't a number although the operands are.
    """

    __name__: str

    def __init__(self, rule: Callable[..., Differentiated], analytic: bool) -> None:
        functools.update_wrapper(self, rule)
        self.rule = rule
        self.analytic = analytic

    def __repr__(self) -> str:
        return f"<operation {self.__name__}>"

    def __call__(self, *operands: Tensor, **options: Any) -> Tensor:
        """The answer alone."""
        answer, *_ = self.differentiate(as_arrays(self.__name__, operands), options)
        return answer

    def differentiate(self, arrays: list[Tensor], options: dict[str, Any]) -> Differentiated:
        """Run the rule. Its error messages begin with the operation's name and the operands' shapes."""
        try:
            with np.errstate(all="ignore"):  # where torch gives inf, numpy would warn; `defined` refuses a NaN
                return self.rule(*arrays, **options)
        except (ValueError, IndexError, RuntimeError) as error:
            raise_if_nobodys_fault(error)
            shapes = " and ".join(str(tuple(array.shape)) for array in arrays)
            raise ValueError(f"{self.__name__} of {shapes}: {error}") from error


def operation(*, analytic: bool) -> Callable[[Callable[..., Differentiated]], Operation]:
    """Decorator: make an Operation of a rule, which returns the answer and a Backward for each operand."""
    return lambda rule: Operation(rule, analytic)


def vjp(operation: Operation, *operands: Tensor, **options: Any) -> tuple[Tensor, Callable[[Tensor], Any]]:
    """`answer, backward`: run an operation, and get the function that takes a gradient back through it.

        answer, backward = vjp(multiply, a, b)
        grad_a, grad_b = backward(grad_answer)

    For a scalar loss f, grad_answer[j] = d f / d answer[j], in the answer's shape. By the chain rule,
    grad_a[i] = sum_j grad_answer[j] d answer[j] / d a[i], in a's shape: the upstream vector times the Jacobian, which
    is never formed. `backward` may be called several times, with any upstream gradients.

    `backward` returns one gradient for each array operand, in order. If there is only one array, it returns this
    gradient and no tuple, so that calls chain: `backward_exp(backward_sum(1.0))`. Python numbers are constants
    and have no gradient: `vjp(power, x, 2)` has one gradient. For an answer of shape () the upstream gradient
    may be a Python number.

    Raises TypeError for a function that is no Operation, and unless the arrays share one floating dtype. Raises
    ValueError, which states both shapes, for an upstream gradient that is not shaped as the answer: it is never
    broadcast.
    """
    if not isinstance(operation, Operation):
        raise TypeError(f"vjp takes an operation of nn_manual.ops, not {operation!r}")
    arrays = as_arrays(operation.__name__, operands)
    check_differentiable(operation.__name__, arrays)
    answer, *backwards = operation.differentiate(arrays, options)
    wanted = [step for operand, step in zip(operands, backwards, strict=True) if not is_constant(operand)]

    def backward(grad_answer: Tensor) -> Any:
        grad_answer = check_upstream(operation.__name__, grad_answer, answer.shape, answer)
        with np.errstate(all="ignore"):  # as in differentiate
            gradients = tuple(step(grad_answer) for step in wanted)
        return gradients if len(gradients) > 1 else gradients[0]

    return answer, backward


def as_arrays(name: str, operands: Sequence[Tensor]) -> list[Tensor]:
    """The operands, with Python numbers as arrays of shape () in the library and dtype of the others.

    Raises TypeError, with the operation's `name`, for anything else and for arrays of two libraries.
    """
    arrays = [operand for operand in operands if not is_constant(operand)]
    if any(namespace(array) is np and not isinstance(array, (np.ndarray, np.generic)) for array in arrays):
        kinds = ", ".join(type(operand).__name__ for operand in operands)
        raise TypeError(f"{name}: operands are numpy arrays, torch tensors or Python numbers, not {kinds}")
    if len({namespace(array) for array in arrays}) != 1:
        kinds = ", ".join(type(operand).__name__ for operand in operands)
        raise TypeError(f"{name}: operands are arrays of one library, at least one, not {kinds}")
    return [as_array(operand, arrays[0]) for operand in operands]


def check_differentiable(name: str, arrays: Sequence[Tensor]) -> None:
    """Raise TypeError, with the operation's `name`, unless the arrays share one floating dtype."""
    dtypes = list(dict.fromkeys(str(array.dtype) for array in arrays))
    if len(dtypes) > 1:
        raise TypeError(f"{name}: a gradient needs operands of one dtype, not {' and '.join(dtypes)}")
    if "float" not in dtypes[0]:  # the spelling that both share: float32, torch.float32, torch.bfloat16
        raise TypeError(f"{name}: a gradient needs operands of a floating dtype, not {dtypes[0]}")


def check_upstream(name: str, grad_answer: Tensor, shape: Shape, like: Tensor) -> Tensor:
    """The upstream gradient as an array, also if it is a number; `like` has the answer's library and dtype.

    Raises, with the operation's `name`, ValueError unless it has the answer's shape, and TypeError unless it has the
    answer's dtype.
    """
    (grad_answer,) = as_arrays(name, (as_array(grad_answer, like),))
    if tuple(grad_answer.shape) != tuple(shape):
        raise ValueError(
            f"{name}: the upstream gradient has shape {tuple(grad_answer.shape)}, the answer {tuple(shape)}"
        )
    if (namespace(grad_answer), grad_answer.dtype) != (namespace(like), like.dtype):
        kinds = [f"{namespace(array).__name__}'s {array.dtype}" for array in (grad_answer, like)]
        raise TypeError(f"{name}: the upstream gradient is {kinds[0]}, the answer {kinds[1]}")
    return grad_answer


def is_constant(operand: Tensor) -> bool:
    """Whether an operand is a Python number. numpy's float64, a subclass of float, counts as an array of shape ()."""
    return isinstance(operand, (int, float)) and not isinstance(operand, np.generic)


def as_array(operand: Tensor, like: Tensor) -> Tensor:
    """An array as it is; a Python number as one of shape (), with the dtype that `number * like` would have."""
    if not is_constant(operand):
        return operand
    xp = namespace(like)
    return xp.asarray(operand, dtype=xp.result_type(like, operand), device=like.device)


def unbroadcast(grad: Tensor, shape: Shape) -> Tensor:
    """The gradient for an operand of this shape, from the gradient for the array that it was broadcast to.

        grad_operand = sum of grad over every axis along which the operand was repeated

    Derivation: broadcasting copies operand[i] to every position j of a set R(i), broadcast[j] = operand[i], so
    d broadcast[j] / d operand[i] is 1 for j in R(i) and 0 elsewhere, and grad_operand[i] = sum over R(i) of
    grad[j]. R(i) runs along the leading axes that the operand doesn't have, and along those where its size is 1.
    A broadcast to size 0 repeats nothing: the sum over no positions is 0. Raises ValueError if the shape doesn't
    broadcast to grad's.
    """
    num_added = grad.ndim - len(shape)
    aligned = (1,) * num_added + tuple(shape)
    if num_added < 0 or any(size not in (1, wide) for size, wide in zip(aligned, grad.shape, strict=True)):
        raise ValueError(f"shape {tuple(shape)} does not broadcast to {tuple(grad.shape)}")
    repeated = tuple(axis for axis, size in enumerate(aligned) if size != grad.shape[axis])
    if repeated:  # torch takes an empty tuple of axes for all of them
        grad = grad.sum(repeated)
    return grad.reshape(tuple(shape))


def broadcast_shape(a: Shape, b: Shape) -> Shape:
    """The shape that two shapes broadcast to. Raises ValueError if they don't broadcast."""
    try:
        return np.broadcast_shapes(tuple(a), tuple(b))
    except ValueError:
        raise ValueError(f"{tuple(a)} and {tuple(b)} do not broadcast: sizes differ and neither is 1") from None


def defined(answer: Tensor, *operands: Tensor) -> Tensor:
    """The answer of an elementwise operation. Raises ValueError if an entry isn't a number but its operands are."""
    xp = namespace(answer)
    undefined = xp.isnan(answer)
    for operand in operands:
        undefined = undefined & ~xp.isnan(operand)
    if undefined.any():
        index = tuple(int(position) for position in xp.argwhere(undefined)[0])
        values = " and ".join(str(xp.broadcast_to(operand, answer.shape)[index].item()) for operand in operands)
        raise ValueError(f"not defined for {values}, at index {index}")
    return answer
