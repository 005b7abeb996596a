"""Mutants of losses that compute the same, but of MSELoss, TraceLoss and CrossEntropyLoss: each with the proof."""

# ruff: noqa: E501 - a line of the package is cited as it is

from __future__ import annotations

from benchmarks.mutation.survivors_of_activations import COMMUTES

IN_ANY_ORDER = "the terms are only added up, and a sum doesn't depend on their order: all that goes into it is turned alike"
SIGN_ONLY = "only the sign of the number is used, and a positive factor leaves it: no difference underflows"
MAGNITUDE = "|-x| = |x|"
NO_TERMS = "without terms torch's mean is NaN, too: 0 / 0; tests/losses/test_edge_shapes.py has batches without elements"

SUM = "return (term.sum() / num_terms if num_terms else term.dtype.type(np.nan), saved)"
ERROR = "return (np.abs(difference), difference)"
NOT_ZERO = "no beta of these is 0, and tests/losses/test_elementwise.py has it: a number is 0 exactly where its multiple is"
LABELS = "labels are 1 and -1: which of them it is stays the same, and so does the size of a product with one"
POSITIVE = ("target >= 0", "target * 1.001 > 0", "target * 2 > 0", "target + 1e-08 > 0", "target > 0 + 1e-08")
HINGE = "return (np.where(target > 0, prediction, np.maximum(self.margin - prediction, 0)), (prediction, target))"
HINGE_SLOPE = "return np.where(target > 0, 1, -below)"
SOFT_MARGIN = "return (np.maximum(lack, 0) + np.log1p(exponential), (target, lack, exponential))"
WRONG = "wrong: Array = np.where(lack > 0, 1, exponential) / (1 + exponential)"
GAUSS = "return (difference * difference / self.var / 2 + self.constant(), difference)"
NOTHING_COUNTS = (
    "where the total is 0, the loss is not a number, and the check compares no gradient; tests/losses/test_negative_log_likelihood.py "
    "does"
)
CLASSES = "it counts the rows or the classes: the same numbers each time, and `previous` keeps nothing of another shape"
ROW_BY_ROW = "given has the weight of each row once, and zeros: its sum is that of the weights"
SHARE = "return in_shape(-given / (total + (total == 0)), shape)"
SMOOTH = "return (clipped * (distance - clipped / 2) / self.beta, difference)"
HUBER = "return (clipped * (distance - clipped / 2), difference)"

ONE_ROW_EACH = "a prediction of a net has a row for each label; tests/losses/test_multi_margin.py has one without a batch"
ONE_LABEL_EACH = "the target of a net has one dimension, and ravel leaves it; tests/losses/test_multi_margin.py has one without"

PLACES = "places = (order.T + np.arange(0, num_rows * num_classes, num_classes)).T"
BEHIND = "num_behind = has_ordered.sum(axis=1, keepdims=True) - np.cumsum(has_ordered, axis=1)"
ORDER = "order = np.lexsort((-has, -score))"
ORDERED = "ordered, has_ordered = (score.take(places), has.take(places))"
GAPS = "term = (ordered[:, :-1] - ordered[:, 1:]) * num_pairs[:, :-1] / num_classes"
SAME_ORDER = "all numbers grow alike, and so their order stays"
SAME_GAPS = "all scores grow alike, and only their differences count"
ROWS_OF_LABELS = "a net puts out rows; tests/losses/test_multi_label_margin.py has a prediction without a batch"


AS_NEVER = "NEVER stands for minus infinity: the exp of all that it is added to is 0, and so it is with a number of its size"
OF_ARRAY = "a Python number takes the dtype of the array or number that it meets"
TAKEN_OFF = "a number that is taken off all states of an example and a time is added to the total again"
CANCELS = "a factor of all paths of an example and a time cancels in their shares; the digits that it may cost are in tests/losses/test_ctc.py"
FAR_APART = "without a path the largest is NEVER or a multiple of it, else more than 1e30 above it: each bound in between tells them apart"
REFUSED = "without zero_infinity, a target without a path is refused; tests/losses/test_ctc.py hands one to forward, which is inf"
NO_ROWS = "no batch of the check is empty; tests/losses/test_edge_shapes.py has such ones"

ALL_BLANK = "all of it is the blank, and `previous` keeps nothing of another shape"
STATES = "state = np.full_like(target, self.blank, shape=(len(target), 2 * target.shape[1] + 1))"
LAST_AXIS = "there are three axes: the last one is axis 2"

