"""Common mistakes in recurrent nets, embeddings, attention and dropout."""

from __future__ import annotations

REPEATED = "with `=` for `+=` at an index that stands several times"
OF_REPEATED = (
    "An index that stands several times has the gradients of all its places: `weight[index] = ` keeps the last one "
    "alone, and so does `weight[index] += `, where NumPy adds once. np.add.at adds each."
)
LATER = "The gradient from the later times is missing: h goes into the next time, too."

MISTAKES: dict[str, dict[str, str]] = {
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
    "dropout": {
        "without `* mask`": "What was dropped has no gradient.",
        "with `mask > 0` in the place of `mask`": "What is kept was scaled by 1 / (1 - p): so is its gradient.",
    },
}
