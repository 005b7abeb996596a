"""Common mistakes in what is computed number by number: operations, activations, and terms of losses."""

from __future__ import annotations

from nn_manual.exercises.causes.common_mistakes.calculus import COPIES, UPSTREAM
from nn_manual.exercises.causes.common_mistakes.classes import MEAN

SHAPE = "The numbers are right: they only go back into the input's shape."
UNSCALED = "without the factor `grad_output`"
BELOW_ZERO = "Left of 0 the slope is another one."
EXP_OF_CELU = "Left of 0 the output is alpha * (exp(x / alpha) - 1): its slope is exp(x / alpha)."
CANCELS = "The factor alpha and the 1 / alpha of the chain rule cancel."
FALLS = "The difference is prediction less target: with the target its sign turns."
LARGER = "The answer is the larger operand: the other one doesn't move it."
SMALLER = "The answer is the smaller operand: the other one doesn't move it."
TIE = "At a tie both operands have the slope 1/2, as torch takes it: the two add up to 1."

MISTAKES: dict[str, dict[str, str]] = {
    "abs": {
        "without the factor `grad_answer`": UPSTREAM,
        "without `* sign(input)`": "The slope is -1 left of 0 and 1 right of it.",
        "with `input > 0` in the place of `sign(input)`": "Left of 0 the slope is -1, not 0.",
    },
    "add": {
        "without the `unbroadcast` of `unbroadcast(grad_answer, a.shape)`": COPIES,
        "without the `unbroadcast` of `unbroadcast(grad_answer, b.shape)`": COPIES,
    },
    "subtract": {
        "without the minus of `-grad_answer`": "a - b falls where b grows: its slope is -1.",
        "without the `unbroadcast` of `unbroadcast(grad_answer, a.shape)`": COPIES,
        "without the `unbroadcast` of `unbroadcast(-grad_answer, b.shape)`": COPIES,
    },
    "broadcast_to": {"without the `unbroadcast` of `unbroadcast(grad_answer, input.shape)`": COPIES},
    "reshape": {"without the `reshape` of `grad_answer.reshape(input.shape)`": SHAPE},
    "flatten": {"without the `reshape` of `grad_output.reshape(input_shape)`": SHAPE},
    "unflatten": {"without the `reshape` of `grad_output.reshape(input_shape)`": SHAPE},
    "exp": {
        "without the factor `grad_answer`": UPSTREAM,
        "without `* answer`": "The derivative of exp is exp itself: the answer.",
    },
    "sqrt": {
        "without the factor `grad_answer`": UPSTREAM,
        "without `/ 2`": "The exponent 1/2 comes down as a factor: the derivative is 1 / (2 sqrt(x)).",
        "without `/ answer`": "The derivative of sqrt(x) is 1 / (2 sqrt(x)).",
    },
    "reciprocal": {
        "with its sign turned": "1 / x falls where x grows: its derivative is -1 / x**2.",
        "without the minus of `-grad_answer`": "1 / x falls where x grows: its derivative is -1 / x**2.",
        "without `* answer`": "The derivative is -1 / x**2: the answer stands in it twice.",
    },
    "clip": {
        "with `grad_answer` everywhere, in the place of `where((input >= min) & (input <= max), grad_answer, 0)`":
            "Beyond the limits the answer is constant: its slope is 0.",
        "without `input <= max`": "Above max the answer is constant, too.",
        "without `input >= min`": "Below min the answer is constant, too.",
    },
    "maximum": {
        "without the `unbroadcast` of `unbroadcast(where(a > b, grad_answer, "
        "where(a == b, grad_answer / 2, 0)), a.shape)`": COPIES,
        "without the `unbroadcast` of `unbroadcast(where(b > a, grad_answer, "
        "where(a == b, grad_answer / 2, 0)), b.shape)`": COPIES,
        "with `grad_answer` everywhere, in the place of `where(a > b, grad_answer, "
        "where(a == b, grad_answer / 2, 0))`": LARGER,
        "with `grad_answer` everywhere, in the place of `where(b > a, grad_answer, "
        "where(a == b, grad_answer / 2, 0))`": LARGER,
        "with `a < b` in the place of `a > b`": LARGER,
        "with `b < a` in the place of `b > a`": LARGER,
        "with 1 in the place of `grad_answer`": UPSTREAM,
        "without `/ 2`": TIE,
        "with 0 in the place of `where(a == b, grad_answer / 2, 0)`": TIE,
    },
    "minimum": {
        "without the `unbroadcast` of `unbroadcast(where(a < b, grad_answer, "
        "where(a == b, grad_answer / 2, 0)), a.shape)`": COPIES,
        "without the `unbroadcast` of `unbroadcast(where(b < a, grad_answer, "
        "where(a == b, grad_answer / 2, 0)), b.shape)`": COPIES,
        "with `grad_answer` everywhere, in the place of `where(a < b, grad_answer, "
        "where(a == b, grad_answer / 2, 0))`": SMALLER,
        "with `grad_answer` everywhere, in the place of `where(b < a, grad_answer, "
        "where(a == b, grad_answer / 2, 0))`": SMALLER,
        "with `a > b` in the place of `a < b`": SMALLER,
        "with `b > a` in the place of `b < a`": SMALLER,
        "with 1 in the place of `grad_answer`": UPSTREAM,
        "without `/ 2`": TIE,
        "with 0 in the place of `where(a == b, grad_answer / 2, 0)`": TIE,
    },
    "identity": {"with 1 in the place of `grad_output`": UPSTREAM},
    "relu": {
        "with `grad_answer` everywhere, in the place of `where(input > 0, grad_answer, 0)`":
            "Left of 0 the answer is constant: its slope is 0.",
        "with both cases of `where(input > 0, grad_answer, 0)` swapped": "The slope is 1 right of 0, and 0 left of it.",
    },
    "trace_loss": {
        "without the factor `2`": "The derivative of d**2 is 2 d.",
        "with its sign turned, in grad_target": FALLS,
    },
    "l1_loss": {
        "without `/ N`": MEAN,
        "without the `sign` of `sign(prediction - target)`": "The slope of |d| is its sign, however large d is.",
        "with its sign turned, in grad_target": FALLS,
    },
    "gaussian_nll_loss": {
        "without `/ N`": MEAN,
        "without `/ var`": "The squared difference is divided by the variance: so is its slope.",
    },
    "kl_div_loss": {
        "without `/ N`": MEAN,
        "without the minus of `-probability`": "The divergence falls where the predicted logarithm grows.",
    },
    "poisson_nll_loss": {
        "without `/ N`": MEAN,
        "without `- target`": "The term target * log(rate) is subtracted: its slope is missing.",
    },
    "hinge_embedding_loss": {
        "without `/ N`": MEAN,
        "without `* (prediction <= margin)`": "Beyond the margin nothing is lost: the slope is 0 there.",
    },
    "soft_margin_loss": {
        "without `/ N`": MEAN,
        "without the minus of `-target`": "The loss falls where target * prediction grows.",
    },
    "softplus": {
        UNSCALED: UPSTREAM,
        "with `expit(scaled)` everywhere, in the place of `where(scaled > threshold, 1, expit(scaled))`":
            "Above the threshold the output is the input: its slope is 1.",
    },
    "celu": {
        UNSCALED: UPSTREAM,
        "without `* exp(scaled)`": BELOW_ZERO,
        "exp(scaled) => where(scaled < 0, expm1(scaled), 1)":
            f"{EXP_OF_CELU} The 1 is constant, and no part of the slope.",
        "exp(scaled) => where(scaled < 0, exp(scaled) / alpha, 1)": EXP_OF_CELU,
        "exp(scaled) => exp(scaled) / alpha": EXP_OF_CELU,
        "exp(scaled) => where(scaled < 0, alpha * exp(scaled), 1)": f"{EXP_OF_CELU} {CANCELS}",
        "exp(scaled) => alpha * exp(scaled)": f"{EXP_OF_CELU} {CANCELS}",
    },
    "selu": {
        UNSCALED: UPSTREAM,
        "without `* SCALE`": "The whole output is scaled: so is its slope.",
        "without the factor `ALPHA`": "Left of 0 the output is SCALE * ALPHA * (exp(x) - 1).",
    },
    "hardshrink": {
        "with `grad_output` everywhere, in the place of `where(abs(input) > lambd, grad_output, 0)`":
            "Between -lambd and lambd the output is 0: so is its slope.",
    },
    "hardsigmoid": {
        "without `/ 6`": "The slope between -3 and 3 is 1 / 6.",
        "without `input < 3`": "Above 3 the output is constant, too.",
        "without `-3 < input`": "Below -3 the output is constant, too.",
    },
    "leaky_relu": {
        "without the factor `negative_slope`": "Left of 0 the slope is negative_slope, not 1.",
        "with 0 in the place of `negative_slope * grad_output`": "Left of 0 the slope is negative_slope, not 0.",
    },
    "rrelu": {"without the factor `slope`": "Left of 0 the slope is the one that was drawn."},
    "log_sigmoid": {
        UNSCALED: UPSTREAM,
        "without the minus of `-input`": "log(sigmoid(x))' = 1 - sigmoid(x), which is sigmoid(-x).",
    },
    "mish": {
        UNSCALED: UPSTREAM,
        "without `gate`": "x gate(x) is a product: its derivative has two terms, and gate is one of them.",
        "without `+ input * expit(input) * 4 * decay / (1 + decay) ** 2`":
            "x gate(x) is a product: its derivative has two terms, and x gate'(x) is one of them.",
    },
    "softsign": {
        UNSCALED: UPSTREAM,
        "without the power in `total ** 2`": "The derivative of x / (1 + |x|) is 1 / (1 + |x|)**2.",
    },
    "tanhshrink": {
        UNSCALED: UPSTREAM,
        "without the power in `tanh(input) ** 2`": "x - tanh(x) has the slope 1 - (1 - tanh**2), which is tanh**2.",
    },
    "softmin": {
        "without the factor `output`": "Each probability weighs its own path.",
        "without `- grad_output`": "The number's own path is missing.",
        "with its sign turned": "softmin is softmax of the negative input: its slopes have the other sign.",
    },
    "gelu": {
        "without `+ input * density`": "By the product rule, (x F)' = F + x F': the second term is missing.",
        "without `probability`": "By the product rule, (x F)' = F + x F': the first term is missing.",
        "probability + input * density => density":
            "That is F', the density: the factor x of x F is forgotten, and with it the product rule.",
        "probability + input * density => probability + density": "The second term of (x F)' is x F', not F'.",
        "without `/ (2 * pi) ** 0.5`": "The density's integral is 1: exp(-x**2 / 2) is divided by sqrt(2 pi).",
        "without `/ 2`": "The normal density is exp(-x**2 / 2) / sqrt(2 pi), with a 2 in the exponent.",
        "without the factor `slope`": "By the chain rule, the slope of the exponent is a factor.",
        "slope * expit(exponent) * expit(-exponent) => 2 * expit(exponent) * expit(-exponent)":
            "By the chain rule, the derivative of what stands in tanh is a factor.",
        "without the factor `3`": "The derivative of x**3 is 3 x**2.",
        "without the power in `input ** 2`": "The derivative of x**3 is 3 x**2.",
    },
    "hardswish": {
        "with 1 in the place of `grad_output`": UPSTREAM,
        "input / 3 + 0.5 => (input + 3) / 6":
            "That is the gate alone: by the product rule, (x gate)' = gate + x gate', whose second term is missing.",
        "input / 3 + 0.5 => input / 6":
            "That is x gate' alone: by the product rule, (x gate)' = gate + x gate', whose first term is missing.",
        "input / 3 + 0.5 => 1 / 6":
            "That is the slope of the gate: the factor x of x gate is forgotten, and with it the product rule.",
        "without `+ 0.5`": "Between -3 and 3 the output is (x**2 + 3 x) / 6: the slope of 3 x / 6 is missing.",
        "with 0 in the place of `grad_output`": "Above 3 the output is the input: its slope is 1.",
        "where(input < 3, grad_output * (input / 3 + 0.5), grad_output) => "
        "where(input < 3, grad_output * (input / 3 + 0.5), grad_output * input)":
            "Above 3 the output is the input: its slope is 1, not the input.",
        "with `grad_output * (input / 3 + 0.5)` everywhere, in the place of `where(input < 3, grad_output * (input / 3 "
        "+ 0.5), grad_output)`": "Above 3 the output is the input: its slope is 1.",
        "with `where(input < 3, grad_output * (input / 3 + 0.5), grad_output)` everywhere, in the place of "
        "`where(input <= -3, 0, where(input < 3, grad_output * (input / 3 + 0.5), grad_output))`":
            "Below -3 the output is 0: so is its slope.",
        "where(input <= -3, 0, where(input < 3, grad_output * (input / 3 + 0.5), grad_output)) => "
        "grad_output * (input / 3 + 0.5)": "The function has three pieces: below -3 the slope is 0, above 3 it is 1.",
    },
}
