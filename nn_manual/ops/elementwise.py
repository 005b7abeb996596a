"""Elementwise operations of one operand, any shape.

answer[i] depends on input[i] alone, so the Jacobian is diagonal and the chain rule is one product for each entry:
grad_input[i] = grad_answer[i] f'(input[i]). Each docstring derives f'.
"""

from __future__ import annotations

import math

from nn_manual.arrays import namespace
from nn_manual.ops.operation import Differentiated, Tensor, defined, operation


@operation(analytic=True)
def square(input: Tensor, /) -> Differentiated:
    """Elementwise square.

        answer     = input * input
        grad_input = grad_answer * 2 * input

    Derivation: (x + h)**2 = x**2 + 2 x h + h**2; the term linear in h is 2 x h.
    """
    return input * input, lambda grad_answer: grad_answer * 2 * input


@operation(analytic=True)
def reciprocal(input: Tensor, /) -> Differentiated:
    """Elementwise 1 / input; infinite at 0, as in torch.

        answer     = 1 / input
        grad_input = -grad_answer * answer * answer

    Derivation: differentiate x y = 1: y + x y' = 0, so y' = -y / x = -y**2.
    """
    answer = 1 / input
    return answer, lambda grad_answer: -grad_answer * answer * answer


@operation(analytic=True)
def sqrt(input: Tensor, /) -> Differentiated:
    """Elementwise square root. Raises ValueError for a negative entry; at 0 the slope is infinite, as in torch.

        answer     = sqrt(input)
        grad_input = grad_answer / (2 * answer)

    Derivation: differentiate y**2 = x: 2 y y' = 1.
    """
    answer = defined(namespace(input).sqrt(input), input)
    return answer, lambda grad_answer: grad_answer / (2 * answer)


@operation(analytic=True)
def exp(input: Tensor, /) -> Differentiated:
    """Elementwise exponential.

        answer     = exp(input)
        grad_input = grad_answer * answer

    Derivation: the power series sum_k x**k / k!, differentiated term by term, is itself.
    """
    answer = namespace(input).exp(input)
    return answer, lambda grad_answer: grad_answer * answer


@operation(analytic=True)
def log(input: Tensor, /) -> Differentiated:
    """Elementwise natural logarithm. Raises ValueError for a negative entry; log(0) is -inf, as in torch.

        answer     = log(input)
        grad_input = grad_answer / input

    Derivation: differentiate exp(y) = x: exp(y) y' = 1, so y' = 1 / x.
    """
    return defined(namespace(input).log(input), input), lambda grad_answer: grad_answer / input


@operation(analytic=True)
def tanh(input: Tensor, /) -> Differentiated:
    """Elementwise hyperbolic tangent.

        answer     = tanh(input)
        grad_input = grad_answer * (1 - answer * answer)

    Derivation: tanh = sinh / cosh, so by the quotient rule tanh' = (cosh**2 - sinh**2) / cosh**2 = 1 - tanh**2.
    """
    answer = namespace(input).tanh(input)
    return answer, lambda grad_answer: grad_answer * (1 - answer * answer)


@operation(analytic=False)
def relu(input: Tensor, /) -> Differentiated:
    """Elementwise rectifier.

        answer     = maximum(input, 0)
        grad_input = where(input > 0, grad_answer, 0)

    Derivation: the slope is 1 right of 0 and 0 left of it. At the kink any value in [0, 1] is a subgradient;
    torch takes 0. It is `where` and not a product because 0 times an infinite gradient is not a number.
    """
    xp = namespace(input)
    answer = xp.clip(input, 0, None)  # torch's maximum takes no Python number
    return answer, lambda grad_answer: xp.where(input > 0, grad_answer, 0)


@operation(analytic=False)
def abs(input: Tensor, /) -> Differentiated:
    """Elementwise absolute value.

        answer     = absolute(input)
        grad_input = grad_answer * sign(input)

    Derivation: the slope is -1 left of 0 and 1 right of it. At the kink any value in [-1, 1] is a subgradient;
    torch takes 0, which is sign(0).
    """
    xp = namespace(input)
    return xp.abs(input), lambda grad_answer: grad_answer * xp.sign(input)


@operation(analytic=False)
def clip(input: Tensor, /, *, min: float = -math.inf, max: float = math.inf) -> Differentiated:
    """Elementwise limit to [min, max], two numbers. Raises ValueError if min > max.

        answer     = minimum(maximum(input, min), max)
        grad_input = where((input >= min) & (input <= max), grad_answer, 0)

    Derivation: the slope is 1 between the limits, where the answer is the input, and 0 outside, where it is
    constant. At the limits, which are kinks, any value in [0, 1] is a subgradient. Ours at these kinks is 1, as in
    torch's clamp before version 2.14; from 2.14 on, torch takes 0, or 1/2 if the limits are tensors.
    """
    if min > max:
        raise ValueError(f"min {min} is above max {max}")
    xp = namespace(input)
    answer = xp.clip(input, min, max)
    return answer, lambda grad_answer: xp.where((input >= min) & (input <= max), grad_answer, 0)
