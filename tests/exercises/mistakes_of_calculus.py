"""Right solutions of exercises of operations as a student writes them, and mistakes in them: what stands there, what the
student wrote, and a part of the sentence that says why it is wrong.
"""

from __future__ import annotations

from mistake import Student

STUDENTS = {
    "square": Student(
        """
        def square(input, /):
            answer = input**2
            return answer, lambda grad_answer: 2 * input * grad_answer
        """,
        ("2 * input * grad", "input * grad", ""),
        ("2 * input * grad_answer", "2 * input", ""),
        ("2 * input * grad_answer", "2 * grad_answer", ""),
        ("2 * input * grad", "2 * answer * grad", ""),
        ("2 * input * grad", "-2 * input * grad", ""),
        ("2 * input", "2 + input", ""),
    ),
    "tanh": Student(
        """
        def tanh(input, /):
            answer = np.tanh(input)
            def backward(grad_answer):
                return (1 - answer**2) * grad_answer
            return answer, backward
        """,
        ("1 - answer**2", "1 - input**2", ""),
        ("1 - answer**2", "1 - answer", ""),
        ("1 - answer**2", "1 + answer**2", ""),
        ("1 - answer**2", "answer**2", ""),
        (" * grad_answer", "", ""),
        ("1 - answer**2", "answer**2 - 1", ""),
        ("(1 - answer**2)", "(1 - answer)**2", ""),
    ),
    "log": Student(
        """
        def log(input, /):
            answer = np.log(input)
            return answer, lambda grad_answer: grad_answer * (1 / input)
        """,
        ("1 / input", "input", ""),
        ("1 / input", "1 / answer", ""),
        ("1 / input", "1 / input**2", ""),
        ("1 / input", "-1 / input", ""),
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
        ("exponent * base ** (exponent - 1)", "base ** (exponent - 1)", ""),
        ("(exponent - 1)", "exponent", ""),
        ("(exponent - 1)", "(exponent + 1)", ""),
        ("np.log(base) * answer", "np.log(base)", ""),
        ("np.log(base) * answer", "answer", ""),
        ("np.log(base)", "np.log(exponent)", ""),
    ),
    "multiply": Student(
        """
        def multiply(a, b, /):
            return a * b, lambda g: unbroadcast(g * b, a.shape), lambda g: unbroadcast(a * g, b.shape)
        """,
        ("g * b", "g * a", ""),
        ("unbroadcast(a * g, b.shape)", "a * g", ""),
        ("a * g", "g", ""),
        ("g * b", "g + b", ""),
    ),
    "divide": Student(
        """
        def divide(a, b, /):
            return a / b, lambda g: unbroadcast(g / b, a.shape), lambda g: unbroadcast(-g * a / (b * b), b.shape)
        """,
        ("-g * a", "g * a", ""),
        ("/ (b * b)", "/ b", ""),
        ("g / b", "g * b", ""),
        ("-g * a / (b * b)", "-g / (b * b)", ""),
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
        ("(g, input.shape)", "(g, input.shape) / input.size", ""),
        ("(g, input.shape)", "(g, input.shape) * input", ""),
        ("return np.broadcast_to(g, input.shape)", "return g", ""),
        ("(g, input.shape)", "(np.ones(()), input.shape)", ""),
        ("(g, input.shape)", "(-g, input.shape)", ""),
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
        (" * answer.size / input.size", "", ""),
        (" * answer.size / input.size", " / input.size", ""),
        ("answer.size / input.size", "input.size / answer.size", ""),
        ("answer.size / input.size", "answer.size / input.size * input", ""),
        ("answer.size / input.size", "1 / answer.size", ""),
    ),
    "outer": Student(
        """
        def outer(a, b, /):
            return np.outer(a, b), lambda g: np.einsum("ij,j->i", g, b), lambda g: np.einsum("ij,i->j", g, a)
        """,
        ('np.einsum("ij,j->i", g, b)', "g.sum(axis=1)", ""),
        ('np.einsum("ij,i->j", g, a)', "g.sum(axis=0)", ""),
        ('np.einsum("ij,j->i", g, b)', "-g @ b", ""),
        ('np.einsum("ij,j->i", g, b)', "(g * b)", ""),
        ('np.einsum("ij,j->i", g, b)', "(g * b).mean(axis=1)", ""),
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
        ('np.einsum("...ij,...kj->...ik", g, B)', "2 * g @ B.mT", ""),
        ('np.einsum("...ij,...kj->...ik", g, B)', "-(g @ B.mT)", ""),
        ("np.swapaxes(A, -1, -2) @ g", "-A.mT @ g", ""),
        ("np.swapaxes(A, -1, -2) @ g", "A.mT @ g / A.shape[-2]", ""),
        ("np.swapaxes(A, -1, -2) @ g", "A.mT @ (A @ B)", ""),
    ),
    "trace": Student(
        """
        def trace(input, /):
            return np.asarray(np.trace(input)), lambda g: g * np.eye(*input.shape)
        """,
        ("g * np.eye(*input.shape)", "g * np.ones(input.shape)", ""),
        ("g * np.eye(*input.shape)", "np.eye(*input.shape)", ""),
        ("g * np.eye(*input.shape)", "g * np.eye(*input.shape) * input", ""),
        ("g * np.eye(*input.shape)", "g * np.eye(*input.shape) / len(input)", ""),
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
        ("return share * g", "return (share > 0) * g", ""),
        ("return share * g", "return share * g * input", ""),
        ("return share * g", "return share", ""),
        ("return share * g", "return np.broadcast_to(g, input.shape)", ""),
        ("np.argmax", "np.argmin", ""),
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
        ("p * g - p * np.sum(p * g, axis=axis, keepdims=True)", "p * g", ""),
        ("p * g - p * np.sum(p * g, axis=axis, keepdims=True)", "p * (1 - p) * g", ""),
        ("p * g - p * np.sum", "g - p * np.sum", ""),
        ("p * g - p * np.sum", "p * g + p * np.sum", ""),
        ("p * np.sum(p * g,", "p * np.sum(g,", ""),
        ("p * np.sum(p * g, axis=axis, keepdims=True)", "p * np.sum(p * g)", ""),
        ("p * g - p * np.sum", "p * g - np.sum", ""),
        ("np.sum(p * g,", "np.mean(p * g,", ""),
        ("p * g - p * np.sum(p * g", "p * g - p * np.sum(p * input", ""),
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
        ("return g * e / total", "return g * e", ""),
        ("return g * e / total", "return e / total", ""),
        ("return g * e / total", "return g * e / total / input.size", ""),
        ("return g * e / total", "return g * e / total * (1 - e / total)", ""),
        ("return g * e / total", "return -g * e / total", ""),
    ),
}
