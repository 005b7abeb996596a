"""Mutants that no check can catch, because they compute the same: each with the proof."""

# ruff: noqa: E501 - a line of the package is cited as it is

from __future__ import annotations

from benchmarks.mutation.survivors_of_activations import ACTIVATIONS, COMMUTES, SAME_SIGN
from benchmarks.mutation.survivors_of_images import IMAGES, OF_SHAPE
from benchmarks.mutation.survivors_of_losses import LOSSES
from benchmarks.mutation.survivors_of_normalizations import NORMALIZATIONS
from benchmarks.mutation.survivors_of_optimizers import OPTIMIZERS, ORDER, ZERO
from benchmarks.mutation.survivors_of_recurrent import EACH_ROW, LEFT_OVER, RECURRENT, SWAPPED, WRITTEN

MASK = "input > 0 exactly where maximum(input, 0) > 0"
EVEN = "output is only multiplied by itself, and (-output) * (-output) = output * output"
COUNT = "arange depends only on the number of rows, and `previous` keeps nothing of another shape"
CHECKED = "the check computes nothing: it raises no error for an input of the right dtype"
NO_NOISE = "no layer of these nets draws; one that does raises an AttributeError without its noise"
NO_LENGTHS = "no layer of these nets heeds lengths; one that does raises without them: tests/trainer/test_lengths.py"
BEGINS_LATER = "the call only lets the sum over processes begin early: what hasn't begun then begins at the call with -1"
SHAPE = "the branch of a net that fits keeps the shape, and then output_shape raises nothing"
ANY_CLASS = (
    "the order of the classes stays, but for ties by rounding, and whichever of the "
    "tied ones is subtracted, the logsumexp is the same"
)
ONE_SHARE = "without smoothing an index is a share of 1 in one class, and the formula of all classes adds 0 for the others"
SOFTMIN = "exponential = np.exp(smallest(input, self.dim) - input)"
SHIFT = "a number that is added to all predictions leaves their softmax as it is"
IGNORED = (
    "a row that doesn't count is multiplied by 0, whichever class its label points at; labels that point at none are in "
    "tests/losses/test_cross_entropy.py"
)
ZERO_TOTAL = (
    "where the total is 0, the loss is not a number, and the check compares no gradient; tests/losses/test_cross_entropy.py "
    "does"
)
ALL_COUNT = "no example ignores a class without weights: every row counts there, in each step"
NUMBER = "only an array without dimensions takes another way, which no net has; tests/layers/test_edge_shapes.py does"
AS_SAVED = "forward saves the derivative, and `derivative` returns it as it is"
EMPTY = (
    "only arrays without elements take another way, in which the check compares nothing; tests/losses/test_edge_shapes.py "
    "and tests/layers/test_edge_shapes.py have them"
)

OFFSET = "offset(scores.shape[-1], scores.dtype, self.is_causal, self.window, num_slopes)"
QUOTIENT = "the exponentials and their sum are scaled by the same factor, which cancels in their quotient"
RAVELED = "all but one of its dimensions are 1: its numbers have the same order, whatever the order of the dimensions"
FLOORED = "the quotient is rounded down: for fewer than 1,000 numbers, a thousandth more changes nothing, nor does 1e-8"
SHIFTED = "(x + e) - mean(x + e) = x - mean(x): the centered numbers are the same for any number e"
SHAPE_CHECKED = "the check computes nothing: it raises no error for an input of a shape that the layer takes"
NOT_EMPTY = "a layer without buffers is not asked to update them, and no batch is empty; tests/layers/test_edge_shapes.py has those"
NO_BUFFERS = "a layer without buffers is not asked to update them"
OTHER_MAP = "the two maps run in turn, their sizes differ, and `previous` keeps nothing of another shape"
ALL_SCORES = "all scores of a row grow by the same amount, and so does the largest, which is subtracted"
ROWS_OF_ZERO = "each row of the gradient of the scores adds up to 0: a number that is added to all keys adds nothing"
THREE_SIGNS = (
    "query and key both change their sign, and so their product doesn't; with value the gradient of the scores does, and "
    "so that one's product with key or query doesn't"
)

