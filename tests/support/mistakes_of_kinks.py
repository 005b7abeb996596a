"""The same of functions with kinks, of gates, and of what passes the gradient on alone."""

from __future__ import annotations

from student import Student

STUDENTS = {
    "maximum": Student(
        """
        def maximum(a, b, /):
            of_a = (a > b) + 0.5 * (a == b)
            of_b = 1 - of_a
            return (
                np.maximum(a, b),
                lambda g: unbroadcast(g * of_a, a.shape),
                lambda g: unbroadcast(g * of_b, b.shape),
            )
        """,
        ("unbroadcast(g * of_a, a.shape)", "g * of_a", "its gradient is the sum over them"),
        ("unbroadcast(g * of_b, b.shape)", "g * of_b", "its gradient is the sum over them"),
        ("of_a = (a > b) + 0.5 * (a == b)", "of_a = (a >= b) * 1.0", "without `/ 2`. At a tie both operands have"),
        ("of_a = (a > b) + 0.5 * (a == b)", "of_a = (a > b) * 1.0", "grad_answer / 2, 0)`. At a tie both operands"),
        ("of_b = 1 - of_a", "of_b = (b > a) * 1.0", "grad_answer / 2, 0)`. At a tie both operands have"),
        ("of_b = 1 - of_a", "of_b = of_a", "with `b < a` in the place of `b > a`. The answer is the larger operand"),
        ("unbroadcast(g * of_a, a.shape)", "unbroadcast(g, a.shape)", "the other one doesn't move it"),
        ("unbroadcast(g * of_b, b.shape)", "unbroadcast(g, b.shape)", "the other one doesn't move it"),
        ("unbroadcast(g * of_a, a.shape)", "unbroadcast(of_a + 0 * g, a.shape)", "comes from above is missing"),
        ("g * of_a", "g * of_a * a", "times `a`"),
    ),
    "minimum": Student(
        """
        def minimum(a, b, /):
            of_a = (a < b) + 0.5 * (a == b)
            of_b = 1 - of_a
            return (
                np.minimum(a, b),
                lambda g: unbroadcast(g * of_a, a.shape),
                lambda g: unbroadcast(g * of_b, b.shape),
            )
        """,
        ("unbroadcast(g * of_a, a.shape)", "g * of_a", "its gradient is the sum over them"),
        ("of_a = (a < b) + 0.5 * (a == b)", "of_a = (a <= b) * 1.0", "without `/ 2`. At a tie both operands have"),
        ("of_a = (a < b) + 0.5 * (a == b)", "of_a = (a > b) + 0.5 * (a == b)", "The answer is the smaller operand"),
        ("unbroadcast(g * of_b, b.shape)", "unbroadcast(g, b.shape)", "the other one doesn't move it"),
        ("g * of_b", "-g * of_b", "with its sign turned"),
    ),
    "min": Student(
        """
        def min(input, /, *, axis=None, keepdims=False):
            answer = np.asarray(np.min(input, axis=axis, keepdims=keepdims))
            def backward(g):
                share = chosen(input, np.argmin, axis)
                if not keepdims and axis is not None:
                    g = np.expand_dims(g, axis)
                return share * g
            return answer, backward
        """,
        ("return share * g", "return share + 0 * g", "comes from above is missing"),
        ("return share * g", "return -share * g", "no sign turns"),
        ("return share * g", "return share * g * input", "The slope is 1 at the smallest number"),
        ("np.argmin", "np.argmax", "Only the smallest number moves the answer."),
        ("np.argmin, axis", "np.argmin, None", "has its own extreme number"),
        ("share * g", "g * (input == input.min(axis, keepdims=True))", "Tied numbers share one gradient"),
    ),
    "identity": Student(
        """
        def backward(self, saved, grad_output):
            return grad_output * 1
        """,
        ("grad_output * 1", "np.ones(saved)", "comes from above is missing"),
        ("grad_output * 1", "np.zeros(saved)", "with 0 everywhere"),
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
    "multi_margin_loss": Student(
        """
        def backward(self, saved):
            shape, is_label, lack, row_weight = saved
            rows, classes = lack.shape
            slope = (lack > 0) * 1.0 if self.p == 1 else 2 * lack
            pull = row_weight * slope / classes
            own = pull.sum(axis=1, keepdims=True)
            grad = pull - is_label * own
            if self.reduction == "mean":
                grad = grad / rows
            return grad.reshape(shape)
        """,
        ("grad = pull - is_label * own", "grad = pull", "The right class's score stands in the terms of all others"),
        ("grad = pull - is_label * own", "grad = np.where(is_label, -pull, pull)", "in the terms of all others"),
        (
            "own = pull.sum(axis=1, keepdims=True)",
            "own = row_weight / classes * (slope.sum(axis=1, keepdims=True) > 0)",
            "its gradient is the sum of theirs",
        ),
        ("own = pull.sum(axis=1, keepdims=True)", "own = row_weight / classes", "its gradient is the sum of theirs"),
        ("grad = pull - is_label * own", "grad = pull + is_label * own", "is the sum of theirs, with its sign turned"),
        ("grad = pull - is_label * own", "grad = is_label * own - pull", "its slope is above 0"),
        ("pull.sum(", "pull.mean(", "The right class's score stands in each term"),
        (" / classes", "", "is divided by the number of classes"),
        (" / classes", " / (classes - 1)", "the right one is one of them"),
        ("grad / rows", "grad", "The loss is a mean"),
        ("grad / rows", "grad / np.broadcast_to(row_weight, (rows, 1)).sum()", "whatever they weigh"),
        ("2 * lack", "lack", "the derivative of lack**2 is 2 lack"),
        ("2 * lack", "2 * (lack > 0)", "Of lack**2 one factor stays"),
        ("2 * lack", "(lack > 0) * 1.0", "for p=1: your code ignores `p`"),
        ("(lack > 0) * 1.0 if", "1.0 - is_label if", "Where a class lacks nothing"),
        ("row_weight * slope", "slope", "An example weighs as much as its class."),
    ),
}
