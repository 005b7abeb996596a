"""Softmax and cross entropy: softmax, and the losses of probabilities of classes."""

from __future__ import annotations

from student import Student

STUDENTS = {
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
    "log_softmax": Student(
        """
        def backward(self, saved, grad_output):
            p = np.exp(saved)
            return grad_output - p * grad_output.sum(axis=self.dim, keepdims=True)
        """,
        ("np.exp(saved)", "saved", "without the `exp` of `exp(output)`"),
        (
            "- p * grad_output.sum(axis=self.dim, keepdims=True)",
            "- p * grad_output",
            "without the `sum` of `grad_output.sum(axis=dim, keepdims=True)`",
        ),
        (
            "- p * grad",
            "+ p * grad",
            "with `+ exp(output) * grad_output.sum(axis=dim, keepdims=True)` in the place of `- exp(output) * "
            "grad_output.sum(axis=dim, keepdims=True)`",
        ),
        (
            "grad_output - p",
            "p * grad_output - p",
            "with `exp(output)` in all terms of `grad_output - exp(output) * grad_output.sum(axis=dim, keepdims=True)`",
        ),
        (
            " - p * grad_output.sum(axis=self.dim, keepdims=True)",
            "",
            "without `- exp(output) * grad_output.sum(axis=dim, keepdims=True)`",
        ),
        ("- p * grad", "- grad", "without the factor `exp(output)`"),
        (".sum(", ".mean(", "with `mean` in the place of `sum`"),
        (
            "p * grad_output.sum(axis=self.dim, keepdims=True)",
            "p * (grad_output * p).sum(axis=self.dim, keepdims=True)",
            "with `grad_output * exp(output)` in the `sum` of `grad_output.sum(axis=dim, keepdims=True)`",
        ),
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
    "softmax_layer": Student(
        """
        def backward(self, saved, grad_output):
            weighted = saved * grad_output
            return weighted - saved * weighted.sum(axis=self.dim, keepdims=True)
        """,
        (
            "weighted - saved * weighted.sum(axis=self.dim, keepdims=True)",
            "saved * (1 - saved) * grad_output",
            "without the `sum` of `(grad_output * output).sum(axis=dim, keepdims=True)`",
        ),
        (
            "weighted.sum(axis=self.dim, keepdims=True)",
            "grad_output.sum(axis=self.dim, keepdims=True)",
            "without `* output`",
        ),
        (
            "return weighted - saved * weighted.sum",
            "return grad_output - saved * weighted.sum",
            "with `(grad_output * output).sum(axis=dim, keepdims=True)` alone times `output`, in the place of all of "
            "`grad_output - (grad_output * output).sum(axis=dim, keepdims=True)`",
        ),
        (
            "return weighted - saved * weighted.sum",
            "return weighted - weighted.sum",
            "with `grad_output` alone times `output`, in the place of all of `grad_output - (grad_output * "
            "output).sum(axis=dim, keepdims=True)`",
        ),
        ("weighted.sum(axis=self.dim", "weighted.mean(axis=self.dim", "with `mean` in the place of `sum`"),
    ),
    "bce_loss": Student(
        """
        def derivative(self, saved):
            p, t = saved
            q = np.clip(p, 1e-12, 1 - 1e-12)
            return self.weighted((1 - t) / (1 - q) - t / q)
        """,
        ("(1 - t) / (1 - q) - t / q", "-t / q", "The term of the no adds (1 - target) / (1 - prediction)."),
        ("(1 - t) / (1 - q) - t / q", "(1 - t) / (1 - q)", "The term of the yes adds -target / prediction."),
        ("(1 - t) / (1 - q) - t / q", "-(1 - t) / (1 - q) - t / q", "with a plus"),
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
    "ctc_loss": Student(
        """
        def backward(self, saved):
            shape, state, skip, end, at, alpha, has_path, share = saved
            T, B, S = at.shape
            beta = np.full((T, B, S + 2), -1e37)
            beta[-1, :, :S] = end
            for t in range(T - 1)[::-1]:
                ahead = np.full((B, S + 2), -1e37)
                ahead[:, :S] = beta[t + 1, :, :S] + at[t + 1]
                over = ahead[:, 2:] + skip[:, 2:]
                ways = [ahead[:, :S], ahead[:, 1:-1], over]
                beta[t, :, :S] = np.logaddexp.reduce(ways, axis=0)
            gamma = alpha + beta[:, :, :S]
            gamma = np.exp(gamma - gamma.max(axis=2, keepdims=True))
            gamma = gamma / gamma.sum(axis=2, keepdims=True)
            gamma = np.where(has_path[:, np.newaxis], gamma, 0) * share[:, np.newaxis]
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
        (", over]", "]", "A path may go on by two states, too"),
        ("ahead[:, 2:] + skip[:, 2:]", "ahead[:, 2:]", "a path can't go on by two states"),
        ("np.where(has_path[:, np.newaxis], gamma, 0)", "gamma", "A target that no path reads"),
    ),
}
