"""Calculus of arrays: reductions and products."""

from __future__ import annotations

from student import Student

STUDENTS = {
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
}
