"""Common mistakes in recurrent nets, embeddings, attention and dropout."""

from __future__ import annotations

REPEATED = "with `=` for `+=` at an index that stands several times"
OF_REPEATED = (
    "An index that stands several times has the gradients of all its places: `weight[index] = ` keeps the last one "
    "alone, and so does `weight[index] += `, where NumPy adds once. np.add.at adds each."
)
ADDED = "The output is a sum, and what is added doesn't depend on the input: the slope for the input is 1."
EACH_EXAMPLE = "Each example uses the same vector of a time: the gradients are added over the batch."
PADDED_OUTPUT = (
    "A padded output is 0 whatever the input is: grad_output becomes 0 there before it goes back through the layer."
)
MASK_FIRST = (
    "The mask comes before the way back: a padded time sees the times that count, so its gradient would come to these."
)
CONSTANT_PADDING = "The padding holds a constant, which doesn't depend on the input: its gradient is 0 there."
TRUE_COUNTS = "The mask is true where a time counts, and not where there is padding."
LATER = "The gradient from the later times is missing: h goes into the next time, too."

MISTAKES: dict[str, dict[str, str]] = {
    "learned_positions": {
        "with `mean` in the place of `sum`": f"{EACH_EXAMPLE} There is no mean.",
        "with the last of `grad_output` alone, in the place of the sum of all":
            f"{EACH_EXAMPLE} With `=` for `+=`, the last one's is kept alone.",
        "with the first of `grad_output` alone, in the place of the sum of all": EACH_EXAMPLE,
        "with the `sum` over axis (0, 1) in the place of `np.sum(grad_output, axis=0)`":
            "Each time has a vector of its own: the gradients are added over the batch, and not over the times.",
        "with `0` and `num_positions - time` swapped":
            "The first rows are used: those that are not, whose gradient is 0, are behind them.",
        "with `grad_output + weight[:time]`, what forward would make of the gradient, in the place of `grad_output`":
            ADDED,
    },
    "sinusoidal_positions": {
        "with `grad_output + waves`, what forward would make of the gradient, in the place of `grad_output`": ADDED,
        "grad_output => grad_output * (1 + where(feature % 2 == 0, cos(angle), -sin(angle)))":
            "The waves depend on the time and on the feature, and not on the input: their derivative is 0.",
        "times `waves`": ADDED,
        "with 0 everywhere": "The waves don't depend on the input, but the output does: it is input + waves.",
    },
    "time_pool": {
        "with `mask` in the place of `weight`":
            "Each number gets as much of the gradient as it has in the output: the last time or the largest number all "
            "of it, the others none, and of a mean each 1 / lengths.",
        "with `weight > 0` in the place of `weight`":
            "weight is no mask: for the mean it is 1 / lengths, and several largest numbers share the gradient.",
        "weight => weight / input.shape[1]": "weight has each number's share in it already.",
        "weight => mask / input.shape[1]": "The mean alone shares the gradient among all times.",
        "weight => concatenate([0 * mask[:, 1:], mask[:, :1]], axis=1)":
            "With mode = last alone, the last time has all of the gradient.",
        "with 1 in the place of `grad_output`": "By the chain rule, the weights are multiplied by grad_output.",
    },
    "masked_fill": {
        "with `grad_output` everywhere, in the place of `where(mask, grad_output, 0)`": CONSTANT_PADDING,
        "with `where(mask, grad_output, output)` in the place of `where(mask, grad_output, 0)`": CONSTANT_PADDING,
        "with both cases of `where(mask, grad_output, 0)` swapped": TRUE_COUNTS,
    },
    "embedding": {
        REPEATED: OF_REPEATED,
        "one_hot_product(indices, grads, self.num_embeddings) => one_hot_product(indices, grads, "
        "self.num_embeddings) / np.maximum(np.bincount(indices, minlength=self.num_embeddings), 1)[:, np.newaxis]":
            "The gradients of an index that stands several times are added: there is no mean.",
    },
    "embedding_bag": {
        REPEATED: OF_REPEATED,
        "share * grad_output[:, np.newaxis] => (share if self.mode != 'mean' else (share > 0) / input.shape[1]) * "
        "grad_output[:, np.newaxis]": "The mean is that of the rows that count: padding isn't one of them.",
    },
    "rnn": {
        "without `+ grad_h`": LATER,
        "without the factor `dh_dz[t]`": "The derivative of the nonlinearity is missing.",
        "without the factor `h`": "h must be squared: tanh' = 1 - tanh**2.",
        "with `saved.output[1:]` in the place of `saved.output[:-1]`": "The product has the state of the time before, "
        "h[t - 1], and not h[t].",
    },
    "gru": {
        "without `+ grad_h`": LATER,
        "without `+ grad_h * z[t]`": "h_before goes into h on a straight way, too, through z * h_before.",
        "without `* r`": "The reset gate multiplies b_n: its gradient has the factor r.",
    },
    "lstm": {
        "without `+ grad_after`": LATER,
        "without `+ grad_c`": "The gradient from the later times is missing: c goes into the next c, too.",
        "without the line `grad_c = grad_c * f[t]`":
            "c goes into the next c times f: so its gradient is multiplied by f on the way back.",
        "without `* (1 - tanh_c * tanh_c)`": "h = o tanh(c): the derivative of tanh is missing.",
        "with `saved.c` in the place of `c_before`": "The forget gate multiplies the c of the time before.",
        "without the factor `g`": "g must be squared: tanh' = 1 - tanh**2.",
        "with `g * (1 - g)` in the place of `1 - g * g`": "That is the derivative of the sigmoid: g is a tanh.",
        "with `saved.c` in the place of `tanh_c`": "The output gate multiplies tanh(c), not c.",
    },
    "causal_self_attention": {
        "without `* (1 / math.sqrt(query.shape[-1]))`":
            "The scores were divided by the root of the width: so are their "
            "gradients.",
        "grad_scores.mT @ query[part] => grad_scores.mT @ query[part] / math.sqrt(query.shape[-1])":
            "The query that is saved is scaled already, and the gradient of the key is made of it.",
        "without `- mean`": "Each probability depends on all scores of its row: softmax's sum is missing.",
    },
    "padded_causal_self_attention": {
        "with `grad_output` in the place of `kept(grad_output, saved.counts)`": PADDED_OUTPUT,
        "SelfAttention.backward(self, saved, kept(grad_output, saved.counts)) => "
        "kept(SelfAttention.backward(self, saved, grad_output), saved.counts)": MASK_FIRST,
        "kept(grad_output, saved.counts) => kept(grad_output, ~saved.counts)": TRUE_COUNTS,
    },
    "dropout": {
        "without `* mask`": "What was dropped has no gradient.",
        "with `mask > 0` in the place of `mask`": "What is kept was scaled by 1 / (1 - p): so is its gradient.",
    },
}
