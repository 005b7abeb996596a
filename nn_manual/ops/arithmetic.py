"""Elementwise operations of two operands, which broadcast against each other.

Each answer[j] depends on one entry of a and one entry of b, those that broadcasting copies to j. The gradient at j is
grad_answer[j] times the partial derivative; `unbroadcast` adds the gradients of all positions that an entry is copied
to. Shapes that don't broadcast raise ValueError.
"""

from __future__ import annotations

from nn_manual.arrays import namespace
from nn_manual.ops.operation import Differentiated, Tensor, broadcast_shape, defined, operation, unbroadcast


@operation(analytic=True)
def add(a: Tensor, b: Tensor, /) -> Differentiated:
    """Elementwise sum.

        answer = a + b
        grad_a = unbroadcast(grad_answer, a.shape)
        grad_b = unbroadcast(grad_answer, b.shape)

    Derivation: both partial derivatives are 1.
    """
    broadcast_shape(a.shape, b.shape)
    return (
        a + b,
        lambda grad_answer: unbroadcast(grad_answer, a.shape),
        lambda grad_answer: unbroadcast(grad_answer, b.shape),
    )


@operation(analytic=True)
def subtract(a: Tensor, b: Tensor, /) -> Differentiated:
    """Elementwise difference.

        answer = a - b
        grad_a = unbroadcast(grad_answer, a.shape)
        grad_b = unbroadcast(-grad_answer, b.shape)

    Derivation: the partial derivatives are 1 and -1.
    """
    broadcast_shape(a.shape, b.shape)
    return (
        a - b,
        lambda grad_answer: unbroadcast(grad_answer, a.shape),
        lambda grad_answer: unbroadcast(-grad_answer, b.shape),
    )


@operation(analytic=True)
def multiply(a: Tensor, b: Tensor, /) -> Differentiated:
    """Elementwise product (Hadamard's).

        answer = a * b
        grad_a = unbroadcast(grad_answer * b, a.shape)
        grad_b = unbroadcast(grad_answer * a, b.shape)

    Derivation: (a + h) b = a b + h b, so the partial derivative with respect to a is b. In the same way, that with
    respect to b is a.
    """
    broadcast_shape(a.shape, b.shape)
    return (
        a * b,
        lambda grad_answer: unbroadcast(grad_answer * b, a.shape),
        lambda grad_answer: unbroadcast(grad_answer * a, b.shape),
    )


@operation(analytic=True)
def divide(a: Tensor, b: Tensor, /) -> Differentiated:
    """Elementwise quotient. A number over 0 is infinite, as torch's; 0 / 0 raises ValueError.

        answer = a / b
        grad_a = unbroadcast(grad_answer / b, a.shape)
        grad_b = unbroadcast(-grad_answer * answer / b, b.shape)

    Derivation: differentiate y b = a. With respect to a: y' b = 1. With respect to b: y' b + y = 0, so y' = -y / b.
    """
    broadcast_shape(a.shape, b.shape)
    answer = defined(a / b, a, b)
    return (
        answer,
        lambda grad_answer: unbroadcast(grad_answer / b, a.shape),
        lambda grad_answer: unbroadcast(-grad_answer * answer / b, b.shape),
    )


@operation(analytic=False)  # off the positive axis the real values are isolated points of a complex function
def power(base: Tensor, exponent: Tensor, /) -> Differentiated:
    """Elementwise base**exponent. Raises ValueError for a negative base with an exponent that isn't whole.

        answer         = base ** exponent
        slope_base     = where(exponent == 0, 0, exponent * base ** (exponent - 1))
        slope_exponent = where((base == 0) & (exponent >= 0), 0, answer * log(base))
        grad_base      = unbroadcast(grad_answer * slope_base, base.shape)
        grad_exponent  = unbroadcast(grad_answer * slope_exponent, exponent.shape)

    Derivation: base**exponent = exp(exponent log(base)). By the chain rule, the slope for the base is
    answer * exponent / base, which is exponent * base**(exponent - 1), and the slope for the exponent is
    answer * log(base). Two limits are taken where the product is 0 * infinity: x**0 is 1 for every x, so its slope
    is 0 even at x = 0; and 0**t is 0 for every t > 0, so its slope for t is 0 (torch takes 0 at t = 0, too).

    A negative base has no real logarithm: its whole powers have a gradient for the base, but the exponent's gradient
    raises ValueError. An exponent that is a Python number is a constant and has no gradient.
    """
    xp = namespace(base)
    broadcast_shape(base.shape, exponent.shape)
    answer = defined(base**exponent, base, exponent)

    def backward_base(grad_answer: Tensor) -> Tensor:
        slope_base = xp.where(exponent == 0, 0, exponent * base ** (exponent - 1))
        return unbroadcast(grad_answer * slope_base, base.shape)

    def backward_exponent(grad_answer: Tensor) -> Tensor:
        try:
            log_base = defined(xp.log(base), base)
        except ValueError as error:
            raise ValueError(f"power: the exponent's gradient needs log(base), {error}") from None
        slope_exponent = xp.where((base == 0) & (exponent >= 0), 0, answer * log_base)
        return unbroadcast(grad_answer * slope_exponent, exponent.shape)

    return answer, backward_base, backward_exponent


@operation(analytic=False)
def maximum(a: Tensor, b: Tensor, /) -> Differentiated:
    """The larger of two operands, elementwise.

        answer = where(a >= b, a, b)
        grad_a = unbroadcast(where(a > b, grad_answer, where(a == b, grad_answer / 2, 0)), a.shape)
        grad_b = unbroadcast(where(b > a, grad_answer, where(a == b, grad_answer / 2, 0)), b.shape)

    Derivation: the slope is 1 for the larger operand and 0 for the other. At a tie, any two slopes that add up to 1 are
    a subgradient; torch takes 1/2 for each.
    """
    broadcast_shape(a.shape, b.shape)
    return (
        namespace(a).maximum(a, b),
        lambda grad_answer: unbroadcast(share(a > b, a == b, grad_answer), a.shape),
        lambda grad_answer: unbroadcast(share(b > a, a == b, grad_answer), b.shape),
    )


@operation(analytic=False)
def minimum(a: Tensor, b: Tensor, /) -> Differentiated:
    """The smaller of two operands, elementwise.

        answer = where(a <= b, a, b)
        grad_a = unbroadcast(where(a < b, grad_answer, where(a == b, grad_answer / 2, 0)), a.shape)
        grad_b = unbroadcast(where(b < a, grad_answer, where(a == b, grad_answer / 2, 0)), b.shape)

    Derivation: as maximum's, with the order reversed. At a tie, torch takes the slope 1/2 for each operand.
    """
    broadcast_shape(a.shape, b.shape)
    return (
        namespace(a).minimum(a, b),
        lambda grad_answer: unbroadcast(share(a < b, a == b, grad_answer), a.shape),
        lambda grad_answer: unbroadcast(share(b < a, a == b, grad_answer), b.shape),
    )


def share(chosen: Tensor, tied: Tensor, grad_answer: Tensor) -> Tensor:
    """The gradient where the operand was chosen, half of it at a tie, 0 elsewhere."""
    xp = namespace(grad_answer)
    return xp.where(chosen, grad_answer, xp.where(tied, grad_answer / 2, 0))
