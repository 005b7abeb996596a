"""Mutants of the activations in pieces and of those with exponentials, that compute the same: each with the proof."""

# ruff: noqa: E501 - a line of the package is cited as it is

from __future__ import annotations

COMMUTES = "the larger, or the smaller, of two numbers stays the same when the two are swapped, and so does `and`"
SAME_SIGN = "a number that is scaled by 1.001 or 2 keeps its sign: neither underflows"
BOTH_ZERO = "at 0 both pieces are 0"
EVEN_FUNCTION = "only its magnitude, its square, or whether it lies between two opposite numbers is used"

ELU_OUTPUT = "return (np.where(input > 0, input, self.alpha * np.expm1(np.minimum(input, 0))), input)"
ELU_SLOPE = "return np.where(input > 0, 1, self.alpha * np.exp(np.minimum(input, 0)))"
SELU_OUTPUT = "return (self.SCALE * np.where(input > 0, input, self.ALPHA * np.expm1(np.minimum(input, 0))), input)"
SELU_SLOPE = "return self.SCALE * np.where(input > 0, 1, below)"
LEAKY_OUTPUT = "return (np.where(input > 0, input, self.negative_slope * input), input)"
LEAKY_GRADIENT = "return np.where(input > 0, grad_output, self.negative_slope * grad_output)"
LEARNED_OUTPUT = "return (np.where(input > 0, input, self._slope(input.ndim) * input), input)"
LEARNED_GRADIENT = "return np.where(input > 0, grad_output, self._slope(input.ndim) * grad_output)"
LEARNED_BELOW = "below = np.where(input > 0, 0, input * grad_output)"
SHRUNK = "left: Array = np.sign(input) * np.maximum(np.abs(input) - self.lambd, 0)"
GATE = "return masked(grad_output, self.passes(input))"
LINE = "return (np.minimum(np.maximum(input + 3, 0), 6) / 6, input)"

