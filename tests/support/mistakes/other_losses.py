"""Softmax and cross entropy: the other losses."""

from __future__ import annotations

from student import Student

STUDENTS = {
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
    "gaussian_nll_loss": Student(
        """
        def derivative(self, saved):
            return saved / self.var
        """,
        ("/ self.var", "/ np.sqrt(self.var)", "with the root of `var` in the place of `var`"),
        ("saved / self.var", "-saved", "with its sign turned, and without `/ var`"),
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
    "multi_margin_loss": Student(
        """
        def backward(self, saved):
            shape, is_label, lack, row_weight = saved
            rows, classes = lack.shape
            slope = (lack > 0) * 1.0 if self.p == 1 else 2 * lack
            pull = row_weight * slope / classes
            own = pull.sum(axis=1, keepdims=True)
            grad = pull - is_label * own
            if self.reduction == "mean":
                grad = grad / rows
            return grad.reshape(shape)
        """,
        ("grad = pull - is_label * own", "grad = pull", "The right class's score stands in the terms of all others"),
        ("grad = pull - is_label * own", "grad = np.where(is_label, -pull, pull)", "in the terms of all others"),
        (
            "own = pull.sum(axis=1, keepdims=True)",
            "own = row_weight / classes * (slope.sum(axis=1, keepdims=True) > 0)",
            "its gradient is the sum of theirs",
        ),
        ("own = pull.sum(axis=1, keepdims=True)", "own = row_weight / classes", "its gradient is the sum of theirs"),
        ("grad = pull - is_label * own", "grad = pull + is_label * own", "is the sum of theirs, with its sign turned"),
        ("grad = pull - is_label * own", "grad = is_label * own - pull", "its slope is above 0"),
        ("pull.sum(", "pull.mean(", "The right class's score stands in each term"),
        (" / classes", "", "is divided by the number of classes"),
        (" / classes", " / (classes - 1)", "the right one is one of them"),
        ("grad / rows", "grad", "The loss is a mean"),
        ("grad / rows", "grad / np.broadcast_to(row_weight, (rows, 1)).sum()", "whatever they weigh"),
        ("2 * lack", "lack", "the derivative of lack**2 is 2 lack"),
        ("2 * lack", "2 * (lack > 0)", "Of lack**2 one factor stays"),
        ("2 * lack", "(lack > 0) * 1.0", "for p=1: your code ignores `p`"),
        ("(lack > 0) * 1.0 if", "1.0 - is_label if", "Where a class lacks nothing"),
        ("row_weight * slope", "slope", "An example weighs as much as its class."),
    ),
}
