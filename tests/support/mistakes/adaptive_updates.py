"""Optimizers' updates: those that divide by the size of earlier gradients."""

from __future__ import annotations

from student import Student

STUDENTS = {
    "rmsprop": Student(
        """
        def move(self, param, grad, vectors, coefficients):
            d = -grad if self.maximize else grad
            d = d + self.weight_decay * param
            v = vectors["square_avg"]
            v[...] = self.alpha * v + (1 - self.alpha) * d**2
            variance = v
            if self.centered:
                m = vectors["grad_avg"]
                m[...] = self.alpha * m + (1 - self.alpha) * d
                variance = np.maximum(v - m**2, 0)
            step = d / (np.sqrt(variance) + self.eps)
            if self.momentum:
                buffer = vectors["momentum_buffer"]
                buffer[...] = self.momentum * buffer + step
                step = buffer
            param -= self.lr * step
        """,
        (
            "np.sqrt(variance) + self.eps",
            "np.sqrt(variance + self.eps)",
            "with `sqrt(variance + eps)` in the place of `sqrt(variance) + eps`",
        ),
        ("np.sqrt(variance) + self.eps", "np.sqrt(variance)", "without `+ eps`"),
        ("np.sqrt(variance) + self.eps", "variance + self.eps", "without the `sqrt` of `sqrt(variance)`"),
        ("(1 - self.alpha) * d**2", "d**2", "without the factor `1 - alpha`"),
        ("(1 - self.alpha) * d**2", "(1 - self.alpha) * d", "without the power"),
        ("np.maximum(v - m**2, 0)", "v", "without `- grad_avg ** 2`"),
        (
            "self.alpha * v + (1 - self.alpha) * d**2",
            "(1 - self.alpha) * v + self.alpha * d**2",
            "with `alpha` and `1 - alpha` swapped",
        ),
        ("self.momentum * buffer + step", "self.momentum * buffer + self.lr * step", "with `* lr` behind `scaled`"),
    ),
    "adam": Student(
        """
        def move(self, param, grad, vectors, coefficients):
            g = -grad if self.maximize else grad
            if self.weight_decay:
                g = g + self.weight_decay * param
            b1, b2 = self.betas
            t = self.num_steps + 1
            m, v = vectors["exp_avg"], vectors["exp_avg_sq"]
            m[...] = b1 * m + (1 - b1) * g
            v[...] = b2 * v + (1 - b2) * g**2
            if self.amsgrad:
                most = vectors["max_exp_avg_sq"]
                most[...] = np.maximum(most, v)
                v = most
            mhat = m / (1 - b1**t)
            vhat = v / (1 - b2**t)
            param -= self.lr * mhat / (np.sqrt(vhat) + self.eps)
        """,
        ("mhat = m / (1 - b1**t)", "mhat = m", "without `/ (1 - beta1 ** step)`"),
        ("vhat = v / (1 - b2**t)", "vhat = v", "without `/ (1 - beta2 ** step)`"),
        (
            "np.sqrt(vhat) + self.eps",
            "np.sqrt(vhat + self.eps)",
            "with `sqrt(mean_sq + eps)` in the place of `sqrt(mean_sq) + eps`",
        ),
        ("np.sqrt(vhat) + self.eps", "vhat + self.eps", "without the `sqrt` of `sqrt(mean_sq)`"),
        ("(1 - b2) * g**2", "(1 - b2) * g", "without the power"),
        ("(1 - b1) * g", "g", "without the factor `1 - beta1`"),
        ("t = self.num_steps + 1", "t = self.num_steps + 2", "with `step + 1` in the place of `step` in 3 lines"),
        ("v / (1 - b2**t)", "v / (1 - b1**t)", "with `beta1` in the place of `beta2`"),
        ("np.sqrt(vhat) + self.eps", "np.sqrt(vhat)", "without `+ eps`"),
        ("self.lr * mhat", "self.lr * g", "with `direction` in the place of `mean`"),
        (
            "mhat = m / (1 - b1**t)\n    vhat = v / (1 - b2**t)",
            "mhat = m\n    vhat = v",
            "without `/ (1 - beta2 ** step)`",
        ),
        ("b1 * m + (1 - b1) * g", "(1 - b1) * m + b1 * g", "with `beta1` and `1 - beta1` swapped"),
        ("(1 - b2) * g**2", "(1 - b2) * np.abs(g)", "with `abs(direction)` in the place of `direction ** 2`"),
        (
            "g = g + self.weight_decay * param",
            "param *= 1 - self.lr * self.weight_decay",
            "with the decay of the parameters apart from the gradient, as AdamW has it",
        ),
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
}
