"""Common mistakes in softmax, cross entropy and other losses."""

from __future__ import annotations

COUPLED = "Each probability depends on all inputs, through the sum below: the sum over them is missing."
IGNORED = "Rows that are ignored don't count, and others count by their weights."
MEAN = "The loss is a mean: each of its terms is divided by their number."
OWN = (
    "The right class's score stands in the terms of all others, with a minus: its gradient is the sum of theirs, with "
    "its sign turned."
)

MISTAKES: dict[str, dict[str, str]] = {
    "softmax": {
        "without `- sum(grad_answer * answer, axis=axis, keepdims=True)`": COUPLED,
        "without the `sum` of `sum(grad_answer * answer, axis=axis, keepdims=True)`":
            "p (1 - p) is the diagonal of the "
            "Jacobian alone. " + COUPLED,
    },
    "softmax_layer": {
        "without `- (grad_output * output).sum(axis=dim, keepdims=True)`": COUPLED,
        "without the `sum` of `(grad_output * output).sum(axis=dim, keepdims=True)`":
            "p (1 - p) is the diagonal of the "
            "Jacobian alone. " + COUPLED,
    },
    "log_softmax": {
        "without the `exp` of `exp(output)`": "The output is the logarithm of the probability.",
        "without `- exp(output) * grad_output.sum(axis=dim, keepdims=True)`":
            "The path through the logarithm of the sum "
            "is missing.",
        "with `grad_output * exp(output)` in the `sum` of `grad_output.sum(axis=dim, keepdims=True)`":
            "That is softmax's "
            "sum: for its logarithm, the gradients are added as they are.",
    },
    "logsumexp": {
        "exp(input - spread(answer, input.shape, axis)) => exp(input - input.max(axis=axis, keepdims=True))": "The "
        "exponentials are never divided by their sum: the slopes are softmax.",
        "with its sign turned, in grad_input": "The slopes are softmax: none is below 0.",
        "spread(answer, input.shape, axis) => log(sum(exp(input)))": "Each sum along the axis has its own softmax.",
    },
    "mse_loss": {
        "without the factor `2`": "The derivative of d**2 is 2 d.",
        "without `/ N`": MEAN,
        "with `rows` in the place of `N`": "The mean is over all N numbers, not over the rows.",
    },
    "nll_loss": {
        "without `/ (total + (total == 0))`": MEAN,
        "with `rows` in the place of `total`": IGNORED,
        "with its sign turned": "The loss is the negative logarithm: it falls where the prediction grows.",
    },
    "cross_entropy_loss": {
        "without `/ total`": MEAN,
        "with `rows` in the place of `total`": IGNORED,
        "without `- q`": "The label is never subtracted: the gradient is probability less label.",
        "with its sign turned, in grad_prediction":
            "The gradient is probability less label, not label less probability.",
        "exp(log_probability) => exp(prediction - prediction.max(axis=1, keepdims=True))": "The exponentials are never "
        "divided by their sum, which makes them probabilities.",
    },
    "huber_loss": {
        "clip(prediction - target, -delta, delta) => sign(prediction - target)":
            "That is the slope of |d|: within delta the loss is d**2 / 2, whose slope is d, and beyond it the slope is "
            "delta or -delta.",
        "without the `clip` of `clip(prediction - target, -delta, delta)`":
            "Beyond delta the loss is a straight line: its "
            "slope stays at delta.",
        "clip(prediction - target, -delta, delta) => where(abs(prediction - target) <= delta, prediction - target, "
        "sign(prediction - target))": "The slope of the straight part is delta, not 1.",
        "clip(prediction - target, -delta, delta) => where(abs(prediction - target) <= delta, prediction - target, "
        "delta)": "The sign of the straight part is missing.",
        "clip(prediction - target, -delta, delta) => where(abs(prediction - target) <= delta, prediction - target, 0)":
            "The straight part has the slope delta, not 0.",
        "clip(prediction - target, -delta, delta) => where(abs(prediction - target) <= delta, "
        "2 * (prediction - target), delta * sign(prediction - target))":
            "The curved part is d**2 / 2: its derivative is d, not 2 d.",
        "clip(prediction - target, -delta, delta) => where(abs(prediction - target) < 1, prediction - target, "
        "delta * sign(prediction - target))": "The curved part ends at delta, not at 1.",
    },
    "smooth_l1_loss": {
        "clip((prediction - target) / beta, -1, 1) => where(abs(prediction - target) < beta, prediction - target, "
        "sign(prediction - target))": "The curved part is d**2 / (2 beta): its derivative is d / beta.",
        "clip((prediction - target) / beta, -1, 1) => where(abs(prediction - target) < 1, "
        "(prediction - target) / beta, sign(prediction - target))": "The curved part ends at beta, not at 1.",
    },
    "ctc_loss": {
        "alpha + beta => alpha": "These are the paths up to this time. What comes behind it, beta, belongs to them.",
        "alpha + beta => alpha + beta + at": "alpha has the factor of this time already: now it counts twice.",
        "alpha + beta => alpha + beta - at": "beta doesn't have the factor of this time: it counts once, in alpha.",
        "after[:, 2:] + skip[:, 2:] => NEVER":
            "A path may go on by two states, too, where it leaves out the blank between two labels that differ.",
        "after[:, 2:] + skip[:, 2:] => after[:, 2:]":
            "Where two labels are equal, or the state is a blank, a path can't go on by two states: skip says where.",
        "np.where(has_path, -share, 0) => -share":
            "A target that no path reads costs nothing: it has no gradient.",
    },
    "multi_label_margin_loss": {
        "without `- num_pairs[:, :-1]`":
            "A score is the upper end of one gap and the lower end of another: it shortens the one before it.",
        "without `- sum(pull, axis=2)`": "A pair pulls at both of its classes: up at the one that the example has.",
        "without `/ classes`": "What an example's pairs lack is divided by the number of classes.",
    },
    "bce_loss": {
        "prediction - target => -target * (1 - prediction)": "That is the slope of the term of the yes alone, "
        "-target / prediction. The term of the no adds (1 - target) / (1 - prediction).",
        "prediction - target => (1 - target) * prediction": "That is the slope of the term of the no alone, "
        "(1 - target) / (1 - prediction). The term of the yes adds -target / prediction.",
        "prediction - target => -target * (1 - prediction) - (1 - target) * prediction":
            "The slope of the term of the no is (1 - target) / (1 - prediction), with a plus: the minus of "
            "-log(1 - prediction) and that of 1 - prediction cancel.",
    },
    "bce_with_logits_loss": {
        "without `* pos_weight`": "pos_weight multiplies the terms of the yes.",
        "without the factor `weight`": "Each term is multiplied by its weight.",
    },
    "multi_margin_loss": {
        "without `- is_label * sum(pull, axis=1, keepdims=True)`": OWN,
        "with `+ is_label * sum(pull, axis=1, keepdims=True)` in the place of `- is_label * sum(pull, axis=1, "
        "keepdims=True)`": OWN,
        "sum(pull, axis=1, keepdims=True) => row_weight[:, newaxis] / classes * (sum(pull, axis=1, keepdims=True) > 0)":
            OWN,
        "sum(pull, axis=1, keepdims=True) => row_weight[:, newaxis] / classes": OWN,
        "with its sign turned, in grad_prediction":
            "A score of another class makes the loss larger: its slope is above 0.",
        "with `mean` in the place of `sum`": "The right class's score stands in each term: the gradients are added.",
        "without `/ classes`": "The sum of an example's terms is divided by the number of classes.",
        "row_weight[:, newaxis] * p * lack ** (p - 1) * (lack > 0) / classes => row_weight[:, newaxis] * p * "
        "lack ** (p - 1) * (lack > 0) / (classes - 1)":
            "The sum is divided by the number of all classes, and the right one is one of them.",
        "without `/ rows`": MEAN,
        "(pull - is_label * sum(pull, axis=1, keepdims=True)) / rows => (pull - is_label * sum(pull, axis=1, "
        "keepdims=True)) / sum(row_weight)": "The mean divides by the number of examples, whatever they weigh.",
        "without `* p`": "The exponent comes down as a factor: the derivative of lack**2 is 2 lack.",
        "without `* lack ** (p - 1)`": "Of lack**2 one factor stays: the derivative is 2 lack.",
        "without `* (lack > 0)`": "Where a class lacks nothing, nothing is lost: the slope is 0 there.",
        "without the factor `row_weight[:, newaxis]`": "An example weighs as much as its class.",
    },
}