LARGER = "{} * 1.001", "{} * 2"
ANY = *LARGER, "{} + 1e-08"
SKIP = "skip = np.full_like(prediction, never, shape=(num_rows, num_states + 2))"
SKIP_TWO = "skip[:, 2:-2] = np.where(state[:, 2:] != state[:, :-2], 0, never)"
END = "end = np.where((num_behind == 0) | (num_behind == 1), prediction.dtype.type(0), never)"
AT = "at = np.maximum(np.moveaxis(np.take_along_axis(rows, state[:, :, np.newaxis], axis=1), 2, 0), never)"
ALPHA = "alpha = np.full_like(prediction, never, shape=(len(at), num_rows, num_states + 2))"
WAYS = "ways = (before[:, 2:], before[:, 1:-1], before[:, :-2] + skip[:, :-2])"
HAS_PATH = "has_path = ~(largest <= never / 2)"
CTC_SAVED = "saved = Saved(prediction.shape, state, skip, end, at, alpha[:, :, 2:], has_path, share)"
NO_PATH = "prediction.dtype.type(0 if self.zero_infinity else np.inf)"
CTC_LOSS = "return ((share * np.where(has_path, cost, of_none)).sum(), saved)"
AFTER = "after = np.full_like(skip, NEVER)"
BEHIND_IT = "after[:, :-2] = beta[time + 1] + at[time + 1]"
BETA = "beta[time] = _logsumexp(after[:, :-2], after[:, 1:-1], after[:, 2:] + skip[:, 2:])"
BETA_OFF = "beta[time] -= beta[time].max(axis=1, keepdims=True)"
PATHS = "paths = np.exp(together - together.max(axis=2, keepdims=True))"
#: For a method and a line of CTCLoss: its parts, what they become, and the proof.
CTC: tuple[tuple[str, str, str, tuple[str, ...], str], ...] = (
    ("forward", "never = prediction.dtype.type(NEVER)", "prediction.dtype.type(NEVER)", ANY, AS_NEVER),
    ("forward", "never = prediction.dtype.type(NEVER)", "NEVER", ANY, AS_NEVER),
    ("forward", "never = prediction.dtype.type(NEVER)", "prediction.dtype.type(NEVER)", ("NEVER",), OF_ARRAY),
    ("forward", SKIP, SKIP.removeprefix("skip = "), ANY, AS_NEVER),
    ("forward", SKIP, "never", ANY, AS_NEVER),
    ("forward", SKIP_TWO, SKIP_TWO.removeprefix("skip[:, 2:-2] = "), LARGER, AS_NEVER),
    ("forward", SKIP_TWO, "never", ANY, AS_NEVER),
    ("forward", END, END.removeprefix("end = "), LARGER, AS_NEVER),
    ("forward", END, "(num_behind == 0) | (num_behind == 1)", ("(num_behind == 1) | (num_behind == 0)",), COMMUTES),
    ("forward", END, "prediction.dtype.type(0)", ("-{}", *LARGER), "it is 0, and so are its multiples"),
    ("forward", END, "prediction.dtype.type(0)", ("0",), OF_ARRAY),
    ("forward", END, "never", ANY, AS_NEVER),
    ("forward", AT, AT.removeprefix("at = np.maximum(").removesuffix(", never)") + ", never", (AT.removeprefix("at = np.maximum(").removesuffix(", never)").join(("never, ", "")),), COMMUTES),
    ("forward", AT, "never", ANY, AS_NEVER),
    ("forward", ALPHA, ALPHA.removeprefix("alpha = "), ANY, AS_NEVER),
    ("forward", ALPHA, "never", ANY, AS_NEVER),
    ("forward", "total = alpha[0].max(axis=1)", "alpha[0].max(axis=1)", ("-{}", *ANY), TAKEN_OFF),
    ("forward", "total = alpha[0].max(axis=1)", "alpha[0]", ("({} * 1.001)", "({} * 2)", "({} + 1e-08)", "at[0]"), TAKEN_OFF),
    ("forward", "total = alpha[0].max(axis=1)", "alpha", ("({} * 1.001)", "({} * 2)", "({} + 1e-08)"), TAKEN_OFF),
    ("forward", WAYS, "skip[:, :-2]", LARGER, AS_NEVER),
    ("forward", WAYS, "skip", ("({} * 1.001)", "({} * 2)"), AS_NEVER),
    ("forward", "peak = alpha[time].max(axis=1)", "alpha[time].max(axis=1)", ("-{}", *ANY), TAKEN_OFF),
    ("forward", "peak = alpha[time].max(axis=1)", "alpha[time]", ("({} * 1.001)", "({} * 2)", "({} + 1e-08)", "at[time]"), TAKEN_OFF),
    ("forward", "peak = alpha[time].max(axis=1)", "alpha", ("({} * 1.001)", "({} * 2)", "({} + 1e-08)"), TAKEN_OFF),
    ("forward", "at_the_end = alpha[-1, :, 2:] + end", "+ end", LARGER, AS_NEVER),
    ("forward", HAS_PATH, "largest <= never / 2", (
        *("largest < never / 2", "largest * 1.001 <= never / 2", "largest * 2 <= never / 2", "largest + 1e-08 <= never / 2"),
        *("largest <= never / 2 * 1.001", "largest <= never / 2 * 2", "largest <= never / 2 + 1e-08", "largest <= never"),
        *("largest <= never * 1.001 / 2", "largest <= never * 2 / 2", "largest <= (never + 1e-08) / 2"),
        *("largest <= never / (2 * 1.001)", "largest <= never / (2 * 2)", "largest <= never / (2 + 1e-08)"),
    ), FAR_APART),
    ("forward", "share = share / np.maximum(num_labels, 1).astype(cost.dtype) / num_rows", "num_labels, 1", ("1, num_labels",), COMMUTES),
    ("forward", CTC_SAVED, "skip", LARGER, AS_NEVER),
    ("forward", CTC_SAVED, "end", ANY, AS_NEVER),
    ("forward", CTC_SAVED, " at", ("{} + 1e-08",), CANCELS),
    ("forward", CTC_SAVED, "alpha[:, :, 2:]", ("{} + 1e-08",), CANCELS),
    ("forward", CTC_SAVED, "alpha", ("({} + 1e-08)",), CANCELS),
    ("forward", "self.reduction == 'mean' and (not num_rows)", "self.reduction == 'mean' and (not num_rows)", ("False", "self.reduction != 'mean' and (not num_rows)"), NO_ROWS),
    ("forward", f"of_none = {NO_PATH}", NO_PATH, ("-{}", *LARGER), REFUSED),
    ("forward", f"of_none = {NO_PATH}", NO_PATH, ("0 if self.zero_infinity else np.inf",), OF_ARRAY),
    ("forward", f"of_none = {NO_PATH}", "0 if self.zero_infinity else np.inf", ("0",), REFUSED),
    ("forward", f"of_none = {NO_PATH}", "np.inf", ("-{}", *ANY), REFUSED),
    ("forward", CTC_LOSS, "of_none", ("-{}", *LARGER), REFUSED),
    ("states", STATES, STATES.removeprefix("state = "), ("previous(self, {})",), ALL_BLANK),
    ("backward", "beta[-1] = end", "end", LARGER, AS_NEVER),
    ("backward", "beta[-1] = end", "end", ("{} + 1e-08",), CANCELS),
    ("backward", AFTER, AFTER.removeprefix("after = "), ANY, AS_NEVER),
    ("backward", AFTER, "NEVER", ANY, AS_NEVER),
    ("backward", BEHIND_IT, "beta[time + 1] + at[time + 1]", (
        *("{} + 1e-08", "beta[time + 1] + 1e-08 + at[time + 1]", "beta[time + 1] + (at[time + 1] + 1e-08)"),
        *("(beta + 1e-08)[time + 1] + at[time + 1]", "beta[time + 1] + (at + 1e-08)[time + 1]"),
    ), CANCELS),
    ("backward", BETA, BETA.removeprefix("beta[time] = "), ("{} + 1e-08",), CANCELS),
    ("backward", BETA, "after[:, :-2], after[:, 1:-1]", ("after[:, 1:-1], after[:, :-2]",), COMMUTES),
    ("backward", BETA, "skip[:, 2:]", LARGER, AS_NEVER),
    ("backward", BETA, "skip", ("({} * 1.001)", "({} * 2)"), AS_NEVER),
    ("backward", BETA_OFF, BETA_OFF, ("pass", BETA_OFF.replace("-=", "+=")), CANCELS),
    ("backward", BETA_OFF, "axis=1", ("axis=None",), CANCELS),
    ("backward", BETA_OFF, "beta[time].max(axis=1, keepdims=True)", ("-{}", *ANY, "previous(self, {})"), CANCELS),
    ("backward", BETA_OFF, "beta[time].max", ("beta.T[time].max", "previous(self, beta)[time].max", "(beta[time] * 1.001).max", "(beta[time] * 2).max", "(beta[time] + 1e-08).max", "previous(self, beta[time]).max", "(beta * 1.001)[time].max", "(beta * 2)[time].max", "(beta + 1e-08)[time].max", "at[time].max"), CANCELS),
    ("backward", "together = alpha + beta", "alpha + beta", ("{} + 1e-08", "alpha + 1e-08 + beta", "alpha + (beta + 1e-08)"), CANCELS),
    ("backward", PATHS, PATHS.removeprefix("paths = "), ("-{}", *LARGER), CANCELS),
    ("backward", PATHS, "together -", ("together + 1e-08 -",), CANCELS),
    ("backward", PATHS, "together - together.max(axis=2, keepdims=True)", ("{} + 1e-08",), CANCELS),
    ("backward", PATHS, "together.max(axis=2, keepdims=True)", ("({} + 1e-08)",), CANCELS),
    ("backward", PATHS, "- together.max", ("- (together + 1e-08).max",), CANCELS),
    ("backward", PATHS, "axis=2", ("axis=-1",), LAST_AXIS),
    ("backward", "posterior = paths / paths.sum(axis=2, keepdims=True)", "axis=2", ("axis=-1",), LAST_AXIS),
)

