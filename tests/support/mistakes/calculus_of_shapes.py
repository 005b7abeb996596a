"""Calculus of arrays: operations that move numbers."""

from __future__ import annotations

from student import Student

STUDENTS = {
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
    "transpose": Student(
        """
        def transpose(input, /, *, axes=None):
            back = None if axes is None else np.argsort([axis % input.ndim for axis in axes])
            return np.transpose(input, axes), lambda g: np.transpose(g, back)
        """,
        ("(g, back)", "(g, axes)", "without the `argsort` of `argsort(order)`. The way back is the inverse"),
        ("(g, back)", "(g)", "without the order `argsort(order)`, so that all axes are reversed"),
    ),
}