GELU_OUTPUT = "return (np.multiply(input, probability, out=probability), derivative)"
GELU_SLOPE = "slope = np.multiply(square, math.sqrt(8 / math.pi) * 3 * 0.044715, out=square)"
INSTANCE_ROWS = "return (normalized, std, mean, variance)"
INSTANCE_MEANS = "means = (rows.reshape(-1, self.num_features).mean(axis=0) for rows in (mean, unbiased))"
MASKED = "kept = probability if mask is None else np.multiply(probability, mask[part], out=probability)"
SCORES = "scores = self._scores(query[part], key[part], None if counts is None else counts[part])"
UNSEEN = "scores = np.where((counts & ~counts.mT)[:, np.newaxis], -np.inf, scores)"
CAUSAL = (
    "no time sees a later one, so one that counts sees none that doesn't, whatever stands here; tests/layers/test_attention.py "
    "has layers in which it does"
)
IS_CAUSAL = "the class is causal, so the condition holds; tests/layers/test_attention.py has MultiheadAttention"
IN_PLACE = "scores, exponential and probability are one array, in which each is computed from the one before"
PADDED_ELSEWHERE = (
    "a class with lengths has a method of its own that calls the right one, so no trial of a mistake here has lengths; "
    "tests/layers/test_attention.py has padded sequences, which fail"
)
GRAD_QUERY = "np.matmul(grad_scores, key[part], out=grad_query[part])"

OWN_PROJECTION = "normalized is multiplied by its own projection, so that both change their sign"
OWN_PRODUCT = "each product is that of two numbers of one input, which both change their sign"

