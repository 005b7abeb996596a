"""The same of losses, optimizers and schedules."""

from __future__ import annotations

from mistake import Student

STUDENTS = {
    "mse_loss": Student(
        """
        def backward(self, saved):
            d = saved
            return (d + d) / d.size if self.reduction == "mean" else d + d

        def backward_target(self, saved):
            return -self.backward(saved)
        """,
        ("(d + d) / d.size", "d / d.size", ""),
        ("(d + d) / d.size", "d + d", ""),
        ("(d + d) / d.size", "(d + d) / len(d)", ""),
        ("(d + d) / d.size", "-(d + d) / d.size", ""),
        ("(d + d) / d.size", "2 * d**2 / d.size", ""),
        ("return -self.backward", "return self.backward", ""),
        ("else d + d", "else (d + d) / d.size", ""),
    ),
    "nll_loss": Student(
        """
        def backward(self, saved):
            shape, num_classes, label, row_weight = saved
            grad = np.zeros((len(label), num_classes))
            grad[np.arange(len(label)), label] = -row_weight
            total = row_weight.sum()
            if self.reduction == "mean" and total:
                grad /= total
            return in_shape(grad, shape)
        """,
        ("= -row_weight", "= row_weight", ""),
        ("grad /= total", "pass", ""),
        ("grad /= total", "grad /= len(label)", ""),
        ("= -row_weight", "= -1", None),
    ),
    "cross_entropy_loss": Student(
        """
        def backward(self, saved):
            shape, exponential, exponential_sum, place, log_p, q_at_place, q, total = saved
            rows = len(exponential)
            p = exponential / exponential_sum[:, np.newaxis]
            given = np.zeros(p.shape) if q is None else q.copy()
            given.put(place, q_at_place)
            grad = p * given.sum(axis=1, keepdims=True) - given
            if self.reduction == "mean" and total:
                grad /= total
            return in_shape(grad, shape)
        """,
        ("grad /= total", "pass", ""),
        ("- given\n", "\n", ""),
        ("p * given.sum(axis=1, keepdims=True) - given", "given - p * given.sum(axis=1, keepdims=True)", ""),
        ("p * given.sum(axis=1, keepdims=True) - given", "p - given", ""),
        ("p * given.sum(axis=1, keepdims=True) - given", "-given", ""),
        ("exponential / exponential_sum[:, np.newaxis]", "exponential", None),
        ("grad /= total", "grad /= rows", ""),
        ("grad /= total", "grad /= grad.size", ""),
        ("p * given.sum(axis=1, keepdims=True) - given", "p * given.sum(axis=1, keepdims=True)", ""),
    ),
    "huber_loss": Student(
        """
        def derivative(self, saved):
            return np.where(np.abs(saved) <= self.delta, saved, self.delta * np.sign(saved))
        """,
        ("np.where(np.abs(saved) <= self.delta, saved, self.delta * np.sign(saved))", "saved", ""),
        ("self.delta * np.sign(saved)", "np.sign(saved)", None),
        ("self.delta * np.sign(saved)", "self.delta", ""),
        ("self.delta, saved,", "self.delta, 2 * saved,", None),
        ("self.delta * np.sign(saved)", "0", None),
    ),
    "bce_with_logits_loss": Student(
        """
        def derivative(self, saved):
            x, t = saved.prediction, saved.target
            s = 1 / (1 + np.exp(-x))
            return self.weighted(s * (1 - t) - self.positive(t * (1 - s)))
        """,
        ("- self.positive", "+ self.positive", ""),
        ("self.positive(t * (1 - s))", "t * (1 - s)", ""),
        ("self.weighted(s * (1 - t) - self.positive(t * (1 - s)))", "s * (1 - t) - self.positive(t * (1 - s))", ""),
        ("s * (1 - t) - self", "s - self", ""),
        ("self.positive(t * (1 - s))", "self.positive(t)", ""),
        ("self.weighted(s * (1 - t) - self.positive(t * (1 - s)))", "self.weighted(s - t)", None),
    ),
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
        ("param - self.lr", "param + self.lr", ""),
        ("d = d + self.weight_decay * param", "pass", ""),
        ("self.momentum * buffer + coeff", "buffer + coeff", ""),
        ('coefficients["undampened"] * d', "d", ""),
        ('coefficients["undampened"] * d', "(1 - self.momentum) * d", ""),
        ("d + self.momentum * buffer if", "d + buffer if", ""),
        ("-grad if self.maximize else grad", "grad", ""),
        ("self.lr * d", "d", ""),
    ),
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
        ("np.sqrt(variance) + self.eps", "np.sqrt(variance + self.eps)", ""),
        ("np.sqrt(variance) + self.eps", "np.sqrt(variance)", ""),
        ("np.sqrt(variance) + self.eps", "variance + self.eps", ""),
        ("(1 - self.alpha) * d**2", "d**2", ""),
        ("(1 - self.alpha) * d**2", "(1 - self.alpha) * d", ""),
        ("np.maximum(v - m**2, 0)", "v", ""),
        ("self.alpha * v + (1 - self.alpha) * d**2", "(1 - self.alpha) * v + self.alpha * d**2", ""),
        ("self.momentum * buffer + step", "self.momentum * buffer + self.lr * step", None),
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
        ("mhat = m / (1 - b1**t)", "mhat = m", ""),
        ("vhat = v / (1 - b2**t)", "vhat = v", ""),
        ("np.sqrt(vhat) + self.eps", "np.sqrt(vhat + self.eps)", ""),
        ("np.sqrt(vhat) + self.eps", "vhat + self.eps", ""),
        ("(1 - b2) * g**2", "(1 - b2) * g", ""),
        ("(1 - b1) * g", "g", ""),
        ("t = self.num_steps + 1", "t = self.num_steps + 2", ""),
        ("v / (1 - b2**t)", "v / (1 - b1**t)", ""),
        ("np.sqrt(vhat) + self.eps", "np.sqrt(vhat)", ""),
        ("self.lr * mhat", "self.lr * g", ""),
        ("mhat = m / (1 - b1**t)\n    vhat = v / (1 - b2**t)", "mhat = m\n    vhat = v", ""),
        ("b1 * m + (1 - b1) * g", "(1 - b1) * m + b1 * g", ""),
    ),
    "step_lr": Student(
        """
        def lr(self, initial_lr, count):
            return initial_lr * self.gamma ** (count // self.step_size)
        """,
        ("count // self.step_size", "count / self.step_size", None),
        ("initial_lr * self.gamma ** (count // self.step_size)", "initial_lr * self.gamma ** count", ""),
        ("(count // self", "((count + 1) // self", ""),
        ("initial_lr * self.gamma ** (count // self.step_size)", "initial_lr", ""),
    ),
    "cosine_annealing_lr": Student(
        """
        def lr(self, initial_lr, count):
            cosine = np.cos(np.pi * count / self.T_max)
            return float(self.eta_min + 0.5 * (initial_lr - self.eta_min) * (1 + cosine))
        """,
        ("0.5 * (initial", "(initial", ""),
        ("(1 + cosine)", "(1 - cosine)", ""),
        ("self.eta_min + 0.5", "0.5", ""),
        ("(initial_lr - self.eta_min)", "initial_lr", ""),
        ("np.pi * count", "2 * np.pi * count", ""),
        ("np.pi * count", "np.pi * (count + 1)", ""),
        ("(1 + cosine)", "cosine", ""),
    ),
    "linear_lr": Student(
        """
        def lr(self, initial_lr, count):
            t = min(count, self.total_iters) / max(1, self.total_iters)
            return initial_lr * ((1 - t) * self.start_factor + t * self.end_factor)
        """,
        ("min(count, self.total_iters)", "count", ""),
        ("(1 - t) * self.start_factor + t * self.end_factor", "t * self.start_factor + (1 - t) * self.end_factor", ""),
        ("(1 - t) * self.start_factor + t * self.end_factor", "self.start_factor + t * self.end_factor", ""),
        ("max(1, self.total_iters)", "max(1, self.total_iters - 1)", ""),
    ),
}
