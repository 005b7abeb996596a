"""Right solutions of operations' exercises as a student writes them, and mistakes in them: what stands there, what the
student wrote, and a part of the sentence that says why it is wrong.
"""

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
    "sum": Student(
        """
        def sum(input, /, *, axis=None, keepdims=False):
            def backward(g):
                if not keepdims and axis is not None:
                    g = np.expand_dims(g, axis)
                return np.broadcast_to(g, input.shape)
            return np.sum(input, axis=axis, keepdims=keepdims), backward
        """,
        ("(g, input.shape)", "(g, input.shape) / input.size", "divided by `input.size`"),
        ("(g, input.shape)", "(g, input.shape) * input", "times `input`"),
        (
            "return np.broadcast_to(g, input.shape)",
            "return g",
            "grad_input has the right numbers in another shape, (1, 3, 1) for (2, 3, 4)",
        ),
        ("(g, input.shape)", "(np.ones(()), input.shape)", "with 1 in the place of `grad_answer`"),
        ("(g, input.shape)", "(-g, input.shape)", "with its sign turned"),
        (
            "np.broadcast_to(g, input.shape)",
            "np.broadcast_to(g, input.shape) * np.asarray(np.sum(input, axis)).size / input.size",
            "divided by `input.size // answer.size`. That is the gradient of the mean.",
        ),
        (
            "(g, input.shape)",
            "(2 * np.sum(g), input.shape)",
            "times 2, and with the sum of all of `grad_answer` everywhere in `spread(grad_answer, input.shape, axis)`",
        ),
    ),
    "mean": Student(
        """
        def mean(input, /, *, axis=None, keepdims=False):
            answer = np.asarray(np.mean(input, axis=axis, keepdims=keepdims))
            def backward(g):
                if not keepdims and axis is not None:
                    g = np.expand_dims(g, axis)
                return np.broadcast_to(g, input.shape) * answer.size / input.size
            return answer, backward
        """,
        (" * answer.size / input.size", "", "without `/ (input.size // answer.size)`"),
        (
            " * answer.size / input.size",
            " / input.size",
            "with `input.size` in the place of `input.size // answer.size`",
        ),
        (
            "answer.size / input.size",
            "input.size / answer.size",
            "with `* (input.size // answer.size)` in the place of `/ (input.size // answer.size)`",
        ),
        ("answer.size / input.size", "answer.size / input.size * input", "times `input`"),
        (
            "answer.size / input.size",
            "1 / answer.size",
            "with `answer.size` in the place of `input.size // answer.size`",
        ),
        (
            "answer.size / input.size",
            "1 / len(input)",
            "with `input.shape[0]` in the place of `input.size // answer.size`",
        ),
        (
            "answer.size / input.size",
            "1 / input.shape[-1]",
            "with `input.shape[-1]` in the place of `input.size // answer.size`",
        ),
        (
            "answer.size / input.size",
            "1 / len(input.shape)",
            "with `input.ndim` in the place of `input.size // answer.size`",
        ),
    ),
    "outer": Student(
        """
        def outer(a, b, /):
            return np.outer(a, b), lambda g: np.einsum("ij,j->i", g, b), lambda g: np.einsum("ij,i->j", g, a)
        """,
        (
            'np.einsum("ij,j->i", g, b)',
            "g.sum(axis=1)",
            "with the sum of `grad_answer` in the place of `grad_answer @ b`, without `b`",
        ),
        (
            'np.einsum("ij,i->j", g, a)',
            "g.sum(axis=0)",
            "with the sum of `grad_answer.T` in the place of `grad_answer.T @ a`, without `a`",
        ),
        ('np.einsum("ij,j->i", g, b)', "-g @ b", "with its sign turned"),
        ('np.einsum("ij,j->i", g, b)', "(g * b)", "with `grad_answer * b` in the place of `grad_answer @ b`"),
        ('np.einsum("ij,j->i", g, b)', "(g * b).mean(axis=1)", "with the mean in the place of the sum"),
    ),
    "matmul": Student(
        """
        def matmul(a, b, /):
            A = a[None, :] if a.ndim == 1 else a
            B = b[:, None] if b.ndim == 1 else b
            shape = (A @ B).shape
            def back_a(g):
                g = g.reshape(shape)
                return unbroadcast(np.einsum("...ij,...kj->...ik", g, B), A.shape).reshape(a.shape)
            def back_b(g):
                g = g.reshape(shape)
                return unbroadcast(np.swapaxes(A, -1, -2) @ g, B.shape).reshape(b.shape)
            return a @ b, back_a, back_b
        """,
        ('np.einsum("...ij,...kj->...ik", g, B)', "2 * g @ B.mT", "times 2"),
        ('np.einsum("...ij,...kj->...ik", g, B)', "-(g @ B.mT)", "with its sign turned"),
        ("np.swapaxes(A, -1, -2) @ g", "-A.mT @ g", "with its sign turned"),
        ("np.swapaxes(A, -1, -2) @ g", "A.mT @ g / A.shape[-2]", "with the mean in the place of the sum"),
        ("np.swapaxes(A, -1, -2) @ g, B.shape", "g.mT @ A, B.mT.shape", "That is the right product transposed"),
        ("np.swapaxes(A, -1, -2) @ g", "A.mT @ (A @ B)", "with `answer` in the place of `grad_answer`"),
    ),
    "trace": Student(
        """
        def trace(input, /):
            return np.asarray(np.trace(input)), lambda g: g * np.eye(*input.shape)
        """,
        (
            "g * np.eye(*input.shape)",
            "g * np.ones(input.shape)",
            "with `grad_answer` everywhere, in the place of `where(eye(*input.shape), grad_answer, 0)`",
        ),
        ("g * np.eye(*input.shape)", "np.eye(*input.shape)", "with 1 in the place of `grad_answer`"),
        ("g * np.eye(*input.shape)", "g * np.eye(*input.shape) * input", "times `input`"),
        (
            "g * np.eye(*input.shape)",
            "g * np.eye(len(input))",
            "with `eye(len(input))` in the place of `eye(*input.shape)`",
        ),
        ("g * np.eye(*input.shape)", "g * np.eye(*input.shape) / len(input)", "divided by `input.shape[0]`"),
    ),
    "max": Student(
        """
        def max(input, /, *, axis=None, keepdims=False):
            answer = np.asarray(np.max(input, axis=axis, keepdims=keepdims))
            def backward(g):
                share = chosen(input, np.argmax, axis)
                if not keepdims and axis is not None:
                    g = np.expand_dims(g, axis)
                return share * g
            return answer, backward
        """,
        ("return share * g", "return share * g * input", "times `input`"),
        ("return share * g", "return share", "without the factor `spread(grad_answer, input.shape, axis)`"),
        (
            "return share * g",
            "return np.broadcast_to(g, input.shape)",
            "with `spread(grad_answer, input.shape, axis) * share` everywhere, in the place of `where(share > 0, "
            "spread(grad_answer, input.shape, axis) * share, 0)`, and without `* share`",
        ),
        ("np.argmax", "np.argmin", "with `argmin` in the place of `argmax`"),
        ("np.argmax, axis", "np.argmax, None", "with `None` in the place of `axis`"),
        (
            "share * g",
            "g * (input == input.max(axis, keepdims=True))",
            "Tied numbers share one gradient",
        ),
        (
            "share * g",
            "g * (input == (m := input.min(axis, keepdims=True))) / (input == m).sum(axis, keepdims=True)",
            "with `argmin` in the place of `argmax` in `share = chosen(input, argmax, axis)`. Only the largest number "
            "moves the answer. At ties it differs in another way, too.",
        ),
        (
            "share * g",
            "(h := input == input.max(axis, keepdims=True)) / h.sum(axis, keepdims=True)",
            "without the factor `spread(grad_answer, input.shape, axis)`",
        ),
        (
            "share * g",
            "g * (h := input == input.max(axis, keepdims=True)) / h.sum()",
            "divided by `answer.size`. At ties",
        ),
    ),
    "softmax": Student(
        """
        def softmax(input, /, *, axis=-1):
            e = np.exp(input - input.max(axis=axis, keepdims=True))
            p = e / e.sum(axis=axis, keepdims=True)
            def backward(g):
                return p * g - p * np.sum(p * g, axis=axis, keepdims=True)
            return p, backward
        """,
        (
            "p * g - p * np.sum(p * g, axis=axis, keepdims=True)",
            "p * g",
            "without `- sum(grad_answer * answer, axis=axis, keepdims=True)`",
        ),
        (
            "p * g - p * np.sum(p * g, axis=axis, keepdims=True)",
            "p * (1 - p) * g",
            "without the `sum` of `sum(grad_answer * answer, axis=axis, keepdims=True)`",
        ),
        (
            "p * g - p * np.sum",
            "g - p * np.sum",
            "with `sum(grad_answer * answer, axis=axis, keepdims=True)` alone times `answer`, in the place of all of "
            "`grad_answer - sum(grad_answer * answer, axis=axis, keepdims=True)`",
        ),
        (
            "p * g - p * np.sum",
            "p * g + p * np.sum",
            "with `+ sum(grad_answer * answer, axis=axis, keepdims=True)` in the place of `- sum(grad_answer * "
            "answer, axis=axis, keepdims=True)`",
        ),
        ("p * np.sum(p * g,", "p * np.sum(g,", "without `* answer`"),
        (
            "p * np.sum(p * g, axis=axis, keepdims=True)",
            "p * np.sum(p * g)",
            "with the `sum` over all axes in the place of `sum(grad_answer * answer, axis=axis, keepdims=True)`",
        ),
        (
            "p * g - p * np.sum",
            "p * g - np.sum",
            "with `grad_answer` alone times `answer`, in the place of all of `grad_answer - sum(grad_answer * "
            "answer, axis=axis, keepdims=True)`",
        ),
        ("np.sum(p * g,", "np.mean(p * g,", "with `mean` in the place of `sum`"),
        ("p * g - p * np.sum(p * g", "p * g - p * np.sum(p * input", "with `input` in the place of `grad_answer`"),
    ),
    "logsumexp": Student(
        """
        def logsumexp(input, /, *, axis=None, keepdims=False):
            m = input.max(axis=axis, keepdims=True)
            e = np.exp(input - m)
            total = e.sum(axis=axis, keepdims=True)
            answer = np.log(total) + m
            def backward(g):
                if not keepdims and axis is not None:
                    g = np.expand_dims(g, axis)
                return g * e / total
            return answer if keepdims else np.asarray(answer.squeeze(axis)), backward
        """,
        (
            "return g * e / total",
            "return g * e",
            "with `exp(input - input.max(axis=axis, keepdims=True))` in the place of `exp(input - spread(answer, "
            "input.shape, axis))`",
        ),
        ("return g * e / total", "return e / total", "without the factor `spread(grad_answer, input.shape, axis)`"),
        ("return g * e / total", "return g * e / total / input.size", "divided by `input.size`"),
        (
            "return g * e / total",
            "return g * e / total * (1 - e / total)",
            "with `exp(input - spread(answer, input.shape, axis)) * (1 - exp(input - spread(answer, input.shape, "
            "axis)))` in the place of `exp(input - spread(answer, input.shape, axis))`",
        ),
        ("return g * e / total", "return -g * e / total", "with its sign turned"),
        ("return g * e / total", "return g * np.exp(input) / np.exp(input).sum()", "has its own softmax"),
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
    "transpose": Student(
        """
        def transpose(input, /, *, axes=None):
            back = None if axes is None else np.argsort([axis % input.ndim for axis in axes])
            return np.transpose(input, axes), lambda g: np.transpose(g, back)
        """,
        ("(g, back)", "(g, axes)", "without the `argsort` of `argsort(order)`. The way back is the inverse"),
        ("(g, back)", "(g)", "without the order `argsort(order)`, so that all axes are reversed"),
    ),
    "broadcast_to": Student(
        """
        def broadcast_to(input, /, *, shape):
            return np.broadcast_to(input, shape), lambda g: unbroadcast(g, input.shape)
        """,
        (
            "unbroadcast(g, input.shape)",
            "unbroadcast(g, input.shape) * input.size / g.size",
            "with the mean in the place of the sum in `unbroadcast(grad_answer, input.shape)`",
        ),
        (
            "unbroadcast(g, input.shape)",
            "g[(0,) * (g.ndim - input.ndim)][tuple(slice(size) for size in input.shape)]",
            "with the first copy alone in the place of the sum in `unbroadcast(grad_answer, input.shape)`",
        ),
    ),
    "concatenate": Student(
        """
        def concatenate(*inputs, axis=0):
            sizes = [input.shape[axis] for input in inputs]
            def back(k):
                start = sum(sizes[:k])
                places = [slice(None)] * inputs[0].ndim
                places[axis] = slice(start, start + sizes[k])
                return lambda g: g[tuple(places)]
            return np.concatenate(inputs, axis), *(back(k) for k in range(len(inputs)))
        """,
        ("start = sum(sizes[:k])", "start = k * sizes[k]", "each has its own size."),
        ("start = sum(sizes[:k])", "start = k * sizes[0]", "with `k * sizes[0]` in the place of `sum(sizes[:k])`"),
        ("start = sum(sizes[:k])", "start = sum(sizes[:k]) + 1", "with `slice(start + 1, start + size + 1)`"),
        (
            "places[axis] = slice(start, start + sizes[k])",
            "start = sum(each.shape[0] for each in inputs[:k]); places[0] = slice(start, start + inputs[k].shape[0])",
            "The operands lie one after the other along `axis`.",
        ),
    ),
    "diagonal": Student(
        """
        def diagonal(input, /, *, offset=0, axis1=0, axis2=1):
            def backward(g):
                grad = np.zeros(input.size)
                numbers = np.arange(input.size).reshape(input.shape)
                grad[np.diagonal(numbers, offset, axis1, axis2)[..., : g.shape[-1]]] = g
                return grad.reshape(input.shape)
            return np.diagonal(input, offset, axis1, axis2), backward
        """,
        ("offset, axis1, axis2)[", "0, axis1, axis2)[", "The diagonal begins `offset` columns further right."),
        (" = g\n", " = 1\n", "with 1 in the place of `grad_answer`"),
        (" = g\n", " = -g\n", "with its sign turned"),
    ),
    "index": Student(
        """
        def index(input, /, *, key):
            def backward(g):
                grad = np.zeros_like(input)
                np.add.at(grad, key, g)
                return grad
            return input[key], backward
        """,
        ("np.add.at(grad, key, g)", "grad[key] = g", "np.add.at adds each."),
        ("np.add.at(grad, key, g)", "grad[key] += g", "with `=` for `+=`, which keeps only one number"),
        ("return grad", "return -grad", "with its sign turned"),
    ),
}