#: The proof, by the method, the line, and what became of the line. For an `if`, the line is its condition.
SURVIVORS: dict[tuple[str, str, str], str] = {
    ("Linear.forward", "output = rows(input) @ self.param.weight.T", "output = input @ self.param.weight.T"): EACH_ROW,
    (
        "Linear.backward",
        "grad_input: Array = rows(grad_output) @ self.param.weight",
        "grad_input: Array = grad_output @ self.param.weight",
    ): EACH_ROW,
    ("ReLU.forward", "output = np.maximum(input, 0)", "output = np.maximum(0, input)"): COMMUTES,
    ("ReLU.forward", "return (output, output)", "return (output, output * 1.001)"): SAME_SIGN,
    ("ReLU.forward", "return (output, output)", "return (output, output * 2)"): SAME_SIGN,
    ("ReLU.forward", "return (output, output)", "return (output, input)"): MASK,
    ("ReLU.backward", "output = saved", "output = saved * 1.001"): SAME_SIGN,
    (
        "ReLU.backward",
        "return masked(grad_output, output > 0)",
        "return masked(grad_output, output * 1.001 > 0)",
    ): SAME_SIGN,
    ("ReLU.backward", "output = saved", "output = saved * 2"): SAME_SIGN,
    (
        "ReLU.backward",
        "return masked(grad_output, output > 0)",
        "return masked(grad_output, output * 2 > 0)",
    ): SAME_SIGN,
    ("Tanh.forward", "return (output, output)", "return (output, -output)"): EVEN,
    ("Tanh.derivative", "output = saved", "output = -saved"): EVEN,
    **{
        ("MSELoss.forward", "self.reduction == 'mean' and (not squares.size)", mutated): EMPTY
        for mutated in ("False", "self.reduction != 'mean' and (not squares.size)")
    },
    ("MSELoss.backward", "not difference.size", "False"): EMPTY,
    ("GELU.forward", "not input.ndim", "False"): NUMBER,
    **{
        (f"GELU.{method}", line, line.replace(f"{first}, {second}, ", f"{second}, {first}, ")): SWAPPED
        for method, line, first, second in (
            ("forward", "derivative = np.multiply(input, density, out=density)", "input", "density"),
            ("forward", GELU_OUTPUT, "input", "probability"),
            ("_tanh", GELU_SLOPE, "square", "math.sqrt(8 / math.pi) * 3 * 0.044715"),
        )
    },
    ("GELU.backward", "derivative = self.derivative(saved)", "derivative = saved"): AS_SAVED,
    ("Sequential.forward", "self._check_input(input)", "pass"): CHECKED,
    ("Sequential.forward", "self._check_input(input)", "input"): CHECKED,
    ("Sequential.forward", "self._check_input(input)", "self._check_input(-input)"): CHECKED,
    ("Sequential.forward", "self._check_input(input)", "self._check_input(input * 1.001)"): CHECKED,
    ("Sequential.forward", "self._check_input(input)", "self._check_input(input * 2)"): CHECKED,
    ("Sequential.forward", "self._check_input(input)", "self._check_input(input + 1e-08)"): CHECKED,
    ("Sequential.forward", "self._check_input(input)", "self._check_input(input.T)"): CHECKED,
    ("Sequential.forward", "self._check_input(input)", "self._check_input(previous(self, input))"): CHECKED,
    ("Sequential.forward", "self.bind_noise(input.shape)", "pass"): NO_NOISE,
    ("Sequential.forward", "self.bind_noise(input.shape)", "input.shape"): NO_NOISE,
    (
        "Sequential.forward",
        "output, saved = (self.bind_lengths(input), list[Any]())",
        "output, saved = (input, list[Any]())",
    ): NO_LENGTHS,
    ("Sequential.backward_parameters", "filled(number)", "pass"): BEGINS_LATER,
    ("Sequential.backward_parameters", "filled is not None", "False"): BEGINS_LATER,
    **{
        (f"BatchNorm1d.{method}", f"axes = self._axes({array})", f"axes = self._axes({mutated})"): OF_SHAPE
        for method, array in (("forward", "input"), ("backward", "normalized"))
        for mutated in (f"-{array}", f"{array} * 1.001", f"{array} * 2", f"{array} + 1e-08", f"{array}.T", f"previous(self, {array})")
    },
    **{
        ("BatchNorm1d.forward", "return (self._affine(normalized), (normalized, deviation, mean, variance))", f"return (self._affine(normalized), (normalized, deviation, {mutated}))"): RAVELED
        for mutated in ("mean.T, variance", "mean, variance.T")
    },
    **{
        ("BatchNorm1d.update_buffers", "self._move(mean, variance, normalized.size // self.num_features)", f"self._move({mutated})"): proof
        for mutated, proof in (
            ("mean.T, variance, normalized.size // self.num_features", RAVELED),
            ("mean, variance.T, normalized.size // self.num_features", RAVELED),
            ("mean, variance, normalized.size * 1.001 // self.num_features", FLOORED),
            ("mean, variance, (normalized.size + 1e-08) // self.num_features", FLOORED),
        )
    },
    **{
        ("BatchNorm1d._move", line, mutated): proof
        for line, mutated, proof in (
            ("unbiased = variance * (num_values / (num_values - 1))", "unbiased = (variance * (num_values / (num_values - 1))).T", RAVELED),
            ("unbiased = variance * (num_values / (num_values - 1))", "unbiased = variance.T * (num_values / (num_values - 1))", RAVELED),
            ("self.track_running_stats", "True", NO_BUFFERS),
            ("self._move_running(momentum, mean.ravel(), unbiased.ravel())", "self._move_running(momentum, mean.T.ravel(), unbiased.ravel())", RAVELED),
            ("self._move_running(momentum, mean.ravel(), unbiased.ravel())", "self._move_running(momentum, mean.ravel(), unbiased.T.ravel())", RAVELED),
        )
    },
    **{
        (f"BatchNorm1d.{method}", line, mutated): proof
        for method, line, mutated, proof in (
            ("infer", "self.check_shape(input.shape)", "pass", SHAPE_CHECKED),
            ("infer", "self.check_shape(input.shape)", "input.shape", SHAPE_CHECKED),
            ("_move", "self.track_running_stats and num_values", "True", NOT_EMPTY),
        )
    },
    **{
        ("InstanceNorm1d.update_buffers", line, mutated): proof
        for line, mutated, proof in (
            ("num_places = normalized.size // len(mean)", "num_places = normalized.size * 1.001 // len(mean)", FLOORED),
            ("num_places = normalized.size // len(mean)", "num_places = (normalized.size + 1e-08) // len(mean)", FLOORED),
            ("unbiased = variance * (num_places / (num_places - 1))", "unbiased = (variance * (num_places / (num_places - 1))).T", RAVELED),
            ("unbiased = variance * (num_places / (num_places - 1))", "unbiased = variance.T * (num_places / (num_places - 1))", RAVELED),
            (INSTANCE_MEANS, INSTANCE_MEANS.replace("(rows.", "(rows.T."), RAVELED),
        )
    },
    ("InstanceNorm1d._normalized_rows", INSTANCE_ROWS, INSTANCE_ROWS.replace("variance", "variance.T")): RAVELED,
    ("BatchNorm1d.infer", "return self.forward(input)[0]", "return self.forward(input + 1e-08)[0]"): SHIFTED,
    ("Residual.forward", "branch.shape != input.shape", "True"): SHAPE,
    ("Residual.infer", "branch.shape != input.shape", "True"): SHAPE,
    ("Residual.forward", "branch.shape != input.shape", "False"): SHAPE,
    ("Residual.infer", "branch.shape != input.shape", "False"): SHAPE,
    ("Residual.forward", "branch.shape != input.shape", "branch.shape == input.shape"): SHAPE,
    ("Residual.infer", "branch.shape != input.shape", "branch.shape == input.shape"): SHAPE,
    ("MSELoss.forward", "squares = difference * difference", "squares = (difference * difference).T"): ORDER,
    (
        "MSELoss.forward",
        "return (squares.mean() if self.reduction == 'mean' else squares.sum(), difference)",
        "return (squares.T.mean() if self.reduction == 'mean' else squares.sum(), difference)",
    ): ORDER,
    (
        "MSELoss.forward",
        "return (squares.mean() if self.reduction == 'mean' else squares.sum(), difference)",
        "return (squares.mean() if self.reduction == 'mean' else squares.T.sum(), difference)",
    ): ORDER,
    (
        "TraceLoss.forward",
        "return ((difference * difference).sum(), difference)",
        "return ((difference * difference).T.sum(), difference)",
    ): ORDER,
    ("CrossEntropyLoss.forward", "rows = as_rows(prediction)", "rows = as_rows(prediction + 1e-08)"): SHIFT,
    (
        "CrossEntropyLoss.forward",
        "largest = starts + rows.argmax(axis=1)",
        "largest = starts + (rows * 2).argmax(axis=1)",
    ): ANY_CLASS,
    ("CrossEntropyLoss.forward", "target.dtype.kind == 'i' and (not self.label_smoothing)", "False"): ONE_SHARE,
    (
        "CrossEntropyLoss.forward",
        "target.dtype.kind == 'i' and (not self.label_smoothing)",
        "target.dtype.kind == 'i' and (not -self.label_smoothing)",
    ): ZERO,
    (
        "CrossEntropyLoss.forward",
        "target.dtype.kind == 'i' and (not self.label_smoothing)",
        "target.dtype.kind == 'i' and (not self.label_smoothing * 2)",
    ): ZERO,
    (
        "CrossEntropyLoss._labels",
        "return (label, counted.astype(dtype))",
        "return (label, previous(self, counted).astype(dtype))",
    ): ALL_COUNT,
    ("CrossEntropyLoss.forward", "rows = as_rows(prediction)", "rows = as_rows(prediction) + 1e-08"): SHIFT,
    (
        "CrossEntropyLoss.forward",
        "starts = np.arange(0, rows.size, rows.shape[1])",
        "starts = previous(self, np.arange(0, rows.size, rows.shape[1]))",
    ): COUNT,
    (
        "CrossEntropyLoss.forward",
        "largest = starts + rows.argmax(axis=1)",
        "largest = previous(self, starts) + rows.argmax(axis=1)",
    ): COUNT,
    (
        "CrossEntropyLoss.forward",
        "largest = starts + rows.argmax(axis=1)",
        "largest = starts + (rows * 1.001).argmax(axis=1)",
    ): ANY_CLASS,
    (
        "CrossEntropyLoss.forward",
        "largest = starts + rows.argmax(axis=1)",
        "largest = starts + (rows + 1e-08).argmax(axis=1)",
    ): ANY_CLASS,
    (
        "CrossEntropyLoss.forward",
        "target.dtype.kind == 'i' and (not self.label_smoothing)",
        "target.dtype.kind == 'i' and (not self.label_smoothing * 1.001)",
    ): ZERO,
    (
        "CrossEntropyLoss.forward",
        "target.dtype.kind == 'i' and (not self.label_smoothing)",
        "target.dtype.kind == 'i' and (not self.label_smoothing + 1e-08)",
    ): ONE_SHARE,
    (
        "CrossEntropyLoss.forward",
        "place, q, total = (starts + label, None, q_at_place.sum())",
        "place, q, total = (previous(self, starts) + label, None, q_at_place.sum())",
    ): COUNT,
    (
        "CrossEntropyLoss.forward",
        "loss = -(q * (shifted - log_sum[:, np.newaxis])).sum()",
        "loss = -(q * (shifted - log_sum[:, np.newaxis])).T.sum()",
    ): ORDER,
    ("CrossEntropyLoss._labels", "label = target.ravel() * counted", "label = target.ravel()"): IGNORED,
    (
        "CrossEntropyLoss.forward",
        "q, total = self._q(target, starts, rows.shape[1], rows.dtype)",
        "q, total = self._q(target, previous(self, starts), rows.shape[1], rows.dtype)",
    ): COUNT,
    (
        "CrossEntropyLoss._q",
        "q.put(starts + label, 1 - self.label_smoothing + smoothed)",
        "q.put(previous(self, starts) + label, 1 - self.label_smoothing + smoothed)",
    ): COUNT,
    **{
        (
            "CrossEntropyLoss.backward",
            "denominator = total + (total == 0) if self.reduction == 'mean' else 1",
            f"denominator = {mutated} if self.reduction == 'mean' else 1",
        ): ZERO_TOTAL
        for mutated in (
            "total + (-total == 0)",
            "total + (total + 1e-08 == 0)",
            "total - (total == 0)",
            "total + (total * 1.001 == 0)",
            "total",
            "total + (total * 2 == 0)",
        )
    },
    (
        "Softmax.forward",
        "exponential = np.exp(input - largest(input, self.dim))",
        "exponential = -np.exp(input - largest(input, self.dim))",
    ): QUOTIENT,
    (
        "Softmax.forward",
        "exponential = np.exp(input - largest(input, self.dim))",
        "exponential = np.exp(input - largest(input, self.dim)) * 1.001",
    ): QUOTIENT,
    (
        "Softmax.forward",
        "exponential = np.exp(input - largest(input, self.dim))",
        "exponential = np.exp(input - largest(input, self.dim)) * 2",
    ): QUOTIENT,
    (
        "Softmax.forward",
        "exponential = np.exp(input - largest(input, self.dim))",
        "exponential = np.exp(input - largest(input, self.dim) + 1e-08)",
    ): QUOTIENT,
    (
        "Softmax.forward",
        "exponential = np.exp(input - largest(input, self.dim))",
        "exponential = np.exp(input + 1e-08 - largest(input, self.dim))",
    ): QUOTIENT,
    (
        "Softmax.forward",
        "exponential = np.exp(input - largest(input, self.dim))",
        "exponential = np.exp(input - largest(input, self.dim) * 1.001)",
    ): QUOTIENT,
    (
        "Softmax.forward",
        "exponential = np.exp(input - largest(input, self.dim))",
        "exponential = np.exp(input - (largest(input, self.dim) + 1e-08))",
    ): QUOTIENT,
    (
        "Softmax.forward",
        "exponential = np.exp(input - largest(input, self.dim))",
        "exponential = np.exp(input - largest(input * 1.001, self.dim))",
    ): QUOTIENT,
    (
        "Softmax.forward",
        "exponential = np.exp(input - largest(input, self.dim))",
        "exponential = np.exp(input - largest(input + 1e-08, self.dim))",
    ): QUOTIENT,
    **{
        ("CausalSelfAttention._map", "output = rows(input) @ weight.T", f"output = {mutated}"): proof
        for mutated, proof in {
            "input @ weight.T": EACH_ROW,
            "previous(self, rows(input) @ weight.T)": OTHER_MAP,
            "rows(input) @ previous(self, weight.T)": OTHER_MAP,
            "rows(input) @ previous(self, weight).T": OTHER_MAP,
        }.items()
    },
    ("CausalSelfAttention._map", "output += bias", "output += previous(self, bias)"): OTHER_MAP,
    **{
        (
            "CausalSelfAttention._map",
            "return output.reshape(*input.shape[:-1], len(weight))",
            f"return {mutated}",
        ): OTHER_MAP
        for mutated in (
            "previous(self, output.reshape(*input.shape[:-1], len(weight)))",
            "previous(self, output).reshape(*input.shape[:-1], len(weight))",
        )
    },
    **{
        (
            "CausalSelfAttention._map_backward",
            "np.matmul(rows(grad_output).T, rows(input), out=grad_weight)",
            f"np.matmul({mutated}, rows(input), out=grad_weight)",
        ): OTHER_MAP
        for mutated in (
            "previous(self, rows(grad_output).T)",
            "previous(self, rows(grad_output)).T",
            "rows(previous(self, grad_output)).T",
        )
    },
    (
        "CausalSelfAttention._map_backward",
        "sum_rows(grad_output, out=grad_bias)",
        "sum_rows(previous(self, grad_output), out=grad_bias)",
    ): OTHER_MAP,
    **{
        ("CausalSelfAttention._scores", "scores: Array = query @ key.mT.copy()", f"scores: Array = {mutated}"): proof
        for mutated, proof in {
            "query @ key.mT.copy() + 1e-08": ALL_SCORES,
            "query @ (key.mT.copy() + 1e-08)": ALL_SCORES,
            "query @ (key.mT + 1e-08).copy()": ALL_SCORES,
            "query @ (key + 1e-08).mT.copy()": ALL_SCORES,
        }.items()
    },
    ("CausalSelfAttention._exponential", "scores -= largest", "scores -= largest + 1e-08"): QUOTIENT,
    **{
        ("CausalSelfAttention._exponential", "return np.exp(scores, out=scores)", f"return {mutated}"): QUOTIENT
        for mutated in (
            "-np.exp(scores, out=scores)",
            "np.exp(scores, out=scores) * 1.001",
            "np.exp(scores, out=scores) * 2",
            "np.exp(scores + 1e-08, out=scores)",
        )
    },
    ("CausalSelfAttention._scores", "return scores", "return scores + 1e-08"): ALL_SCORES,
    **{
        ("CausalSelfAttention._scores", f"scores += {OFFSET}", f"scores += {mutated}"): proof
        for mutated, proof in {
            f"{OFFSET} + 1e-08": ALL_SCORES,
            f"previous(self, {OFFSET})": OF_SHAPE,
        }.items()
    },
    (
        "CausalSelfAttention.backward",
        "mean = np.vecdot(probability, grad_probability)[..., np.newaxis]",
        "mean = np.vecdot(grad_probability, probability)[..., np.newaxis]",
    ): SWAPPED,
    **{
        (
            "CausalSelfAttention.forward",
            "output, saved = self._attend(input, self.noise.mask if self.dropout else None)",
            f"output, saved = self._attend(input, self.noise.mask if {dropout} else None)",
        ): ZERO
        for dropout in ("-self.dropout", "self.dropout * 1.001", "self.dropout * 2")
    },
    (
        "CausalSelfAttention._attend",
        "np.max(scores, axis=-1, keepdims=True, out=largest[part])",
        "np.max(scores + 1e-08, axis=-1, keepdims=True, out=largest[part])",
    ): QUOTIENT,
    **{
        (
            "CausalSelfAttention.backward",
            "query, key, value = self._split(projected)",
            f"query, key, value = {mutated}",
        ): THREE_SIGNS
        for mutated in ("self._split(-projected)",)
    },
    (
        "CausalSelfAttention._attend",
        "return (self._map('out_proj', joined), _Memory(input, projected, largest, total, joined, mask, counts))",
        "return (self._map('out_proj', joined), _Memory(input, -projected, largest, total, joined, mask, counts))",
    ): THREE_SIGNS,
    **{
        (f"CausalSelfAttention.{method}", line, line.replace(written, mutated)): proof
        for method, line, written, mutated, proof in (
            ("_attend", MASKED, "(probability, mask[part],", "(mask[part], probability,", SWAPPED),
            (
                *("backward", "grad_probability = grad_kept if mask is None else np.multiply(grad_kept, mask[part], out=grad_kept)"),
                *("(grad_kept, mask[part],", "(mask[part], grad_kept,", SWAPPED),
            ),
            *((method, SCORES, "None if counts is None else counts[part]", "None", PADDED_ELSEWHERE) for method in ("backward", "_attend")),
            *(
                (method, line, "kept = probability", f"kept = {same}", IN_PLACE)
                for method, line in (("backward", "kept = probability if mask is None else probability * mask[part]"), ("_attend", MASKED))
                for same in ("scores", "exponential")
            ),
            ("_scores", "counts is not None", "counts is not None", "False", CAUSAL),
            ("_scores", "self.is_causal or self.window is not None or num_slopes", "self.is_causal or self.window is not None or num_slopes", "True", IS_CAUSAL),
            ("_scores", "self.is_causal or self.window is not None or num_slopes", "is not None", "is None", IS_CAUSAL),
            ("_scores", UNSEEN, "(counts & ~counts.mT)[:, np.newaxis]", "previous(self, (counts & ~counts.mT)[:, np.newaxis])", CAUSAL),
            ("_scores", UNSEEN, "counts & ~counts.mT", "~counts.mT & counts", CAUSAL),
            ("_scores", UNSEEN, UNSEEN.removeprefix("scores = "), UNSEEN.removeprefix("scores = ") + " + 1e-08", ALL_SCORES),
            ("_scores", UNSEEN, ", scores)", ", scores + 1e-08)", ALL_SCORES),
            *(
                ("_scores", UNSEEN, "-np.inf", mutated, "a multiple of an infinity is the same one, and so is its sum with a number")
                for mutated in ("-np.inf * 1.001", "-np.inf * 2", "-np.inf + 1e-08", "-(np.inf * 1.001)", "-(np.inf * 2)", "-(np.inf + 1e-08)")
            ),
            ("_scores", UNSEEN, "(counts & ~counts.mT)", "previous(self, counts & ~counts.mT)", CAUSAL),
            ("_add_up", "grad is not shared", "grad is not shared", "True", "an array that no heads share is written onto itself"),
            ("_repeated", "array is not shared", "array is not shared", "True", "an array that no heads share is written onto itself"),
            *(
                ("_repeated", "array = self._repeatable(shared)", "self._repeatable(shared)", mutated.format("self._repeatable(shared)"), WRITTEN)
                for mutated in ("-{}", "{} * 1.001", "{} * 2", "{} + 1e-08", "previous(self, {})")
            ),
            *(
                ("_repeated", "array = self._repeatable(shared)", "shared", mutated, "another array than `shared` is written before it is read")
                for mutated in ("-shared", "shared * 1.001", "shared * 2", "shared + 1e-08", "previous(self, shared)")
            ),
            ("backward", GRAD_QUERY, "key[part]", "key[part] + 1e-08", ROWS_OF_ZERO),
            ("backward", GRAD_QUERY, "key[part]", "(key + 1e-08)[part]", ROWS_OF_ZERO),
        )
    },
    (
        "CausalSelfAttention.backward",
        "grad_joined = rows(grad_output) @ vars(self.param)['out_proj.weight']",
        "grad_joined = grad_output @ vars(self.param)['out_proj.weight']",
    ): EACH_ROW,
    (
        "CausalSelfAttention.backward",
        "grad_input: Array = rows(grad_projected) @ self.param.in_proj_weight",
        "grad_input: Array = grad_projected @ self.param.in_proj_weight",
    ): EACH_ROW,
    **{
        ("CrossEntropyLoss.forward", "q *= total != 0", f"q *= {mutated} != 0"): proof
        for mutated, proof in {
            "-total": ZERO,
            "total * 1.001": ZERO,
            "total * 2": ZERO,
            "total + 1e-08": ZERO_TOTAL,
        }.items()
    },
    ("CrossEntropyLoss.forward", "q *= total != 0", "pass"): ZERO_TOTAL,
    ("CrossEntropyLoss.forward", "q *= total != 0", "q /= total != 0"): ZERO_TOTAL,
    **{
        ("Softmin.forward", SOFTMIN, SOFTMIN.replace(part, changed, 1)): QUOTIENT
        for part, changed in (
            ("np.exp", "-np.exp"),
            ("- input)", "- input) * 1.001"),
            ("- input)", "- input) * 2"),
            ("- input)", "- input + 1e-08)"),
            ("self.dim) -", "self.dim) * 1.001 -"),
            ("self.dim) -", "self.dim) + 1e-08 -"),
            ("- input)", "- (input + 1e-08))"),
            ("smallest(input,", "smallest(input * 1.001,"),
            ("smallest(input,", "smallest(input + 1e-08,"),
        )
    },
    **{
        ("LogSoftmax.forward", "shifted = input - largest(input, self.dim)", f"shifted = {changed}"): SHIFT
        for changed in (
            "input - largest(input, self.dim) + 1e-08",
            "input + 1e-08 - largest(input, self.dim)",
            "input - largest(input, self.dim) * 1.001",
            "input - (largest(input, self.dim) + 1e-08)",
            "input - largest(input * 1.001, self.dim)",
            "input - largest(input + 1e-08, self.dim)",
        )
    },
    ("Bilinear.forward", "output = self._products(input) @ self._matrix(self.param.weight).T", "output = self._products(-input) @ self._matrix(self.param.weight).T"): OWN_PRODUCT,
    ("Bilinear.backward", "self.backward_parameters(saved, grad_output)", "self.backward_parameters(-saved, grad_output)"): OWN_PRODUCT,
    ("Bilinear.backward", "mixed = (rows(grad_output) @ self._matrix(self.param.weight)).reshape(-1, *self.param.weight.shape[1:])", "mixed = (grad_output @ self._matrix(self.param.weight)).reshape(-1, *self.param.weight.shape[1:])"): EACH_ROW,
    ("Bilinear.backward_parameters", "np.matmul(rows(grad_output).T, self._products(saved), out=self._matrix(self.grad.weight))", "np.matmul(rows(grad_output).T, self._products(-saved), out=self._matrix(self.grad.weight))"): OWN_PRODUCT,
    ("Bilinear._matrix", "return weight.reshape(len(weight), self.in1_features * self.in2_features)", "return weight.reshape(len(weight), -self.in1_features * self.in2_features)"): LEFT_OVER,
    ("Bilinear._matrix", "return weight.reshape(len(weight), self.in1_features * self.in2_features)", "return weight.reshape(len(weight), self.in1_features * -self.in2_features)"): LEFT_OVER,
    ("Bilinear._products", "by_row = rows(input)", "by_row = -rows(input)"): OWN_PRODUCT,
    ("Bilinear._products", "by_row = rows(input)", "by_row = rows(-input)"): OWN_PRODUCT,
    ("Bilinear._products", "return products.reshape(len(by_row), self.in1_features * self.in2_features)", "return products.reshape(len(by_row), -self.in1_features * self.in2_features)"): LEFT_OVER,
    ("Bilinear._products", "return products.reshape(len(by_row), self.in1_features * self.in2_features)", "return products.reshape(len(by_row), self.in1_features * -self.in2_features)"): LEFT_OVER,
    (
        "LayerNorm.backward",
        "return self._grad_of_rows(grad_normalized, normalized, std).reshape(grad_output.shape)",
        "return self._grad_of_rows(grad_normalized, -normalized, std).reshape(grad_output.shape)",
    ): OWN_PROJECTION,
    **ACTIVATIONS,
    **IMAGES,
    **LOSSES,
    **NORMALIZATIONS,
    **OPTIMIZERS,
    **RECURRENT,
}