#: The proof, as in survivors.py.
ACTIVATIONS: dict[tuple[str, str, str], str] = {
    **{
        (name, line, line.replace(operands, swapped)): COMMUTES
        for name, line, operands, swapped in (
            *((name, line, "np.minimum(input, 0)", "np.minimum(0, input)") for name, line in (
                ("ELU.forward", ELU_OUTPUT), ("ELU.derivative", ELU_SLOPE), ("SELU.forward", SELU_OUTPUT),
                ("SELU.derivative", "below = self.ALPHA * np.exp(np.minimum(input, 0))"),
                ("CELU.forward", "scaled = np.minimum(input, 0) / self.alpha"),
            )),
            (
                "CELU.forward", "return (np.maximum(input, 0) + self.alpha * np.expm1(scaled), scaled)",
                "np.maximum(input, 0)", "np.maximum(0, input)",
            ),
            *(
                (name, line, operands, swapped)
                for name, line in (
                    ("Hardsigmoid.forward", LINE),
                    ("Hardswish.forward", "gate = np.minimum(np.maximum(input + 3, 0), 6) / 6"),
                )
                for operands, swapped in (
                    ("np.minimum(np.maximum(input + 3, 0), 6)", "np.minimum(6, np.maximum(input + 3, 0))"),
                    ("np.maximum(input + 3, 0)", "np.maximum(0, input + 3)"),
                )
            ),
            (
                "Hardsigmoid.backward", "return masked(grad_output / 6, (input > -3) & (input < 3))",
                "(input > -3) & (input < 3)", "(input < 3) & (input > -3)",
            ),
            ("Softshrink.function", SHRUNK, "np.maximum(np.abs(input) - self.lambd, 0)", "np.maximum(0, np.abs(input) - self.lambd)"),
            *(
                (name, line, operands, swapped)
                for name, line, low, high in (
                    ("Hardtanh.function", "cut: Array = np.minimum(np.maximum(input, self.min_val), self.max_val)", "self.min_val", "self.max_val"),
                    ("ReLU6.function", "cut: Array = np.minimum(np.maximum(input, 0), 6)", "0", "6"),
                )
                for operands, swapped in (
                    (f"np.minimum(np.maximum(input, {low}), {high})", f"np.minimum({high}, np.maximum(input, {low}))"),
                    (f"np.maximum(input, {low})", f"np.maximum({low}, input)"),
                )
            ),
            (
                "Hardtanh.passes", "return (self.min_val < input) & (input < self.max_val)",
                "(self.min_val < input) & (input < self.max_val)", "(input < self.max_val) & (self.min_val < input)",
            ),
            ("ReLU6.passes", "return (input > 0) & (input < 6)", "(input > 0) & (input < 6)", "(input < 6) & (input > 0)"),
        )
    },
    **{
        (name, line, line.replace("input > 0", f"input * {factor} > 0")): SAME_SIGN
        for factor in ("1.001", "2")
        for name, line in (
            ("ELU.forward", ELU_OUTPUT), ("ELU.derivative", ELU_SLOPE), ("SELU.forward", SELU_OUTPUT),
            ("SELU.derivative", SELU_SLOPE), ("LeakyReLU.forward", LEAKY_OUTPUT), ("LeakyReLU.backward", LEAKY_GRADIENT),
            ("ReLU6.passes", "return (input > 0) & (input < 6)"), ("PReLU.forward", LEARNED_OUTPUT),
            ("PReLU.backward", LEARNED_GRADIENT), ("PReLU.backward", LEARNED_BELOW),
        )
    },
    **{
        (name, line, line.replace("input > 0", "input >= 0")): BOTH_ZERO
        for name, line in (
            ("ELU.forward", ELU_OUTPUT), ("SELU.forward", SELU_OUTPUT), ("LeakyReLU.forward", LEAKY_OUTPUT),
            ("PReLU.forward", LEARNED_OUTPUT), ("PReLU.backward", LEARNED_BELOW),
        )
    },
    **{
        key: SAME_SIGN
        for factor in ("1.001", "2")
        for key in (
            ("LeakyReLU.forward", LEAKY_OUTPUT, LEAKY_OUTPUT.replace("), input)", f"), input * {factor})")),
            ("LeakyReLU.backward", "input = saved", f"input = saved * {factor}"),
            ("Softshrink.function", SHRUNK, SHRUNK.replace("np.sign(input)", f"np.sign(input * {factor})")),
        )
    },
    **dict.fromkeys(
        (
            ("Hardshrink.forward", "return (self.function(input), input)", "return (self.function(input), -input)"),
            ("Hardshrink.backward", "input = saved", "input = -saved"),
            ("Hardshrink.backward", GATE, GATE.replace("(input)", "(-input)")),
            ("Hardshrink.passes", "return np.abs(input) > self.lambd", "return np.abs(-input) > self.lambd"),
        ),
        EVEN_FUNCTION,
    ),
    **dict.fromkeys(
        (
            ("Hardshrink.function", "return masked(input, self.passes(input))", "return masked(input, self.passes(-input))"),
            ("Hardsigmoid.forward", LINE, LINE.replace(", input)", ", -input)")),
            ("Hardsigmoid.backward", "input = saved", "input = -saved"),
            ("Softshrink.function", SHRUNK, SHRUNK.replace("np.abs(input)", "np.abs(-input)")),
            ("Mish.derivative", "total = 1 + decay", "total = -(1 + decay)"),
            ("Softsign.forward", "total = 1 + np.abs(input)", "total = 1 + np.abs(-input)"),
            ("Softsign.forward", "return (input / total, total)", "return (input / total, -total)"),
            ("Softsign.derivative", "total = saved", "total = -saved"),
            ("Tanhshrink.forward", "return (input - tanh, tanh)", "return (input - tanh, -tanh)"),
            ("Tanhshrink.derivative", "tanh = saved", "tanh = -saved"),
        ),
        EVEN_FUNCTION,
    ),
}