#: The proof, as in survivors.py.
LOSSES: dict[tuple[str, str, str], str] = {
    ("HuberLoss.forward", SUM, "return (term.sum() / num_terms, saved)"): NO_TERMS,
    ("HuberLoss.forward", SUM, SUM.replace("term.sum()", "term.T.sum()")): IN_ANY_ORDER,
    **{
        (f"{name}.term", "distance = np.abs(difference)", line): proof
        for name in ("HuberLoss", "SmoothL1Loss")
        for line, proof in (
            ("distance = np.abs(difference).T", IN_ANY_ORDER),
            ("distance = np.abs(difference.T)", IN_ANY_ORDER),
            ("distance = np.abs(-difference)", MAGNITUDE),
        )
    },
    ("HuberLoss.term", "clipped = np.minimum(distance, self.delta)", "clipped = np.minimum(self.delta, distance)"): COMMUTES,
    ("SmoothL1Loss.term", "clipped = np.minimum(distance, self.beta)", "clipped = np.minimum(self.beta, distance)"): COMMUTES,
    ("SmoothL1Loss.term", SMOOTH, "return ((clipped * (distance - clipped / 2) / self.beta).T, difference)"): IN_ANY_ORDER,
    ("SmoothL1Loss.term", SMOOTH, "return ((clipped * (distance - clipped / 2)).T / self.beta, difference)"): IN_ANY_ORDER,
    **{
        (f"SmoothL1Loss.{method}", "not self.beta", mutated): NOT_ZERO
        for method in ("term", "derivative")
        for mutated in ("False", "not -self.beta", "not self.beta * 1.001", "not self.beta * 2", "not self.beta + 1e-08")
    },
    **{
        ("GaussianNLLLoss.term", GAUSS, GAUSS.replace(part, f"({part}).T")): IN_ANY_ORDER
        for part in (
            "difference * difference / self.var / 2 + self.constant()", "difference * difference / self.var / 2",
            "difference * difference / self.var", "difference * difference",
        )
    },
    **{
        ("HingeEmbeddingLoss.term", HINGE, HINGE.replace(part, changed)): proof
        for part, changed, proof in (
            ("self.margin - prediction, 0))", "self.margin - prediction, 0)).T", IN_ANY_ORDER),
            ("np.maximum(self.margin - prediction, 0)", "np.maximum(0, self.margin - prediction)", COMMUTES),
            *(("(prediction, target)", f"(prediction, target{change})", LABELS) for change in (" * 1.001", " * 2", " + 1e-08")),
            *(("target > 0", changed, LABELS) for changed in POSITIVE),
        )
    },
    **{
        ("HingeEmbeddingLoss.derivative", HINGE_SLOPE, HINGE_SLOPE.replace("target > 0", changed)): LABELS
        for changed in POSITIVE
    },
    ("SoftMarginLoss.term", "exponential = np.exp(-np.abs(lack))", "exponential = np.exp(-np.abs(-lack))"): MAGNITUDE,
    ("SoftMarginLoss.term", "exponential = np.exp(-np.abs(lack))", "exponential = np.exp(-np.abs(prediction))"): LABELS,
    **{
        ("SoftMarginLoss.term", SOFT_MARGIN, SOFT_MARGIN.replace(part, changed)): proof
        for part, changed, proof in (
            ("np.maximum(lack, 0) + np.log1p(exponential)", "(np.maximum(lack, 0) + np.log1p(exponential)).T", IN_ANY_ORDER),
            ("np.maximum(lack, 0)", "np.maximum(0, lack)", COMMUTES),
            ("(target, lack,", "(target, lack * 1.001,", SIGN_ONLY),
            ("(target, lack,", "(target, lack * 2,", SIGN_ONLY),
        )
    },
    **{
        ("SoftMarginLoss.derivative", WRONG, WRONG.replace("lack > 0", changed)): proof
        for changed, proof in (
            ("lack >= 0", "at 0 the exponential is 1"),
            ("lack * 1.001 > 0", SIGN_ONLY),
            ("lack * 2 > 0", SIGN_ONLY),
        )
    },
    (
        "PoissonNLLLoss.term", "term = term + np.where(target > 1, stirling, 0)",
        "term = term + np.where(count > 1, stirling, 0)",
    ): "maximum(target, 1) > 1 exactly where target > 1",
    ("HuberLoss.term", HUBER, "return ((clipped * (distance - clipped / 2)).T, difference)"): IN_ANY_ORDER,
    **{
        ("L1Loss.term", ERROR, line): proof
        for line, proof in (
            ("return (np.abs(difference).T, difference)", IN_ANY_ORDER),
            ("return (np.abs(difference.T), difference)", IN_ANY_ORDER),
            ("return (np.abs(-difference), difference)", MAGNITUDE),
            ("return (np.abs(difference), difference * 1.001)", SIGN_ONLY),
            ("return (np.abs(difference), difference * 2)", SIGN_ONLY),
        )
    },
    **{
        ("L1Loss.derivative", line, line.replace(number, f"{number} * {factor}")): SIGN_ONLY
        for line, number in (("difference = saved", "saved"), ("return np.sign(difference)", "difference"))
        for factor in (1.001, 2)
    },
    (
        "NLLLoss.forward", "place = np.arange(0, num_rows * num_classes, num_classes) + label",
        "place = previous(self, np.arange(0, num_rows * num_classes, num_classes)) + label",
    ): CLASSES,
    ("NLLLoss.backward", "total = row_weight.sum()", "total = given.sum()"): ROW_BY_ROW,
    **{
        ("NLLLoss.backward", SHARE, SHARE.replace("(total + (total == 0))", divisor)): NOTHING_COUNTS
        for divisor in (
            *("total", "(total - (total == 0))", "(total + (-total == 0))", "(total + (total * 1.001 == 0))"),
            *("(total + (total * 2 == 0))", "(total + (total + 1e-08 == 0))"),
        )
    },
    ("MultiMarginLoss.forward", "rows, label = (as_rows(prediction), target.ravel())", "rows, label = (prediction, target.ravel())"): ONE_ROW_EACH,
    ("MultiMarginLoss.forward", "is_label = np.arange(num_classes) == label[:, np.newaxis]", "is_label = np.arange(num_classes) == target[:, np.newaxis]"): ONE_LABEL_EACH,
    ("MultiMarginLoss.forward", "own = rows.take(np.arange(0, num_rows * num_classes, num_classes) + label)[:, np.newaxis]", "own = rows.take(previous(self, np.arange(0, num_rows * num_classes, num_classes)) + label)[:, np.newaxis]"): CLASSES,
    ("MultiMarginLoss.forward", "own = rows.take(np.arange(0, num_rows * num_classes, num_classes) + label)[:, np.newaxis]", "own = rows.take(np.arange(0, num_rows * num_classes, num_classes) + target)[:, np.newaxis]"): ONE_LABEL_EACH,
    ("MultiMarginLoss.forward", "lack = np.where(is_label, 0, np.maximum(self.margin - own + rows, 0))", "lack = np.where(is_label, 0, np.maximum(0, self.margin - own + rows))"): COMMUTES,
    ("MultiMarginLoss.forward", "row_weight = self._row_weight(label, rows.dtype)", "row_weight = self._row_weight(target, rows.dtype)"): ONE_LABEL_EACH,
    ("MultiMarginLoss.forward", "term = row_weight * (lack if self.p == 1 else lack * lack) / num_classes", "term = (row_weight * (lack if self.p == 1 else lack * lack) / num_classes).T"): IN_ANY_ORDER,
    ("MultiMarginLoss.forward", "term = row_weight * (lack if self.p == 1 else lack * lack) / num_classes", "term = (row_weight * (lack if self.p == 1 else lack * lack)).T / num_classes"): IN_ANY_ORDER,
    ("MultiMarginLoss.forward", "return (term.sum() / num_rows if num_rows else rows.dtype.type(np.nan), saved)", "return (term.sum() / num_rows, saved)"): NO_TERMS,
    ("MultiMarginLoss.forward", "return (term.sum() / num_rows if num_rows else rows.dtype.type(np.nan), saved)", "return (term.T.sum() / num_rows if num_rows else rows.dtype.type(np.nan), saved)"): IN_ANY_ORDER,
    ("MultiMarginLoss.forward", "return (term.sum(), saved)", "return (term.T.sum(), saved)"): IN_ANY_ORDER,
    ("MultiMarginLoss.backward", "slope = (lack > 0).astype(lack.dtype) if self.p == 1 else 2 * lack", "slope = (lack * 1.001 > 0).astype(lack.dtype) if self.p == 1 else 2 * lack"): SIGN_ONLY,
    ("MultiMarginLoss.backward", "slope = (lack > 0).astype(lack.dtype) if self.p == 1 else 2 * lack", "slope = (lack * 2 > 0).astype(lack.dtype) if self.p == 1 else 2 * lack"): SIGN_ONLY,
    **{
        ("MultiLabelMarginLoss.forward", ORDER, f"order = np.lexsort(({keys}))"): SAME_ORDER
        for keys in (
            *("-has * 1.001, -score", "-has * 2, -score", "-(has * 1.001), -score", "-(has * 2), -score"),
            *("-has, -score * 1.001", "-has, -score * 2", "-has, -(score * 1.001)", "-has, -(score * 2)"),
            *("-has + 1e-08, -score", "-(has + 1e-08), -score", "-has, -score + 1e-08", "-has, -(score + 1e-08)"),
        )
    },
    ("MultiLabelMarginLoss.forward", ORDER, "order = np.lexsort((-prediction, -score))"): "of two equal scores, that of a class which the example has comes from a prediction that is 1 higher",
    **{
        ("MultiLabelMarginLoss.forward", "score = as_rows(prediction) - has", line): proof
        for line, proof in (
            ("score = prediction - has", ROWS_OF_LABELS),
            ("score = as_rows(prediction) - (has + 1e-08)", SAME_GAPS),
            ("score = as_rows(prediction) - has + 1e-08", SAME_GAPS),
        )
    },
    ("MultiLabelMarginLoss.forward", "has = as_rows(target)", "has = target"): ROWS_OF_LABELS,
    **{
        ("MultiLabelMarginLoss.forward", ORDERED, f"ordered, has_ordered = ({scores}, has.take(places))"): SAME_GAPS
        for scores in ("score.take(places) + 1e-08", "(score + 1e-08).take(places)")
    },
    ("MultiLabelMarginLoss.forward", PLACES, PLACES.replace("np.arange(0, num_rows * num_classes, num_classes)", "previous(self, np.arange(0, num_rows * num_classes, num_classes))")): CLASSES,
    **{
        ("MultiLabelMarginLoss.forward", BEHIND, BEHIND.replace("has_ordered.sum", f"{labels}.sum")): IN_ANY_ORDER
        for labels in ("has", "target")
    },
    ("MultiLabelMarginLoss.forward", GAPS, "term = ((ordered[:, :-1] - ordered[:, 1:]) * num_pairs[:, :-1] / num_classes).T"): IN_ANY_ORDER,
    ("MultiLabelMarginLoss.forward", GAPS, "term = ((ordered[:, :-1] - ordered[:, 1:]) * num_pairs[:, :-1]).T / num_classes"): IN_ANY_ORDER,
    ("MultiLabelMarginLoss.forward", "return (term.sum() / num_rows if num_rows else score.dtype.type(np.nan), saved)", "return (term.sum() / num_rows, saved)"): NO_TERMS,
    ("MultiLabelMarginLoss.forward", "return (term.sum() / num_rows if num_rows else score.dtype.type(np.nan), saved)", "return (term.T.sum() / num_rows if num_rows else score.dtype.type(np.nan), saved)"): IN_ANY_ORDER,
    ("MultiLabelMarginLoss.forward", "return (term.sum(), saved)", "return (term.T.sum(), saved)"): IN_ANY_ORDER,
    **{
        (f"CTCLoss.{method}", line, line.replace(part, change.format(part))): proof
        for method, line, part, changes, proof in CTC
        for change in changes
    },
}
