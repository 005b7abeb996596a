"""Calculus of arrays: operations on each number, and on pairs of numbers."""

from __future__ import annotations

from student import Student

STUDENTS = {
    "square": Student(
        """
        def square(input, /):
            answer = input**2
            return answer, lambda grad_answer: 2 * input * grad_answer
        """,
        ("2 * input * grad", "input * grad", "without `* 2`"),
        ("2 * input * grad_answer", "2 * input", "without the factor `grad_answer`"),
        ("2 * input * grad_answer", "2 * grad_answer", "without `* input`"),
        ("2 * input * grad", "2 * answer * grad", "with `* input` twice"),
        ("2 * input * grad", "-2 * input * grad", "with its sign turned"),
        ("2 * input", "2 + input", "with `2 + grad_answer * input` in the place of `grad_answer * 2 * input`"),
    ),
    "tanh": Student(
        """
        def tanh(input, /):
            answer = np.tanh(input)
            def backward(grad_answer):
                return (1 - answer**2) * grad_answer
            return answer, backward
        """,
        ("1 - answer**2", "1 - input**2", "with `input` in the place of `answer`"),
        ("1 - answer**2", "1 - answer", "without the factor `answer`"),
        ("1 - answer**2", "1 + answer**2", "with `+ answer * answer` in the place of `- answer * answer`"),
        ("1 - answer**2", "answer**2", "with `answer * answer` in the place of `1 - answer * answer`"),
        (" * grad_answer", "", "without the factor `grad_answer`"),
        ("1 - answer**2", "answer**2 - 1", "with its sign turned"),
        ("(1 - answer**2)", "(1 - answer)**2", "with `(1 - answer) ** 2` in the place of `1 - answer * answer`"),
    ),
    "log": Student(
        """
        def log(input, /):
            answer = np.log(input)
            return answer, lambda grad_answer: grad_answer * (1 / input)
        """,
        ("1 / input", "input", "with `* input` in the place of `/ input`"),
        ("1 / input", "1 / answer", "with `answer` in the place of `input`"),
        ("1 / input", "1 / input**2", "with `/ input` twice"),
        ("1 / input", "-1 / input", "with its sign turned"),
    ),
    "power": Student(
        """
        def power(base, exponent, /):
            answer = base**exponent
            def back_base(g):
                slope = np.where(exponent == 0, 0, exponent * base ** (exponent - 1))
                return unbroadcast(g * slope, base.shape)
            def back_exponent(g):
                slope = np.where((base == 0) & (exponent >= 0), 0, np.log(base) * answer)
                return unbroadcast(slope * g, exponent.shape)
            return answer, back_base, back_exponent
        """,
        ("exponent * base ** (exponent - 1)", "base ** (exponent - 1)", "without the factor `exponent`"),
        ("(exponent - 1)", "exponent", "without `- 1`"),
        ("(exponent - 1)", "(exponent + 1)", "with `+ 1` in the place of `- 1`"),
        ("np.log(base) * answer", "np.log(base)", "without the factor `answer`"),
        ("np.log(base) * answer", "answer", "without `* log(base)`"),
        (
            "exponent * base ** (exponent - 1)",
            "exponent * base ** exponent - 1",
            "with `exponent * base ** exponent - 1` in the place of `exponent * base ** (exponent - 1)`",
        ),
        ("np.log(base)", "np.log(exponent)", "with `exponent` in the place of `base`"),
    ),
    "multiply": Student(
        """
        def multiply(a, b, /):
            return a * b, lambda g: unbroadcast(g * b, a.shape), lambda g: unbroadcast(a * g, b.shape)
        """,
        ("g * b", "g * a", "with `a` in the place of `b`"),
        (
            "unbroadcast(a * g, b.shape)",
            "a * g",
            "without the `unbroadcast` of `unbroadcast(grad_answer * a, b.shape)`",
        ),
        ("a * g", "g", "without `* a`"),
        ("g * b", "g + b", "with `grad_answer + b` in the place of `grad_answer * b`"),
        (
            "unbroadcast(a * g, b.shape)",
            "unbroadcast(a * g, b.shape) * b.size / (a * b).size",
            "with the mean in the place of the sum in `unbroadcast(grad_answer * a, b.shape)`",
        ),
        (
            "unbroadcast(g * b, a.shape)",
            "g * a",
            "without the `unbroadcast` of `unbroadcast(grad_answer * b, a.shape)`, and with `a` in the place of `b`",
        ),
    ),
    "abs": Student(
        """
        def abs(input, /):
            return np.abs(input), lambda g: g * np.sign(input)
        """,
        ("np.sign(input)", "(input > 0)", "with `input > 0` in the place of `sign(input)`"),
        ("np.sign(input)", "(input < 0)", "with `input < 0` in the place of `sign(input)`"),
        ("g * np.sign(input)", "g", "without `* sign(input)`"),
        ("np.sign(input)", "input", "without the `sign` of `sign(input)`"),
    ),
    "clip": Student(
        """
        def clip(input, /, *, min=-np.inf, max=np.inf):
            return np.clip(input, min, max), lambda g: g * ((input >= min) & (input <= max))
        """,
        (
            "g * ((input >= min) & (input <= max))",
            "np.clip(g, min, max)",
            "with `minimum(maximum(grad_answer, min), max)`, what forward would make of the gradient",
        ),
        ("(input >= min) & ", "", "without `input >= min`"),
    ),
    "divide": Student(
        """
        def divide(a, b, /):
            return a / b, lambda g: unbroadcast(g / b, a.shape), lambda g: unbroadcast(-g * a / (b * b), b.shape)
        """,
        ("-g * a", "g * a", "with its sign turned"),
        ("/ (b * b)", "/ b", "without `/ b`"),
        ("g / b", "g * b", "with `* b` in the place of `/ b`"),
        ("-g * a / (b * b)", "-g / (b * b)", "with `1 / b` in the place of `answer`"),
    ),
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
}
