"""Activations."""

from __future__ import annotations

from student import Student

STUDENTS = {
    "tanh_layer": Student(
        """
        def derivative(self, saved):
            return (1 - saved) * (1 + saved)
        """,
        ("(1 - saved) * (1 + saved)", "1 - saved", "without the power"),
        ("(1 - saved) * (1 + saved)", "1 + saved**2", "with `+ output ** 2` in the place of `- output ** 2`"),
        ("(1 - saved) * (1 + saved)", "1 - np.tanh(saved) ** 2", "with `tanh(output)` in the place of `output`"),
        (
            "(1 - saved) * (1 + saved)",
            "saved * (1 - saved)",
            "with `output * (1 - output)` in the place of `1 - output ** 2`",
        ),
        ("(1 - saved) * (1 + saved)", "1 / np.cosh(saved) ** 2", "with `tanh(output)` in the place of `output`"),
    ),
    "sigmoid": Student(
        """
        def derivative(self, saved):
            s = saved
            return s - s**2
        """,
        ("s - s**2", "s", "without `* (1 - output)`"),
        ("s - s**2", "1 - s**2", "with `1 - output * output` in the place of `output * (1 - output)`"),
        ("s - s**2", "s * (1 + s)", "with `+ output` in the place of `- output`"),
        ("s - s**2", "(1 - s)", "without `* output`"),
        ("s = saved", "s = 1 / (1 + np.exp(-saved))", "with `expit(output)` in the place of `output`"),
        ("s - s**2", "s**2 - s", "with its sign turned"),
    ),
    "silu": Student(
        """
        def derivative(self, saved):
            x, s = saved
            return s * (1 + x * (1 - s))
        """,
        ("s * (1 + x * (1 - s))", "s", "without `+ output * expit(-input)`"),
        ("s * (1 + x * (1 - s))", "s + x * (1 - s)", "with `input` in the place of `output`"),
        ("s * (1 + x * (1 - s))", "x * s * (1 - s)", "without `sigmoid`"),
        (
            "s * (1 + x * (1 - s))",
            "s * (1 - s)",
            "with `sigmoid * expit(-input)` in the place of `sigmoid + output * expit(-input)`",
        ),
        (
            "s * (1 + x * (1 - s))",
            "s * (1 - x * (1 - s))",
            "with `- output * expit(-input)` in the place of `+ output * expit(-input)`",
        ),
        ("s * (1 + x * (1 - s))", "s + x * s", "without `* expit(-input)`"),
    ),
    "softplus": Student(
        """
        def derivative(self, saved):
            s = 1 / (1 + np.exp(-saved))
            return np.where(saved > self.threshold, 1, s)
        """,
        ("1, s)", "1, self.beta * s)", "with `beta * expit(scaled)` in the place of `expit(scaled)`"),
        ("np.where(saved > self.threshold, 1, s)", "self.beta * s", "with `expit(scaled)` everywhere"),
    ),
    "gelu": Student(
        """
        def forward(self, input):
            return super().forward(input)[0], input

        def derivative(self, saved):
            x = saved
            if self.approximate == "none":
                F, f = scipy.special.ndtr(x), np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
            else:
                u = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
                slope = np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * x**2)
                F, f = (1 + np.tanh(u)) / 2, (1 - np.tanh(u) ** 2) / 2 * slope
            return F + x * f
        """,
        ("F + x * f", "F", "(x F)' = F + x F': the second term is missing."),
        ("F + x * f", "x * f", "(x F)' = F + x F': the first term is missing."),
        ("F + x * f", "f", "That is F', the density"),
        ("F + x * f", "F + f", "is x F', not F'"),
        (" / np.sqrt(2 * np.pi)", "", "The density's integral is 1"),
        ("-x * x / 2", "-x * x", "with a 2 in the exponent"),
        (" / 2 * slope", " / 2", "the derivative of what stands in tanh is a factor"),
        ("(1 - np.tanh(u) ** 2) / 2 * slope", "(1 - np.tanh(u) ** 2) / 4", "the slope of the exponent is a factor"),
        ("1 + 3 * 0.044715 * x**2", "1 + 0.044715 * x**2", "The derivative of x**3 is 3 x**2."),
        ("1 + 3 * 0.044715 * x**2", "1 + 3 * 0.044715 * x", "The derivative of x**3 is 3 x**2."),
    ),
    "relu_layer": Student(
        """
        def backward(self, saved, grad_output):
            return (saved > 0) * grad_output
        """,
        (
            "(saved > 0)",
            "(saved >= 0)",
            "with `grad_output` everywhere, in the place of `where(output > 0, grad_output, 0)`",
        ),
        ("(saved > 0)", "saved", "times `input`"),
        (
            "(saved > 0) * grad_output",
            "grad_output",
            "with `grad_output` everywhere, in the place of `where(output > 0, grad_output, 0)`",
        ),
        ("(saved > 0)", "(grad_output > 0)", "with `grad_output` in the place of `output`"),
        ("(saved > 0) * grad_output", "saved > 0", "with 1 in the place of `grad_output`"),
    ),
    "celu": Student(
        """
        def derivative(self, saved):
            return np.where(saved < 0, np.exp(saved), 1)
        """,
        ("np.exp(saved)", "np.expm1(saved)", "The 1 is constant, and no part of the slope."),
        ("np.exp(saved)", "np.exp(saved) / self.alpha", "its slope is exp(x / alpha)."),
        ("np.exp(saved)", "self.alpha * np.exp(saved)", "the 1 / alpha of the chain rule cancel"),
        ("np.where(saved < 0, np.exp(saved), 1)", "np.exp(saved) / self.alpha", "its slope is exp(x / alpha)."),
        ("np.where(saved < 0, np.exp(saved), 1)", "self.alpha * np.exp(saved)", "chain rule cancel"),
    ),
    "elu": Student(
        """
        def derivative(self, saved):
            x = saved
            return np.where(x > 0, 1, self.alpha * np.exp(np.minimum(x, 0)))
        """,
        ("self.alpha * np.exp(np.minimum(x, 0))", "x + self.alpha", "what is saved is the input"),
        ("x > 0, 1,", "x > 0, x,", "with `where(input > 0, input, alpha"),
        ("self.alpha * np.exp", "np.expm1", "without the factor `alpha`, and with `expm1` in the place of `exp`"),
    ),
    "glu": Student(
        """
        def backward(self, saved, grad_output):
            output, gate = saved
            return np.concatenate([grad_output * gate, grad_output * output - grad_output * output * gate], self.dim)
        """,
        (" - grad_output * output * gate", "", "without `* (1 - gate)`"),
        (
            "grad_output * output - grad_output * output * gate",
            "grad_output * gate * (1 - gate)",
            "with `gate` in the place of `output`",
        ),
        ("[grad_output * gate,", "[grad_output,", "without `* gate`"),
        (
            "[grad_output * gate, grad_output * output - grad_output * output * gate]",
            "[grad_output * output * (1 - gate), grad_output * gate]",
            "with `grad_value` and `grad_gate` swapped",
        ),
    ),
    "hardswish": Student(
        """
        def backward(self, saved, grad_output):
            x, g = saved, grad_output
            middle = (2 * x + 3) / 6
            slope = np.where(x <= -3, 0, np.where(x >= 3, 1, middle))
            return g * slope
        """,
        ("middle = (2 * x + 3) / 6", "middle = (x + 3) / 6", "That is the gate alone"),
        ("middle = (2 * x + 3) / 6", "middle = x / 6", "That is x gate' alone"),
        ("middle = (2 * x + 3) / 6", "middle = 1 / 6", "That is the slope of the gate"),
        ("middle = (2 * x + 3) / 6", "middle = x / 3", "the slope of 3 x / 6 is missing"),
        ("middle = (2 * x + 3) / 6", "middle = 2 * x + 3", None),
        ("x >= 3, 1,", "x >= 3, 0,", "Above 3 the output is the input: its slope is 1."),
        ("x >= 3, 1,", "x >= 3, x,", "its slope is 1, not the input."),
        ("np.where(x >= 3, 1, middle)", "middle", "Above 3 the output is the input: its slope is 1."),
        ("x <= -3, 0, np.where(x >= 3, 1, middle)", "x >= 3, 1, middle", "Below -3 the output is 0"),
        ("np.where(x <= -3, 0, np.where(x >= 3, 1, middle))", "middle", "The function has three pieces"),
        ("x <= -3", "x < -3", "with `input < -3` in the place of `input <= -3`"),
        ("g * slope", "slope", "comes from above is missing"),
    ),
    "prelu": Student(
        """
        def backward(self, saved, grad_output):
            positive = saved > 0
            slope = self._slope(saved.ndim)
            of_weight = grad_output * saved * ~positive
            axes = tuple(a for a in range(saved.ndim) if a != 1 or self.num_parameters == 1)
            self.grad.weight[...] = of_weight.sum(axis=axes)
            return grad_output * (positive + slope * ~positive)
        """,
        ("(positive + slope * ~positive)", "positive", "with 0 in the place of `slope * grad_output`"),
        (
            "grad_output * saved * ~positive",
            "grad_output * saved",
            "with `input * grad_output` everywhere, in the place of `where(input > 0, 0, input * grad_output)`",
        ),
        ("grad_output * saved * ~positive", "grad_output * ~positive", "without the factor `input`"),
        ("saved > 0", "saved >= 0", "with `input >= 0` in the place of `input > 0`"),
        (
            "(positive + slope * ~positive)",
            "slope",
            "with `slope * grad_output` everywhere, in the place of `where(input > 0, grad_output, slope * "
            "grad_output)`",
        ),
        (
            "grad_output * saved * ~positive",
            "slope * grad_output * saved * ~positive",
            "with `output` in the place of `input`",
        ),
    ),
}
