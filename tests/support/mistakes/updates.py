"""Optimizers' updates: the others."""

from __future__ import annotations

from student import Student

STUDENTS = {
    "sgd": Student(
        """
        def move(self, param, grad, vectors, coefficients):
            d = -grad if self.maximize else grad
            d = d + self.weight_decay * param
            if self.momentum:
                buffer = vectors["momentum_buffer"]
                buffer[...] = self.momentum * buffer + coefficients["undampened"] * d
                d = d + self.momentum * buffer if self.nesterov else buffer
            param[...] = param - self.lr * d
        """,
        ("param - self.lr", "param + self.lr", "with `+ lr * direction` in the place of `- lr * direction`"),
        (
            "d = d + self.weight_decay * param",
            "pass",
            "without the line `direction = direction + weight_decay * param`",
        ),
        ("self.momentum * buffer + coeff", "buffer + coeff", "without the factor `momentum`"),
        ('coefficients["undampened"] * d', "d", "without the factor `1 - dampening`"),
        (
            'coefficients["undampened"] * d',
            "(1 - self.momentum) * d",
            "with `momentum * momentum_buffer + (1 - momentum) * direction` in the place of `direction if step == 1 "
            "else momentum * momentum_buffer + (1 - dampening) * direction`",
        ),
        ("d + self.momentum * buffer if", "d + buffer if", "without the factor `momentum`"),
        ("-grad if self.maximize else grad", "grad", "with `grad` in the place of `-grad if maximize else grad`"),
        ("self.lr * d", "d", "without the factor `lr`"),
        ("buffer[...] = self", "buffer = self", "Write momentum_buffer[...] ="),
        ("param[...] = param", "param = param", "param keeps its old numbers: nothing is written into param."),
        (
            'vectors["momentum_buffer"]',
            'vectors["momentum_buffer"].copy()\n        vectors["momentum_buffer"][...] = self.momentum * buffer + '
            'coefficients["undampened"] * d\n        d = d + self.momentum * buffer if self.nesterov else buffer'
            "\n        param[...] = param - self.lr * d\n        return",
            "with `momentum_buffer` as it was before the step, in the place of the new one, in `direction = ",
        ),
    ),
    "asgd": Student(
        """
        def move(self, param, grad, vectors, coefficients):
            t = self.num_steps + 1
            g = (-grad if self.maximize else grad) + self.weight_decay * param
            eta, ax = vectors["eta"], vectors["ax"]
            if t == 1:
                eta[...] = self.lr
            param -= eta * (self.lambd * param + g)
            ax += (param - ax) / max(1, t - 1 - self.t0)
            eta[...] = self.lr / (1 + self.lambd * self.lr * t) ** self.alpha
        """,
        ("if t == 1:\n        eta[...] = self.lr", "pass", "without the line `eta = lr if step == 1 else eta`"),
        (
            "if t == 1:\n        eta[...] = self.lr\n",
            "eta[...] = self.lr / (1 + self.lambd * self.lr * t) ** self.alpha\n",
            "eta is made at the end of a step, for the next one.",
        ),
        ("t - 1 - self.t0", "t - self.t0", "The mean begins with step t0 + 2"),
        ("(param - ax)", "param", "A mean moves by a part of the difference"),
        (
            "param -= eta * (self.lambd * param + g)\n    ax += (param - ax) / max(1, t - 1 - self.t0)",
            "ax += (param - ax) / max(1, t - 1 - self.t0)\n    param -= eta * (self.lambd * param + g)",
            "ax is the mean of the parameters behind each step.",
        ),
        (
            "eta * (self.lambd * param + g)",
            "self.lambd * param + eta * g",
            "The decay is a part of the step: it shrinks with eta.",
        ),
    ),
    "muon": Student(
        """
        def move(self, param, grad, vectors, coefficients):
            m, (a, b, c) = vectors["momentum_buffer"], self.ns_coefficients
            m[...] = self.momentum * m + (1 - self.momentum) * grad
            g = self.momentum * m + (1 - self.momentum) * grad if self.nesterov else m
            is_tall = param.shape[0] > param.shape[1]
            x = (g.T if is_tall else g) / max(np.linalg.norm(g), self.eps)
            for _ in range(self.ns_steps):
                gram = x @ x.T
                x = a * x + (b * gram + c * gram @ gram) @ x
            rows, columns = param.shape
            ratio = np.sqrt(max(1, rows / columns))
            if self.adjust_lr_fn == "match_rms_adamw":
                ratio = 0.2 * np.sqrt(max(rows, columns))
            param -= self.lr * (self.weight_decay * param + ratio * (x.T if is_tall else x))
        """,
        ("np.linalg.norm(g)", "np.linalg.norm(g, 2)", "no singular value is larger"),
        ("c * gram @ gram", "c * gram * gram", "A product of matrices squares the singular values"),
        ("* m + (1 - self.momentum) * grad\n    g", "* m + grad\n    g", "The buffer is a mean"),
        ("rows / columns", "columns / rows", "not a wide one."),
        ("+ ratio * (x", "+ (x", "steps of matrices of all shapes"),
        ("range(self.ns_steps)", "range(5)", "your code ignores `ns_steps`"),
    ),
    "lion": Student(
        """
        def move(self, param, grad, vectors, coefficients):
            g = -grad if self.maximize else grad
            b1, b2 = self.betas
            m = vectors["exp_avg"]
            param *= 1 - self.lr * self.weight_decay
            param -= self.lr * np.sign(b1 * m + (1 - b1) * g)
            m[...] = b2 * m + (1 - b2) * g
        """,
        ("np.sign(b1 * m + (1 - b1) * g)", "(b1 * m + (1 - b1) * g)", "Each number moves by lr"),
        ("b2 * m + (1 - b2) * g", "b1 * m + (1 - b1) * g", "the one that is kept remembers longer"),
        ("param *= 1 - self.lr * self.weight_decay", "pass", "without the line"),
        ("b1 * m + (1 - b1) * g", "g", "without `beta1 * exp_avg`"),
        ("(1 - b1) * g", "g", "without the factor `1 - beta1`"),
        ("b1, b2 = self.betas", "b2, b1 = self.betas", "with the two numbers of `betas` exchanged"),
        (
            "param *= 1 - self.lr * self.weight_decay",
            "g = g + self.weight_decay * param",
            "with the decay of the parameters as a part of the gradient, as Adam has it",
        ),
        (
            "param -= self.lr * np.sign(b1 * m + (1 - b1) * g)\n    m[...] = b2 * m + (1 - b2) * g",
            "m[...] = b2 * m + (1 - b2) * g\n    param -= self.lr * np.sign(b1 * m + (1 - b1) * g)",
            "exp_avg learns of this direction behind it",
        ),
    ),
    "rprop": Student(
        """
        def move(self, param, grad, vectors, coefficients):
            low, high = self.etas
            before, size = vectors["prev"], vectors["step_size"]
            size += coefficients["initial"]
            g = -grad if self.maximize else grad
            same = np.sign(g) * np.sign(before)
            size *= np.where(same > 0, high, np.where(same < 0, low, 1))
            size[...] = np.clip(size, *self.step_sizes)
            before[...] = np.where(same < 0, 0, g)
            param -= np.sign(before) * size
        """,
        ("low, high = self.etas", "high, low = self.etas", "with the two numbers of `etas` exchanged"),
        ("self.maximize else grad", "False else grad", "with `grad` in the place of `-grad if self.max"),
        ("before[...] = np", "before = np", "into prev, or only multiples of its zeros."),
        ("np.where(same < 0, 0, g)", "g", "as if there were no gradient before."),
        ("param -= np.sign(before) * size", "param -= np.sign(g) * size", "the sign has changed, no step is made."),
        ("param -= np.sign(before) * size", "param -= before * size", "step_size says how far."),
        ("np.sign(before) * size", "self.lr * np.sign(before) * size", "step_size is the whole step"),
        ('coefficients["initial"]', "self.lr", "in the first step alone."),
    ),
}
