"""The same of losses, optimizers and schedules."""

from __future__ import annotations

from student import Student

STUDENTS = {
    "mse_loss": Student(
        """
        def backward(self, saved):
            d = saved
            return (d + d) / d.size if self.reduction == "mean" else d + d

        def backward_target(self, saved):
            return -self.backward(saved)
        """,
        ("(d + d) / d.size", "d / d.size", "without the factor `2`"),
        ("(d + d) / d.size", "d + d", "without `/ N`"),
        ("(d + d) / d.size", "(d + d) / len(d)", "with `rows` in the place of `N`"),
        ("(d + d) / d.size", "-(d + d) / d.size", "with its sign turned"),
        ("(d + d) / d.size", "2 * d**2 / d.size", "with `* (prediction - target)` twice"),
        ("return -self.backward", "return self.backward", "with its sign turned"),
        ("else d + d", "else (d + d) / d.size", "for reduction='mean': your code ignores `reduction`"),
        (
            '(d + d) / d.size if self.reduction == "mean" else d + d',
            "d / d.size",
            "without the factor `2`, and for reduction='mean': your code ignores `reduction`",
        ),
    ),
    "smooth_l1_loss": Student(
        """
        def derivative(self, saved):
            d = saved
            return np.where(np.abs(d) < self.beta, d / self.beta, np.sign(d))
        """,
        ("d / self.beta", "d", "its derivative is d / beta"),
        ("< self.beta", "< 1", "The curved part ends at beta, not at 1"),
        ("np.sign(d)", "1", None),
        ("np.where", "-np.where", "with its sign turned"),
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
        ("= -row_weight", "= row_weight", "with its sign turned"),
        ("grad /= total", "pass", "without `/ (total + (total == 0))`"),
        ("grad /= total", "grad /= len(label)", "with `rows` in the place of `total`"),
        ("= -row_weight", "= -1", "without the factor `row_weight[:, newaxis]`"),
        (" and total", "", "not a number: 0 / 0"),
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
        ("grad /= total", "pass", "without `/ total`"),
        (" and total", "", "not a number: 0 / 0"),
        ("- given\n", "\n", "without `- q`"),
        (
            "p * given.sum(axis=1, keepdims=True) - given",
            "given - p * given.sum(axis=1, keepdims=True)",
            "with its sign turned",
        ),
        ("p * given.sum(axis=1, keepdims=True) - given", "p - given", "without the factor `sum_of_q`"),
        ("p * given.sum(axis=1, keepdims=True) - given", "-given", "without `sum_of_q * exp(log_probability)`"),
        (
            "exponential / exponential_sum[:, np.newaxis]",
            "exponential",
            "with `exp(prediction - prediction.max(axis=1, keepdims=True))` in the place of `exp(log_probability)`",
        ),
        ("grad /= total", "grad /= rows", "with `rows` in the place of `total`"),
        ("grad /= total", "grad /= grad.size", "with `N` in the place of `total`"),
        ("p * given.sum(axis=1, keepdims=True) - given", "p * given.sum(axis=1, keepdims=True)", "without `- q`"),
    ),
    "ctc_loss": Student(
        """
        def backward(self, saved):
            shape, state, skip, end, at, alpha, has_path, share = saved
            T, B, S = at.shape
            beta = np.full((T, B, S + 2), -np.inf)
            beta[-1, :, :S] = end
            for t in range(T - 1)[::-1]:
                ahead = np.full((B, S + 2), -np.inf)
                ahead[:, :S] = beta[t + 1, :, :S] + at[t + 1]
                over = ahead[:, 2:] + skip[:, 2:]
                ways = [ahead[:, :S], ahead[:, 1:-1], over]
                beta[t, :, :S] = np.logaddexp.reduce(ways, axis=0)
            gamma = alpha + beta[:, :, :S]
            gamma = gamma - np.logaddexp.reduce(gamma, axis=2, keepdims=True)
            gamma = np.where(has_path[:, np.newaxis], np.exp(gamma), 0) * share[:, np.newaxis]
            grad = np.zeros((B, shape[1], T))
            for s in range(S):
                grad[np.arange(B), state[:, s]] -= gamma[:, :, s].T
            return grad.reshape(shape)
        """,
        ("-= gamma", "+= gamma", "with its sign turned"),
        (" * share[:, np.newaxis]", "", "without the factor `share[:, newaxis, newaxis]`"),
        ("-= gamma", "= -gamma", "with `=` for `+=`, which keeps only one number of each position"),
        ("alpha + beta[:, :, :S]", "alpha", "What comes behind it, beta, belongs to them."),
        ("gamma = alpha", "gamma = at + alpha", "now it counts twice"),
        ("gamma = alpha", "gamma = -at + alpha", "it counts once, in alpha"),
        (", over]", "]", "with `one_way` alone in the place of "),
        ("np.where(has_path[:, np.newaxis], np.exp(gamma), 0)", "np.exp(gamma)", "not a number"),
    ),
    "multi_label_margin_loss": Student(
        """
        def backward(self, saved):
            shape, places, num_pairs = saved
            rows, classes = num_pairs.shape
            behind = num_pairs / classes
            before = np.concatenate([np.zeros((rows, 1)), behind[:, :-1]], axis=1)
            grad = np.zeros((rows, classes))
            grad.put(places, behind - before)
            if self.reduction == "mean":
                grad /= rows
            return grad.reshape(shape)
        """,
        ("behind - before", "before - behind", "with its sign turned"),
        ("num_pairs / classes", "num_pairs", "is divided by the number of classes"),
        ("grad /= rows", "pass", "without `/ rows`"),
        ("behind - before", "behind", "it shortens the one before it"),
        ("grad.put(places, behind - before)", "grad = behind - before", None),
        ("grad /= rows", "grad /= grad.size", "with `N` in the place of `rows`"),
    ),
    "huber_loss": Student(
        """
        def derivative(self, saved):
            return np.where(np.abs(saved) <= self.delta, saved, self.delta * np.sign(saved))
        """,
        (
            "np.where(np.abs(saved) <= self.delta, saved, self.delta * np.sign(saved))",
            "saved",
            "without the `clip` of `clip(prediction - target, -delta, delta)`",
        ),
        (
            "self.delta * np.sign(saved)",
            "np.sign(saved)",
            "with `where(abs(prediction - target) <= delta, prediction - target, sign(prediction - target))` in the "
            "place of `clip(prediction - target, -delta, delta)`",
        ),
        (
            "self.delta * np.sign(saved)",
            "self.delta",
            "with `where(abs(prediction - target) <= delta, prediction - target, delta)` in the place of "
            "`clip(prediction - target, -delta, delta)`",
        ),
        (
            "self.delta, saved,",
            "self.delta, 2 * saved,",
            "with `where(abs(prediction - target) <= delta, 2 * (prediction - target), delta * sign(prediction - "
            "target))` in the place of `clip(prediction - target, -delta, delta)`",
        ),
        ("np.abs(saved) <= self.delta", "np.abs(saved) < 1", "The curved part ends at delta, not at 1."),
        (
            "np.where(np.abs(saved) <= self.delta, saved, self.delta * np.sign(saved))",
            "np.sign(saved)",
            "That is the slope of |d|",
        ),
        (
            "self.delta * np.sign(saved)",
            "0",
            "with `where(abs(prediction - target) <= delta, prediction - target, 0)` in the place of "
            "`clip(prediction - target, -delta, delta)`",
        ),
    ),
    "bce_with_logits_loss": Student(
        """
        def derivative(self, saved):
            x, t = saved.prediction, saved.target
            s = 1 / (1 + np.exp(-x))
            return self.weighted(s * (1 - t) - self.positive(t * (1 - s)))
        """,
        (
            "- self.positive",
            "+ self.positive",
            "with `+ target * pos_weight * no` in the place of `- target * pos_weight * no`",
        ),
        ("self.positive(t * (1 - s))", "t * (1 - s)", "without `* pos_weight`"),
        (
            "self.weighted(s * (1 - t) - self.positive(t * (1 - s)))",
            "s * (1 - t) - self.positive(t * (1 - s))",
            "without the factor `weight`",
        ),
        ("s * (1 - t) - self", "s - self", "without the factor `1 - target`"),
        ("self.positive(t * (1 - s))", "self.positive(t)", "without `* no`"),
        ("t * (1 - s)))", "t * (1 - s))) * s * (1 - s)", "times `yes * (1 - yes)`"),
        ("self.weighted(s * (1 - t) - self.positive(t * (1 - s)))", "self.weighted(s - t)", "without `* pos_weight`"),
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
    "step_lr": Student(
        """
        def lr(self, initial_lr, count):
            return initial_lr * self.gamma ** (count // self.step_size)
        """,
        (
            "count // self.step_size",
            "count / self.step_size",
            "with `count / self.step_size` in the place of `count // self.step_size`",
        ),
        (
            "initial_lr * self.gamma ** (count // self.step_size)",
            "initial_lr * self.gamma ** count",
            "with `count` in the place of `count // self.step_size`",
        ),
        ("(count // self", "((count + 1) // self", "with `count + 1` in the place of `count`"),
        (
            "initial_lr * self.gamma ** (count // self.step_size)",
            "initial_lr",
            "with `initial_lr` in the place of `_decayed(initial_lr, self.gamma, count // self.step_size)`",
        ),
    ),
    "cosine_annealing_lr": Student(
        """
        def lr(self, initial_lr, count):
            cosine = np.cos(np.pi * count / self.T_max)
            return float(self.eta_min + 0.5 * (initial_lr - self.eta_min) * (1 + cosine))
        """,
        ("0.5 * (initial", "(initial", "without `/ 2`"),
        (
            "(1 + cosine)",
            "(1 - cosine)",
            "with `- math.cos(math.pi * count / self.T_max)` in the place of `+ math.cos(math.pi * count / "
            "self.T_max)`",
        ),
        ("self.eta_min + 0.5", "0.5", "without `self.eta_min`"),
        ("(initial_lr - self.eta_min)", "initial_lr", "without `- self.eta_min`"),
        (
            "np.pi * count",
            "2 * np.pi * count",
            "with `math.cos(2 * (math.pi * count / self.T_max))` in the place of `math.cos(math.pi * count / "
            "self.T_max)`",
        ),
        ("np.pi * count", "np.pi * (count + 1)", "with `count + 1` in the place of `count`"),
        ("np.pi * count", "np.pi * min(count, self.T_max)", "with `min(count, self.T_max)` in the place of `count`"),
        (
            "self.eta_min + 0.5 * (initial_lr - self.eta_min)",
            "initial_lr",
            "without `/ 2`, and for eta_min=0.0: your code ignores `eta_min`",
        ),
        ("(1 + cosine)", "cosine", "without `1`"),
    ),
    "linear_lr": Student(
        """
        def lr(self, initial_lr, count):
            t = min(count, self.total_iters) / max(1, self.total_iters)
            return initial_lr * ((1 - t) * self.start_factor + t * self.end_factor)
        """,
        ("min(count, self.total_iters)", "count", "without the `min` of `min(count, self.total_iters)`"),
        (
            "(1 - t) * self.start_factor + t * self.end_factor",
            "t * self.start_factor + (1 - t) * self.end_factor",
            "with `1 - progress` in the place of `progress`",
        ),
        (
            "(1 - t) * self.start_factor + t * self.end_factor",
            "self.start_factor + t * self.end_factor",
            "without `- self.start_factor`",
        ),
        (
            "max(1, self.total_iters)",
            "max(1, self.total_iters - 1)",
            "with `self.total_iters - 1` in the place of `self.total_iters`",
        ),
    ),
}
