"""The same of optimizers' updates."""

from __future__ import annotations

from student import Student

STUDENTS = {
    "adadelta": Student(
        """
        def move(self, param, grad, vectors, coefficients):
            g = (-grad if self.maximize else grad) + self.weight_decay * param
            v, moved = vectors["square_avg"], vectors["acc_delta"]
            v[...] = self.rho * v + (1 - self.rho) * g * g
            delta = np.sqrt(moved + self.eps) / np.sqrt(v + self.eps) * g
            moved[...] = self.rho * moved + (1 - self.rho) * delta**2
            param -= self.lr * delta
        """,
        (
            "param -= self.lr * delta",
            "param -= self.lr * np.sqrt(moved + self.eps) / np.sqrt(v + self.eps) * g",
            "with `delta` computed again from the new `acc_delta` in `param = param - lr * delta`. acc_delta holds",
        ),
        ("np.sqrt(moved + self.eps) / np.sqrt(v + self.eps) * g", "g / np.sqrt(v + self.eps)", "which is RMSprop"),
        ("delta**2", "g**2", "acc_delta averages the squares of the steps"),
        ("delta**2", "(self.lr * delta) ** 2", "before lr scales them"),
        (
            "np.sqrt(moved + self.eps) / np.sqrt(v + self.eps)",
            "(np.sqrt(moved) + self.eps) / (np.sqrt(v) + self.eps)",
            "the first steps would be far smaller",
        ),
        ("self.rho * v + (1 - self.rho)", "(1 - self.rho) * v + self.rho", "rho is the part that is kept."),
        ("+ self.weight_decay * param", "", "without the line `direction = direction + weight_decay * param`"),
    ),
    "adagrad": Student(
        """
        def move(self, param, grad, vectors, coefficients):
            g = (-grad if self.maximize else grad) + self.weight_decay * param
            total, count = vectors["sum"], self.num_steps + 1
            if count == 1:
                total[...] = self.initial_accumulator_value
            total += g**2
            param -= self.lr / (1 + (count - 1) * self.lr_decay) * g / (np.sqrt(total) + self.eps)
        """,
        ("total += g**2", "total[...] = g**2", "Nothing is forgotten"),
        ("(count - 1) * self.lr", "count * self.lr", "The first step has the whole lr"),
        ("np.sqrt(total) + self.eps", "np.sqrt(total + self.eps)", "eps is added to the root, not below it."),
        ("np.sqrt(total) + self.eps", "total + self.eps", "The square root is missing"),
        ("if count == 1:", "if True:", "The sum begins with it in the first step alone"),
        ("total += g**2", "total += np.abs(g)", "with `abs(direction)` in the place of `direction ** 2`"),
    ),
    "adamax": Student(
        """
        def move(self, param, grad, vectors, coefficients):
            g = (-grad if self.maximize else grad) + self.weight_decay * param
            (b1, b2), m, largest = self.betas, vectors["exp_avg"], vectors["exp_inf"]
            m[...] = b1 * m + (1 - b1) * g
            largest[...] = np.maximum(b2 * largest, np.abs(g) + self.eps)
            param -= self.lr * (m / (1 - b1 ** (self.num_steps + 1))) / largest
        """,
        ("/ largest", "/ (largest / (1 - b2 ** (self.num_steps + 1)))", "A maximum needs no correction"),
        ("b2 * largest, np", "largest, np", "Old numbers are forgotten"),
        ("m / (1 - b1 ** (self.num_steps + 1))", "m", "The correction is missing"),
        ("np.abs(g)", "g", "A negative direction is large, too"),
        ("np.abs(g)", "g**2", "a maximum needs neither square nor root"),
        (
            "np.maximum(b2 * largest, np.abs(g) + self.eps)",
            "b2 * largest + (1 - b2) * (np.abs(g) + self.eps)",
            "exp_inf is the largest of the sizes, not their mean.",
        ),
    ),
    "radam": Student(
        """
        def move(self, param, grad, vectors, coefficients):
            b1, b2 = self.betas
            t = self.num_steps + 1
            g = -grad if self.maximize else grad
            if self.decoupled_weight_decay:
                param *= 1 - self.lr * self.weight_decay
            else:
                g = g + self.weight_decay * param
            m, v = vectors["exp_avg"], vectors["exp_avg_sq"]
            m[...] = b1 * m + (1 - b1) * g
            v[...] = b2 * v + (1 - b2) * g**2
            most = 2 / (1 - b2) - 1
            known = most - 2 * t * b2**t / (1 - b2**t)
            scale = 1.0
            if known > 5:
                r = np.sqrt((known - 4) * (known - 2) * most / ((most - 4) * (most - 2) * known))
                scale = r * np.sqrt(1 - b2**t) / (np.sqrt(v) + self.eps)
            param -= self.lr * m / (1 - b1**t) * scale
        """,
        ("known > 5", "known > 4", "The paper's bound is 4"),
        ("m / (1 - b1**t)", "m", "The correction is missing"),
        (" * np.sqrt(1 - b2**t)", "", "The correction is missing"),
        ("scale = 1.0", "scale = np.sqrt(1 - b2**t) / (np.sqrt(v) + self.eps)", "isn't divided by exp_avg_sq at all"),
        ("r * np.sqrt(1", "np.sqrt(1", "as long as exp_avg_sq is the mean of few gradients"),
        ("np.sqrt(v) + self.eps", "np.sqrt(v + self.eps)", "eps is added to the root, not below it."),
        (
            "g = g + self.weight_decay * param",
            "pass",
            "without the line `direction = direction if decoupled_weight_decay else direction + weight_decay * param`",
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
    "nadam": Student(
        """
        def move(self, param, grad, vectors, coefficients):
            b1, b2 = self.betas
            t = self.num_steps + 1
            g = -grad if self.maximize else grad
            if self.decoupled_weight_decay:
                param *= 1 - self.lr * self.weight_decay
            else:
                g = g + self.weight_decay * param
            now, after = (b1 * (1 - 0.5 * 0.96 ** (n * self.momentum_decay)) for n in (t, t + 1))
            product, m, v = vectors["mu_product"], vectors["exp_avg"], vectors["exp_avg_sq"]
            product[...] = now * (product if t > 1 else 1)
            m[...] = b1 * m + (1 - b1) * g
            v[...] = b2 * v + (1 - b2) * g**2
            ahead = after * m / (1 - product * after) + (1 - now) * g / (1 - product)
            param -= self.lr * ahead / (np.sqrt(v / (1 - b2**t)) + self.eps)
        """,
        ("(1 - product * after)", "(1 - product)", "its correction has this share, too."),
        (" + (1 - now) * g / (1 - product)", "", "The new direction has a part of its own"),
        ("after * m /", "now * m /", "with the share that the next step will have"),
        ("v / (1 - b2**t)", "v", "The correction is missing"),
        (
            "after * m / (1 - product * after) + (1 - now) * g / (1 - product)",
            "m / (1 - b1**t)",
            "That is Adam's mean: it doesn't look ahead.",
        ),
        ("now * (product if t > 1 else 1)", "now * product", "or only multiples of its zeros"),
        ("(1 - now) * g", "(1 - b1) * g", "the step is shared out by mu and mu_next"),
        ("if self.decoupled_weight_decay:", "if False:", "your code ignores `decoupled_weight_decay`"),
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
    "adafactor": Student(
        """
        def move(self, param, grad, vectors, coefficients):
            t = self.num_steps + 1
            g = -grad if self.maximize else grad
            add = t**self.beta2_decay
            size = max(self.eps2, np.sqrt(np.mean(param**2))) * min(self.lr, t**-0.5)
            param *= 1 - self.lr * self.weight_decay
            if param.ndim == 1:
                v = vectors["variance"]
                v[...] = (1 - add) * v + add * g**2
            else:
                rows, columns = self.leading(vectors["row_var"], -1), self.leading(vectors["col_var"], -2)
                rows[...] = (1 - add) * rows + add * (g**2).mean(axis=-1, keepdims=True)
                columns[...] = (1 - add) * columns + add * (g**2).mean(axis=-2, keepdims=True)
                v = rows * columns / np.maximum(rows.mean(axis=-2, keepdims=True), self.eps1)
            update = g / np.sqrt(np.maximum(v, self.eps1**2))
            length = np.sqrt(np.mean(update**2))
            param -= size / max(1, length / self.d) * update
        """,
        ("/ np.maximum(rows.mean(axis=-2, keepdims=True), self.eps1)", "", "A product of two mean squares is like"),
        ("max(self.eps2, np.sqrt(np.mean(param**2))) *", "", "The step is a share of the parameter's own size."),
        ("/ max(1, length / self.d)", "", "is above d is shortened."),
        ("min(self.lr, t**-0.5)", "self.lr", "The share falls at least as 1 / sqrt(step)."),
        ("np.sqrt(np.maximum(v, self.eps1**2))", "np.maximum(v, self.eps1**2)", "The square root is missing"),
        ("(g**2).mean(axis=-1,", "(g**2).sum(axis=-1,", "row_var is a mean over the row, not a sum."),
    ),
}
